internal import ArgumentParser
internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapNetwork
internal import TapRecord

// Shell completion of values.
extension CompletionKind {
    /// Completes the raw values of an enumeration.
    static func choices<Choice: RawRepresentable & CaseIterable>(_ type: Choice.Type) -> CompletionKind
    where Choice.RawValue == String {
        .list(Choice.allCases.map(\.rawValue))
    }

    /// Completes captures, logs and packets, also rotated and compressed ones.
    static let recordings = CompletionKind.file(extensions: endings)

    /// Completes recordings, and files with other extensions.
    static func recordings(and others: String...) -> CompletionKind { .file(extensions: endings + others) }

    private static let endings = [
        "xtap", "jsonl", "json", "log", "txt", "pcap", "pcapng", "cap", "gz", "zst", "bz2", "xz", "[0-9]*",
    ]

    static let ruleFiles = CompletionKind.file(extensions: ["pfw"])

    /// Completes files of certificates and private keys.
    static let certificates = CompletionKind.file(extensions: ["pem", "crt", "cert", "cer", "key"])

    /// Completes log specifications: levels, directions and parts, separated by commas.
    static let logSpec = CompletionKind.custom { _, _, typed in Completions.logSpecs(typed) }

    /// Completes the control sockets of running proxies.
    static let controlSockets = CompletionKind.custom { _, _, _ in
        RunningProxy.all(in: ControlPath.folder).map(\.path)
    }

    /// Completes the session numbers of the proxy that the command addresses.
    static let sessionNumbers = CompletionKind.custom { _, _, _ in Completions.sessions.map { "\($0.number)" } }

    /// Completes the JIDs of the sessions of that proxy.
    static let sessionJIDs = CompletionKind.custom { _, _, _ in
        Set(Completions.sessions.compactMap(\.jid)).sorted()
    }

    /// Completes the network interfaces of this machine.
    static let interfaces = CompletionKind.custom { _, _, _ in Completions.names(in: "/sys/class/net") }
}

/// Completions with values that are only known at the time of the request.
enum Completions {
    /// The first argument of a shell's completion request.
    static let request = "---completion"

    /// A session of a running proxy.
    struct Session: Sendable {
        let number: Int64
        let jid: String?
    }

    /// The sessions found by ``prepare(_:)``.
    static var sessions: [Session] { found.withLock { $0 } }

    private static let found = Mutex<[Session]>([])

    /// Time limit for the proxy's answer; short, because the user waits for it.
    private static let timeout = Duration.seconds(1)

    /// Commands that use the sessions of a running proxy.
    private static let controlling: Set = ["inject", "level", "ping", "rules", "sessions", "tail"]

    /// Fetches the sessions, if the completion may need them. The parser requests completions synchronously and cannot
    /// wait for a proxy.
    ///
    /// - Parameter arguments: The request: `---completion COMMAND… -- ARGUMENT …`, with the words of the command line
    ///   at the end.
    static func prepare(_ arguments: [String]) async {
        guard arguments.count > 1, controlling.contains(arguments[1]), let asked = arguments.firstIndex(of: "--") else {
            return
        }
        let argument = arguments[asked...].dropFirst().first ?? ""
        guard ["--session", "--jid"].contains(argument) || argument.hasPrefix("positional@") else { return }
        do {
            let client = try client(for: arguments)
            let answer = try await client.ask(.init("GET", "/sessions"), timeout: timeout)
            let sessions = (answer["sessions"]?.values ?? []).compactMap { json in
                json["session"]?.integer.map { Session(number: $0, jid: json["jid"]?.text) }
            }
            found.withLock { $0 = sessions }
        } catch {
            // Offer nothing if the proxy cannot be reached.
        }
    }

    /// Returns a client for the proxy that the command line names, or for the only running one.
    private static func client(for words: [String]) throws(ControlClientError) -> ControlClient {
        let named = words.lastIndex(of: "--control").flatMap { index in words[(index + 1)...].first }
        if let named, !named.isEmpty { return ControlClient(path: named) }
        let joined = words.last { $0.hasPrefix("--control=") }?.dropFirst("--control=".count)
        if let joined { return ControlClient(path: String(joined)) }
        return try ControlClient(onlyIn: ControlPath.folder)
    }

    /// Returns the completions of a log specification: one level, the two directions, and parts with their levels.
    static func logSpecs(_ typed: String) -> [String] {
        // In zsh, the word may contain the option: `--log=info`.
        let spec = typed.hasPrefix("--") ? typed.drop { $0 != "=" }.dropFirst() : typed[...]
        let items = spec.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let earlier = items.dropLast()
        let head = earlier.map { "\($0)," }.joined()
        let levels = Level.allCases.map(\.name)
        let names = (earlier.contains(where: levels.contains) ? [] : levels) + ["send", "recv"]
        let parts = Part.allCases.map { "\($0.name)=" }
        // The last item is a part: complete its level.
        if let last = items.last, let part = parts.first(where: last.hasPrefix) {
            return levels.map { head + part + $0 }
        }
        return (names.filter { !earlier.contains($0) } + parts).map { head + $0 }
    }

    /// Returns the names in a folder, sorted, without hidden ones.
    static func names(in folder: String) -> [String] {
        (FileStatus.names(in: folder) ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }
}

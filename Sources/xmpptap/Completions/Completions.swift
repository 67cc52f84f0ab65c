internal import ArgumentParser
internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapNetwork
internal import TapRecord

// Completion of values in a shell.
extension CompletionKind {
    /// The values of an enumeration.
    static func choices<Choice: RawRepresentable & CaseIterable>(_ type: Choice.Type) -> CompletionKind
    where Choice.RawValue == String {
        .list(Choice.allCases.map(\.rawValue))
    }

    /// Captures, logs and packets, also rotated and compressed ones.
    static let recordings = CompletionKind.file(extensions: endings)

    /// The same, and files with these endings.
    static func recordings(and others: String...) -> CompletionKind { .file(extensions: endings + others) }

    private static let endings = [
        "xtap", "jsonl", "json", "log", "txt", "pcap", "pcapng", "cap", "gz", "zst", "bz2", "xz", "[0-9]*",
    ]

    static let ruleFiles = CompletionKind.file(extensions: ["pfw"])

    /// Certificates and private keys.
    static let certificates = CompletionKind.file(extensions: ["pem", "crt", "cert", "cer", "key"])

    /// A level and parts, of which several are separated by commas.
    static let logSpec = CompletionKind.custom { _, _, typed in Completions.logSpecs(typed) }

    /// Sockets of the proxies that run.
    static let controlSockets = CompletionKind.custom { _, _, _ in
        RunningProxy.all(in: ControlPath.folder).map(\.path)
    }

    /// Numbers of the sessions of the proxy that the command asks.
    static let sessionNumbers = CompletionKind.custom { _, _, _ in Completions.sessions.map { "\($0.number)" } }

    /// Their JIDs.
    static let sessionJIDs = CompletionKind.custom { _, _, _ in
        Set(Completions.sessions.compactMap(\.jid)).sorted()
    }

    /// Network interfaces of this machine.
    static let interfaces = CompletionKind.custom { _, _, _ in Completions.names(in: "/sys/class/net") }
}

/// What completions offer that is known only when they are asked for.
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

    /// Time for the proxy to answer: a user waits.
    private static let timeout = Duration.seconds(1)

    /// Commands that use the sessions of a running proxy.
    private static let controlling: Set = ["inject", "level", "ping", "rules", "sessions", "tail"]

    /// Fetches the data that an answer may need: the parser requests completions synchronously.
    ///
    /// - Parameter arguments: The request: `---completion COMMAND… -- ARGUMENT …`, with the words of the line at the end.
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
            // There is nothing to offer.
        }
    }

    /// A client of the proxy that the line names, or of the only one.
    private static func client(for words: [String]) throws(ControlClientError) -> ControlClient {
        let named = words.lastIndex(of: "--control").flatMap { index in words[(index + 1)...].first }
        if let named, !named.isEmpty { return ControlClient(path: named) }
        let joined = words.last { $0.hasPrefix("--control=") }?.dropFirst("--control=".count)
        if let joined { return ControlClient(path: String(joined)) }
        return try ControlClient(onlyIn: ControlPath.folder)
    }

    /// The completions of a log specification: a level once, the two directions, a part with its level.
    static func logSpecs(_ typed: String) -> [String] {
        // In zsh the word may begin with the option: `--log=info`.
        let spec = typed.hasPrefix("--") ? typed.drop { $0 != "=" }.dropFirst() : typed[...]
        let items = spec.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let earlier = items.dropLast()
        let head = earlier.map { "\($0)," }.joined()
        let levels = Level.allCases.map(\.name)
        let names = (earlier.contains(where: levels.contains) ? [] : levels) + ["send", "recv"]
        let parts = Part.allCases.map { "\($0.name)=" }
        // The level of a part.
        if let last = items.last, let part = parts.first(where: last.hasPrefix) {
            return levels.map { head + part + $0 }
        }
        return (names.filter { !earlier.contains($0) } + parts).map { head + $0 }
    }

    /// The names in a folder, sorted.
    static func names(in folder: String) -> [String] {
        (FileStatus.names(in: folder) ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }
}

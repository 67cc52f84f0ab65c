internal import ArgumentParser
internal import TapRecord

/// What standard output shows of a command unless `--log` says otherwise.
protocol UsualLog {
    /// In words, for the help.
    static var words: String { get }
}

/// The flags of every command that writes logs.
struct LogOptions<Usual: UsualLog>: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What standard output shows.",
            discussion: """
                A comma list of a level (off, error, warn, info, verbose, trace), send, recv, PART=LEVEL, \
                session:N=LEVEL and jid:JID=LEVEL. Without it: \(Usual.words).
                """,
            valueName: "spec"
        ),
        transform: LogSpec.typed
    )
    var log: LogSpec?

    @Option(
        help: ArgumentHelp(
            "A further log; can be repeated.",
            discussion: "Text at info unless it says otherwise, as in --log-to tap.jsonl,format=json,verbose.",
            valueName: "path[,format=text|json|pretty][,spec]"
        ),
        transform: LogDestination.init
    )
    var logTo: [LogDestination] = []

    @Option(
        help: ArgumentHelp("Record everything to a file that can be read later.", valueName: "path"),
        completion: .file()
    )
    var capture: String?

    @Option(
        help: ArgumentHelp("Put a file aside when it has this size; 0 is never (default: 100MB).", valueName: "size"),
        transform: ByteSize.init
    )
    var rotateSize = ByteSize(bytes: 100_000_000)

    @Option(
        help: ArgumentHelp("Keep so many files that were put aside (default: 10).", valueName: "count"),
        transform: { try Number.parse($0, in: 0...9999) }
    )
    var rotateKeep = 10

    @Option(
        help: ArgumentHelp(
            "What is hidden in logs and captures (default: secrets).",
            discussion: """
                secrets: passwords, tokens, keys. bodies: also what people write. metadata: all but kinds, sizes, times \
                and pseudonyms.
                """,
            valueName: "secrets|bodies|metadata"
        ),
        transform: RedactionPolicy.typed
    )
    var redact: RedactionPolicy?

    @Flag(help: "Show passwords and other secrets in logs and captures.")
    var noRedact = false

    @Flag(help: "Close sessions, and refuse new ones, while a log cannot be written.")
    var logRequired = false

    /// What was typed.
    var request: LogRequest {
        LogRequest(
            log: log,
            logTo: logTo,
            capture: capture,
            rotateSize: rotateSize,
            rotateKeep: rotateKeep,
            redact: redact,
            showsSecrets: noRedact,
            isRequired: logRequired
        )
    }
}

extension LogSpec {
    /// Reads a specification that was typed.
    static func typed(_ text: String) throws(Failure) -> LogSpec {
        do throws(LogSpecError) {
            return try LogSpec(text)
        } catch {
            throw .usage(error.description)
        }
    }
}

extension RedactionPolicy {
    /// Reads a policy; none is a flag of its own.
    static func typed(_ text: String) throws(Failure) -> RedactionPolicy {
        guard let policy = RedactionPolicy(rawValue: text), policy != .none else {
            let names = RedactionPolicy.allCases.filter { $0 != .none }.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(text): there is no such redaction; there are \(names)")
        }
        return policy
    }
}

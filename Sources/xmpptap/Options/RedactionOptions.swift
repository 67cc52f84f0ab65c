internal import ArgumentParser
internal import TapCapture
internal import TapRecord

/// `--redact` and `--no-redact`, for commands that make records from packets and client logs.
struct RedactionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What to hide in packets and clients' logs (default: secrets).",
            discussion: """
                secrets: passwords, tokens and keys. bodies: also message texts. metadata: everything except kinds of \
                stanzas, sizes, times and pseudonyms. Captures and JSON logs keep what was hidden when they were recorded.
                """,
            valueName: "secrets|bodies|metadata"
        ),
        completion: .list(RedactionPolicy.allCases.filter { $0 != .none }.map(\.rawValue)),
        transform: RedactionPolicy.typed
    )
    var redact: RedactionPolicy?

    @Flag(help: "Show passwords and other secrets of packets and clients' logs.")
    var noRedact = false

    /// Returns the redaction policy.
    ///
    /// - Parameter showsBodies: Whether `--bodies` is set.
    func policy(showsBodies: Bool) throws(Failure) -> RedactionPolicy {
        try RedactionPolicy.refuseContradiction(redact, showsSecrets: noRedact, showsBodies: showsBodies)
        return noRedact ? .none : redact ?? .secrets
    }

    /// Refuses to change the redaction of records that are already stored.
    func check(_ reader: RecordReader) throws(Failure) {
        guard redact != nil || noRedact, let path = reader.storedPath else { return }
        let flag = noRedact ? "--no-redact" : "--redact"
        throw .usage(
            "\(path): \(flag) is for packets and clients' logs; a capture is redacted when it is recorded: "
                + "proxy --capture FILE \(noRedact ? flag : "--redact bodies")"
        )
    }
}

extension RedactionPolicy {
    /// Refuses flags that contradict each other.
    static func refuseContradiction(
        _ redact: RedactionPolicy?,
        showsSecrets: Bool,
        showsBodies: Bool
    ) throws(Failure) {
        guard let redact else { return }
        guard !showsSecrets else {
            throw .usage("--redact \(redact.rawValue) and --no-redact contradict each other; leave one out")
        }
        guard !showsBodies || !redact.hidesTexts else {
            throw .usage("--bodies and --redact \(redact.rawValue) contradict each other; leave one out")
        }
    }
}

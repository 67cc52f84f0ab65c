package import TapRecord

extension RecordHeader {
    /// The header of a complete log of a run, from the beginning of time.
    package static func test(run: String = "run") -> RecordHeader {
        RecordHeader(
            tool: "test",
            time: Timestamp(nanoseconds: 0),
            level: "verbose",
            isComplete: true,
            redaction: .secrets,
            run: run
        )
    }
}

extension Record {
    /// The record as a sink gets it without redaction.
    package var shown: RedactedRecord {
        Redactor(policy: .none, registry: SecretRegistry()).redact(self)
    }
}

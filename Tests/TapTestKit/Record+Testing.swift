package import TapRecord

extension RecordHeader {
    /// Returns the header of a complete log of a run that began at the time 0.
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
    /// The record without redaction, as a sink receives it.
    package var shown: RedactedRecord {
        Redactor(policy: .none, registry: SecretRegistry()).redact(self)
    }
}

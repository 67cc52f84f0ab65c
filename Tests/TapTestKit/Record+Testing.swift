public import TapRecord

extension Record {
    /// The record as a sink gets it where nothing is redacted.
    public var shown: RedactedRecord {
        Redactor(policy: .none, registry: SecretRegistry()).redact(self)
    }
}

/// A record that has passed ``Redactor/redact(_:at:)``: what commands hand over, dispatchers take and sinks write.
///
/// This file alone makes one. A record that is read back has passed when it was recorded: it is a ``RecordLine``, which
/// is made of such a record or by the reader of a stored line.
public struct RedactedRecord: Sendable {
    /// The record as it may be shown.
    public fileprivate(set) var record: Record

    fileprivate init(_ record: consuming Record) { self.record = record }
}

extension Redactor {
    /// The stage that every record passes on its way to the sinks.
    ///
    /// It hides the user if only metadata may be shown, and the secrets in texts that the catalogue knows. The item
    /// itself, which contains ``Record/xml`` and the other ranges, was redacted as a whole before the record was made
    /// of it (``disclose(_:of:)``). The stage does not repeat checks that depend on a text's context, such as a peer's
    /// words within a sentence (``disclose(text:)``).
    ///
    /// - Parameter domain: The domain of user names.
    public func redact(_ record: consuming Record, at domain: String? = nil) -> RedactedRecord {
        var redacted = RedactedRecord(record)
        hide(in: &redacted.record, at: domain)
        return redacted
    }

    private func hide(in record: inout Record, at domain: String?) {
        if policy == .metadata { hidePeople(in: &record, at: domain) }
        // Most records hold nothing but what has passed by and been looked at.
        if policy != .none, !record.isPlain { hideSecrets(in: &record) }
    }

    private func hidePeople(in record: inout Record, at domain: String?) {
        record.user = record.user.map { disclose(user: $0, at: domain ?? record.domain) }
        record.jid = record.jid.map { disclose(address: $0) }
        record.domain = record.domain.map { disclose(address: $0) }
        record.sasl?.change { name, text in
            switch name {
            case "user", "authzid", "authorization_identifier": disclose(user: text, at: domain)
            case "resource", "software", "trace", "realm", "digest_uri": disclose(name: text)
            default: nil
            }
        }
        record.details?.change { name, text in
            name == "domain" || name == "from" || name == "to" ? disclose(address: text) : nil
        }
    }

    private func hideSecrets(in record: inout Record) {
        record.changeTexts { hideKeys(in: $0) }
        if !policy.showsRawBytes { record.bytes = nil }
    }
}

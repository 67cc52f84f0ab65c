/// A record after ``Redactor/redact(_:at:)``: commands, dispatchers and sinks only accept this type.
///
/// Only this file creates instances. A record read from a file was redacted when it was recorded; its type is
/// ``RecordLine``.
package struct RedactedRecord: Sendable {
    /// The redacted record.
    package fileprivate(set) var record: Record

    fileprivate init(_ record: consuming Record) { self.record = record }
}

extension Redactor {
    /// Redacts a record on its way to the sinks.
    ///
    /// Hides the user if only metadata may be shown, and the secrets in texts that the catalogue of rules covers. The
    /// item itself, which contains ``Record/xml`` and the other ranges, was redacted as a whole before the record was
    /// made from it (``disclose(_:of:)``). Checks that depend on a text's context, such as a peer's text within a
    /// sentence (``disclose(text:)``), are not repeated.
    ///
    /// - Parameter domain: The domain of user names.
    package func redact(_ record: consuming Record, at domain: String? = nil) -> RedactedRecord {
        var redacted = RedactedRecord(record)
        hide(in: &redacted.record, at: domain)
        return redacted
    }

    private func hide(in record: inout Record, at domain: String?) {
        if policy == .metadata { hidePeople(in: &record, at: domain) }
        // Most records are plain: all their parts have been checked before.
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

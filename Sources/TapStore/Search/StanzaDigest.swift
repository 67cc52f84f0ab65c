internal import TapCore
internal import TapRecord
internal import TapSecurity

/// The SHA-256 digest of a stanza, by which a copy of it can be compared with the recording.
package struct StanzaDigest: Sendable, Hashable {
    /// The digest in hexadecimal.
    package let text: String
    /// Whether it is that of the XML as recorded; otherwise that of ``fields(of:)``.
    package let isOfXML: Bool

    init?(_ row: AuditRow) {
        isOfXML = row.xml != nil
        let bytes = Array((row.xml ?? Self.fields(of: row)).utf8)
        guard let digest = try? OpenSSLCryptography().digest(.sha256, of: bytes.span) else { return nil }
        text = digest.hexadecimal
    }

    /// Returns the fields of a stanza as a JSON object, without those that it lacks. The manual names their order.
    static func fields(of row: AuditRow) -> String {
        LineBuffer.object { line in
            line.field("run", row.run)
            line.field("session", row.session)
            line.field("sequence", row.sequence)
            line.field("account", row.account)
            line.field("time", row.time.text)
            line.field("from", row.sender)
            line.field("to", row.receiver)
            line.field("kind", row.kind.name)
            if let type = row.type { line.field("type", type) }
            if let id = row.id { line.field("id", id) }
            if let thread = row.thread { line.field("thread", thread) }
            if let subject = row.subject { line.field("subject", subject) }
            if let body = row.body { line.field("body", body) }
            if let payload = row.payload { line.field("payload", payload) }
            if let condition = row.condition { line.field("condition", condition) }
        }
    }
}

package import XMPPCore

// Annotations of an item or event. Most records have none, so these fields are stored separately: records are small,
// because they are passed on for every stanza.
extension Record {
    struct Remarks: Sendable {
        var action: String?
        var rule: String?
        var edited: ByteRange?
        var bytes: [UInt8]?
        var digest: String?
        var condition: String?
        var code: String?
        var message: Prose?
        var sasl: Attributes?
        var tls: Attributes?
        var sm: Attributes?
        var details: Attributes?

        fileprivate mutating func changeTexts(_ body: (String) -> String?) {
            if let text = message?.text, let changed = body(text) { message = Prose(changed) }
            if let text = condition, let changed = body(text) { condition = changed }
            sasl?.change { body($1) }
            tls?.change { body($1) }
            sm?.change { body($1) }
            details?.change { body($1) }
        }
    }

    /// Replaces each text by the result of `body`; nil keeps the text.
    mutating func changeTexts(_ body: (String) -> String?) {
        if !remarks.isEmpty { remarks[0].changeTexts(body) }
    }

    /// Whether the record has no diagnosis, digest, condition, code or message, no bytes, and no attributes of any
    /// kind.
    var isPlain: Bool { remarks.isEmpty }

    private var remark: Remarks {
        @inline(__always) _read { yield remarks[0] }
        _modify {
            if remarks.isEmpty { remarks.append(Remarks()) }
            yield &remarks[0]
        }
    }

    /// The action of a rule or of xmpptap on the item, by name; nil if there was none.
    package var action: String? {
        get { isPlain ? nil : remark.action }
        set { if newValue != nil || !isPlain { remark.action = newValue } }
    }

    /// The rule that decided, `file:line`.
    package var rule: String? {
        get { isPlain ? nil : remark.rule }
        set { if newValue != nil || !isPlain { remark.rule = newValue } }
    }

    /// The data forwarded in place of the item that ``Record/xml`` shows; nil if the item was forwarded unchanged.
    package var edited: ByteRange? {
        get { isPlain ? nil : remark.edited }
        set { if newValue != nil || !isPlain { remark.edited = newValue } }
    }

    /// Bytes that are not text, if they may be shown.
    package var bytes: [UInt8]? {
        get { isPlain ? nil : remark.bytes }
        set { if newValue != nil || !isPlain { remark.bytes = newValue } }
    }

    /// HMAC-SHA-256, under the run's key, of bytes that are not shown, in hexadecimal.
    package var digest: String? {
        get { isPlain ? nil : remark.digest }
        set { if newValue != nil || !isPlain { remark.digest = newValue } }
    }

    /// The stream, stanza or SASL error condition.
    package var condition: String? {
        get { isPlain ? nil : remark.condition }
        set { if newValue != nil || !isPlain { remark.condition = newValue } }
    }

    /// xmpptap's code for the event, stable from version to version.
    package var code: String? {
        get { isPlain ? nil : remark.code }
        set { if newValue != nil || !isPlain { remark.code = newValue } }
    }

    /// The human-readable message.
    package var message: Prose? {
        get { isPlain ? nil : remark.message }
        set { if newValue != nil || !isPlain { remark.message = newValue } }
    }

    /// Attributes of an authentication step, decoded.
    package var sasl: Attributes? {
        get { isPlain ? nil : remark.sasl }
        set { if newValue != nil || !isPlain { remark.sasl = newValue } }
    }

    /// Attributes of a TLS connection.
    package var tls: Attributes? {
        get { isPlain ? nil : remark.tls }
        set { if newValue != nil || !isPlain { remark.tls = newValue } }
    }

    /// Attributes of stream management.
    package var sm: Attributes? {
        get { isPlain ? nil : remark.sm }
        set { if newValue != nil || !isPlain { remark.sm = newValue } }
    }

    /// Other attributes: counts, features, addresses.
    package var details: Attributes? {
        get { isPlain ? nil : remark.details }
        set { if newValue != nil || !isPlain { remark.details = newValue } }
    }
}

internal import XMPPCore

/// The fields of an audit store that are inside a stanza.
struct StanzaFields {
    var from: String?
    var to: String?
    var type: String?
    var id: String?
    /// The name and namespace of the first child, as `{namespace}name`.
    var payload: String?
    var body: String?
    var subject: String?
    var thread: String?
    /// The id that an archive gave the message (XEP-0359), and the archive's address.
    var stanzaID: String?
    var stanzaBy: String?
    /// The sender's id of the message (XEP-0359).
    var originID: String?
    /// The time of a delay (XEP-0203), as written.
    var delay: String?
    /// The condition of an error (RFC 6120 §8.3.2).
    var condition: String?
    /// The message in a carbon copy (XEP-0280) or in a result of an archive (XEP-0313), the time of its delay, and whether it
    /// is a carbon copy. At most one element.
    private var inner: [(StanzaFields, delay: String?, isCarbon: Bool)] = []

    var forwarded: (StanzaFields, delay: String?, isCarbon: Bool)? { inner.first }

    fileprivate mutating func setForwarded(_ message: StanzaFields, delay: String?, isCarbon: Bool) {
        if inner.isEmpty { inner = [(message, delay, isCarbon)] }
    }
}

/// Reads the ``StanzaFields`` of stanzas in one pass. Reuse a reader for all stanzas.
struct StanzaFieldReader: ~Copyable {
    private var reader = ItemReader()
    private var text: [UInt8] = []
    private var isFaulted = false

    /// Reads a stanza as it was recorded; bytes before its first `<` are skipped.
    ///
    /// - Returns: The fields; nil if it is not well-formed.
    mutating func read(_ bytes: Span<UInt8>) -> StanzaFields? {
        var start = 0
        while start < bytes.count, bytes[start] != 0x3C { start += 1 }
        let item = bytes.extracting(start..<bytes.count)
        reader.begin()
        isFaulted = false
        guard reader.next(item) == .start else { return nil }
        let fields = readStanza(item, isInner: false)
        return isFaulted ? nil : fields
    }

    /// Reads the stanza whose start tag was read, up to its end tag.
    private mutating func readStanza(_ item: Span<UInt8>, isInner: Bool) -> StanzaFields {
        var fields = StanzaFields()
        let namespace = reader.namespace
        if isInner {
            fields.from = attribute("from", item)
            fields.to = attribute("to", item)
            fields.type = attribute("type", item)
            fields.id = attribute("id", item)
        }
        while nextChild(item) {
            if isInner, fields.payload == nil { fields.payload = qualifiedName(item) }
            readChild(item, of: namespace, isInner, &fields)
        }
        return fields
    }

    private mutating func readChild(
        _ item: Span<UInt8>,
        of namespace: Namespace,
        _ isInner: Bool,
        _ fields: inout StanzaFields
    ) {
        let name = item.slice(reader.name)
        if reader.namespace == namespace, name.equals("body") {
            return keepFirst(readText(item), &fields.body)
        } else if reader.namespace == namespace, name.equals("subject") {
            return keepFirst(readText(item), &fields.subject)
        } else if reader.namespace == namespace, name.equals("thread") {
            return keepFirst(readText(item), &fields.thread)
        }
        switch reader.namespace {
        case .stanzaID where name.equals("stanza-id") && fields.stanzaID == nil:
            fields.stanzaID = attribute("id", item)
            fields.stanzaBy = attribute("by", item)
        case .stanzaID where name.equals("origin-id"): keepFirst(attribute("id", item), &fields.originID)
        case .delay where name.equals("delay"): keepFirst(attribute("stamp", item), &fields.delay)
        case .carbons where !isInner && (name.equals("sent") || name.equals("received")):
            return readWrapper(item, isCarbon: true, &fields)
        case .archive where !isInner && name.equals("result"): return readWrapper(item, isCarbon: false, &fields)
        case _ where name.equals("error") && fields.condition == nil:
            guard nextChild(item) else { return }
            fields.condition = item.slice(reader.name).string()
            skip(item)
        default: break
        }
        skip(item)
    }

    /// Reads an element that contains a `<forwarded/>` (XEP-0297), up to its end tag.
    private mutating func readWrapper(_ item: Span<UInt8>, isCarbon: Bool, _ fields: inout StanzaFields) {
        while nextChild(item) {
            guard reader.namespace == .forward, item.slice(reader.name).equals("forwarded") else {
                skip(item)
                continue
            }
            var delay: String?
            var message: StanzaFields?
            while nextChild(item) {
                let name = item.slice(reader.name)
                if name.equals("message"), message == nil {
                    message = readStanza(item, isInner: true)
                    continue
                }
                if reader.namespace == .delay, name.equals("delay") { keepFirst(attribute("stamp", item), &delay) }
                skip(item)
            }
            if let message { fields.setForwarded(message, delay: delay, isCarbon: isCarbon) }
        }
    }

    private func keepFirst(_ value: String?, _ field: inout String?) {
        if field == nil { field = value }
    }

    // MARK: Tokens

    /// Continues to the start tag of the next child; returns false at the end tag of the parent.
    private mutating func nextChild(_ item: Span<UInt8>) -> Bool {
        while true {
            switch reader.next(item) {
            case .start: return true
            case .text, .section: continue
            case .end: return false
            case .fault, nil:
                isFaulted = true
                return false
            }
        }
    }

    /// Continues to the end tag of the current element.
    private mutating func skip(_ item: Span<UInt8>) {
        var depth = 1
        while depth > 0 {
            switch reader.next(item) {
            case .start: depth += 1
            case .end: depth -= 1
            case .text, .section: continue
            case .fault, nil:
                isFaulted = true
                return
            }
        }
    }

    /// Returns the text of the current element, without that of its children, and continues to its end tag.
    private mutating func readText(_ item: Span<UInt8>) -> String {
        text.removeAll(keepingCapacity: true)
        var depth = 1
        while depth > 0 {
            switch reader.next(item) {
            case .start: depth += 1
            case .end: depth -= 1
            case .text(let range): if depth == 1 { AttributeValue.decodeText(item.slice(range), into: &text) }
            case .section(let range, _): if depth == 1 { text.append(item.slice(range)) }
            case .fault, nil:
                isFaulted = true
                return ""
            }
        }
        return text.span.string()
    }

    /// Returns the value of an attribute without prefix of the current start tag.
    private mutating func attribute(_ name: StaticString, _ item: Span<UInt8>) -> String? {
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard attribute.namespace == .none, item.slice(attribute.name).equals(name) else { continue }
            guard attribute.needsDecoding else { return item.slice(attribute.value).string() }
            text.removeAll(keepingCapacity: true)
            AttributeValue.decode(item.slice(attribute.value), into: &text)
            return text.span.string()
        }
        return nil
    }

    private mutating func qualifiedName(_ item: Span<UInt8>) -> String {
        let name = item.slice(reader.name).string()
        text.removeAll(keepingCapacity: true)
        reader.appendNamespaceURI(to: &text)
        return text.isEmpty ? name : "{\(text.span.string())}\(name)"
    }
}

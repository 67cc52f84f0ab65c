/// Finds where XMPP begins in a line.
enum LogStart {
    /// Names of elements at the top level of a stream that occur only in XMPP.
    private static let names: Set<String> = [
        "stream:stream", "/stream:stream", "stream:features", "stream:error", "iq", "message", "presence",
        "db:result", "db:verify", "starttls",
    ]
    /// Names of elements that are XMPP if they have one of the ``namespaces``.
    private static let named: Set<String> = [
        "stream", "features", "error", "auth", "challenge", "response", "success", "failure", "abort", "proceed",
        "compress", "compressed", "enable", "enabled", "resume", "resumed", "failed", "r", "a", "body", "open", "close",
        "handshake", "authenticate", "continue", "next",
    ]
    private static let namespaces: [[UInt8]] = [
        "urn:ietf:params:xml:ns:xmpp-", "urn:xmpp:", "http://etherx.jabber.org/streams", "http://jabber.org/protocol/",
        "jabber:",
    ].map { Array($0.utf8) }
    private static let opening = Array("&lt;".utf8)
    private static let coded = [Array("\\u003c".utf8), Array("\\u003C".utf8), Array("\\x3c".utf8), Array("\\x3C".utf8)]
    /// The number of bytes of a tag that are examined.
    private static let maximumTagLength = 4000
    /// The longest name of an element of XMPP, in bytes.
    private static let maximumNameLength = 64

    /// Returns the index of the first `<`, escaped or not, that opens an item; nil if there is none.
    ///
    /// - Parameter isTrusted: Tests whether the text up to an index is known to precede items; `isKnown` is false if
    ///   the element's name does not occur in XMPP.
    static func first(
        in line: ArraySlice<UInt8>,
        isTrusted: (_ index: Int, _ isKnown: Bool) -> Bool = { _, _ in false }
    ) -> Int? {
        var index = line.startIndex
        while index < line.endIndex {
            switch line[index] {
            case 0x3C:
                guard let name = name(line[(index + 1)...]) else { break }
                let isKnown = mayOpen(name)
                guard isKnown || isTrusted(index, false) else { break }
                let bytes = line[index...]
                let xml =
                    LogEscapes.escapesQuotes(bytes)
                    ? LogEscapes.string(quote: nil).decoded(bytes.prefix(maximumTagLength)).bytes[...] : bytes
                if opensItem(xml, isTrusted: { !isKnown || isTrusted(index, true) }) { return index }
            case 0x26 where line[index...].starts(with: opening):
                guard let name = name(line[(index + opening.count)...]), mayOpen(name) else { break }
                let (xml, _) = LogEscapes.entities.decoded(line[index...].prefix(maximumTagLength))
                if opensItem(xml[...], isTrusted: { false }) { return index }
            case 0x5C:
                guard let mark = coded.first(where: { line[index...].starts(with: $0) }),
                    let name = name(line[(index + mark.count)...]), mayOpen(name)
                else { break }
                let (xml, _) = LogEscapes.string(quote: nil).decoded(line[index...].prefix(maximumTagLength))
                if opensItem(xml[...], isTrusted: { false }) { return index }
            default: break
            }
            index += 1
        }
        return nil
    }

    /// Whether a text has a character that may open an item.
    static func isPossible(in line: ArraySlice<UInt8>) -> Bool {
        line.contains { $0 == 0x3C || $0 == 0x26 || $0 == 0x5C }
    }

    /// Returns the name at the beginning of `bytes`, which follow the `<` of a tag, with its slash or question mark;
    /// nil if no tag can have this name.
    private static func name(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let first = bytes.first else { return nil }
        let isMarked = first == 0x2F || first == 0x3F
        guard isMarked || first | 0x20 >= 0x61 && first | 0x20 <= 0x7A else { return nil }
        var end = bytes.startIndex + 1
        while end < bytes.endIndex, end - bytes.startIndex <= maximumNameLength, isNameByte(bytes[end]) { end += 1 }
        guard end - bytes.startIndex <= maximumNameLength, end == bytes.endIndex || bytes[end] != 0x3C else {
            return nil
        }
        return bytes[..<end]
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        LogLead.isAlphanumeric(byte) || byte == 0x3A || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte >= 0x80
    }

    /// Whether an element of this name can be an item without a known text in front of it.
    static func mayOpen(_ name: ArraySlice<UInt8>) -> Bool {
        if name.first == 0x3F || name.contains(0x3A) { return true }
        let text = String(decoding: name, as: UTF8.self)
        return names.contains(text) || named.contains(text)
    }

    private static func opensItem(_ bytes: ArraySlice<UInt8>, isTrusted: () -> Bool) -> Bool {
        guard let next = bytes.dropFirst().first,
            next == 0x2F || next == 0x3F || next | 0x20 >= 0x61 && next | 0x20 <= 0x7A
        else { return false }
        let tag = LogTag(bytes.prefix(maximumTagLength))
        guard tag.name.count <= maximumNameLength else { return false }
        let name = String(decoding: tag.name, as: UTF8.self)
        if tag.isDeclaration {
            // Any XML file may begin with a declaration.
            let behind = tag.content.drop { $0 == 0x20 }
            return isTrusted() || behind.first == 0x3C && opensItem(behind, isTrusted: { false })
        }
        if names.contains(name) {
            // In a sentence, a bare `<iq>` or `<message>` refers to a kind of stanza and is not an item.
            let isBare = !tag.hasAttributes && !tag.isEmpty && next != 0x2F
            return !isBare || tag.content.isEmpty || tag.content.first { $0 != 0x20 } == 0x3C || isTrusted()
        }
        if tag.isStreamEnd { return tag.name.count > tag.local.count + 1 }
        guard next != 0x2F, next != 0x3F else { return false }
        let isNamespaced = tag.attributes.contains { attribute in
            attribute.name.starts(with: "xmlns".utf8) && namespaces.contains { attribute.value.starts(with: $0) }
        }
        if isNamespaced, tag.name.count > tag.local.count || named.contains(String(decoding: tag.local, as: UTF8.self))
        {
            return true
        }
        return isTrusted()
    }
}

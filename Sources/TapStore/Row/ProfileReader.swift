internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Reads the avatars and vCards in stanzas. Reuse a reader for all stanzas.
struct ProfileReader: ~Copyable {
    /// The maximum number of bytes of a picture, and of the XML of a vCard.
    static let largest = 1_000_000

    private var reader = ElementReader()

    /// Whether a stanza can contain an avatar or a vCard, by its kind, its type and the namespace of its first child.
    ///
    /// What contacts send in an iq of type set, and a client in a result, is not for the other's profile.
    static func isRead(_ kind: AuditRow.Kind, _ direction: Direction, type: String?, payload: Namespace) -> Bool {
        switch kind {
        case .iq:
            guard type == (direction == .send ? "set" : "result") else { return false }
            return payload == .vCard || payload == .vCard4 || payload == .pubsub
        case .message: return direction == .recv && payload == .pubsubEvent && type != "error"
        case .presence: return false
        }
    }

    /// Returns the avatars and vCards in a stanza; none if it is not well-formed.
    ///
    /// - Parameter contact: The address to which they belong.
    mutating func read(_ item: Span<UInt8>, of contact: String) -> [AuditProfile] {
        guard let stanza = reader.read(item) else { return [] }
        var found = Found(contact: contact)
        stanza.forEachElement { payload in
            if payload.namespace == .pubsub || payload.namespace == .pubsubEvent {
                payload.forEachElement { node in
                    for item in node.children where item.isNamed("item") { found.addItem(item) }
                    return true
                }
            } else {
                found.addCard(payload)
            }
            return true
        }
        return found.profiles
    }

    private struct Found {
        let contact: String
        private(set) var profiles: [AuditProfile] = []

        init(contact: String) { self.contact = contact }

        /// Adds the content of a PubSub item (XEP-0060).
        mutating func addItem(_ item: Element) {
            for content in item.children {
                guard content.matches("data", .avatarData) else {
                    addCard(content)
                    continue
                }
                // The item's id is the SHA-1 (XEP-0084). Clients use it to find the picture of a user's metadata, so no client
                // shows a picture with another hash: such an item is faulty, or an attempt to pass off a picture as another one.
                addPicture(ProfileReader.decoded(content), id: item.attribute("id")?.lowercased() ?? "")
            }
        }

        /// Adds a vCard (XEP-0054, XEP-0292) and its photo (XEP-0153); does nothing for another element.
        mutating func addCard(_ element: Element) {
            if element.matches("vCard", .vCard) {
                let data = element.child("PHOTO", .vCard)?.child("BINVAL", .vCard)
                addPicture(data.flatMap(ProfileReader.decoded), id: nil)
            } else if element.matches("vcard", .vCard4) {
                let uri = element.child("photo", .vCard4)?.childText("uri", .vCard4)
                addPicture(uri.flatMap(ProfileReader.decoded(dataURI:)), id: nil)
            } else {
                return
            }
            guard let xml = CardWriter.xml(of: element), xml.count <= ProfileReader.largest,
                let hash = try? OpenSSLCryptography().digest(.sha256, of: xml.span)
            else { return }
            let text = String(decoding: xml, as: UTF8.self)
            profiles.append(AuditProfile(contact: contact, content: .vCard(text), hash: hash))
        }

        private mutating func addPicture(_ bytes: [UInt8]?, id: String?) {
            guard let bytes, let hash = try? OpenSSLCryptography().digest(.sha1, of: bytes.span),
                id == nil || id == hash.hexadecimal
            else { return }
            profiles.append(AuditProfile(contact: contact, content: .picture(bytes), hash: hash))
        }
    }

    /// Returns the bytes of an element's base64; nil if it is malformed, empty, redacted or too long.
    private static func decoded(_ element: Element) -> [UInt8]? {
        guard element.textSize <= 2 * largest else { return nil }
        var text: [UInt8] = []
        text.reserveCapacity(element.textSize)
        element.forEachText { text.append($0) }
        return decoded(text)
    }

    private static func decoded(_ text: [UInt8]) -> [UInt8]? {
        // vCards have line breaks in their base64, as vCard 3.0 did (RFC 2426 §2.6).
        guard let bytes = Base64.decode(text.span.bytes, ignoringWhitespace: true), !bytes.isEmpty,
            bytes.count <= largest
        else { return nil }
        return bytes
    }

    /// Returns the bytes of a `data:` URI in base64 (RFC 2397); nil for another URI.
    private static func decoded(dataURI uri: String) -> [UInt8]? {
        guard uri.utf8.count <= 2 * largest, let comma = uri.utf8.firstIndex(of: 0x2C) else { return nil }
        let head = uri[..<comma].lowercased()
        guard head.hasPrefix("data:"), head.hasSuffix(";base64") else { return nil }
        return decoded(Array(uri.utf8[uri.utf8.index(after: comma)...]))
    }
}

/// Writes vCards without the bytes of pictures and sounds, and without the elements whose text was redacted: placeholders have other
/// numbers in each run, and the same vCard would be another one.
private struct CardWriter {
    /// The maximum depth of elements; that of vCards is 4. Recordings may be of any depth, and the stack is limited.
    private static let greatestDepth = 32

    private var xml = XMLWriter()
    private var hasText = false
    private var isTooDeep = false

    /// Returns the XML; nil if it contains no text, or is nested too deeply.
    static func xml(of card: Element) -> [UInt8]? {
        var writer = CardWriter()
        writer.write(card, inheriting: "", depth: 1)
        return writer.hasText && !writer.isTooDeep ? writer.xml.bytes : nil
    }

    private mutating func write(_ element: Element, inheriting namespace: String, depth: Int) {
        guard depth <= Self.greatestDepth else { return isTooDeep = true }
        guard !element.matches("BINVAL", .vCard), !Self.isRedacted(element) else { return }
        xml.start(element, inheriting: namespace)
        if element.matches("uri", .vCard4), let head = Self.headOfDataURI(element.text) {
            xml.text(head)
        } else {
            let own = element.namespaceURI
            for content in element.contents where !isTooDeep {
                switch content {
                case .element(let child): write(child, inheriting: own, depth: depth + 1)
                case .text(let text):
                    if !text.allSatisfy(\.isWhitespace) { hasText = true }
                    xml.text(text)
                }
            }
        }
        xml.end()
    }

    private static func isRedacted(_ element: Element) -> Bool {
        // The longest placeholder has 64 bytes.
        guard element.textSize <= 64, element.elementCount == 0 else { return false }
        return Placeholder.isPlaceholder(Array(element.text.utf8).span)
    }

    /// Returns a `data:` URI up to its data; nil for another URI.
    private static func headOfDataURI(_ uri: String) -> String? {
        guard uri.prefix(5).lowercased() == "data:", let comma = uri.utf8.firstIndex(of: 0x2C) else { return nil }
        return String(uri[...comma])
    }
}

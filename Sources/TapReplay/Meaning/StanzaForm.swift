package import XMPPCore

/// The canonical form of an item: two items with the same form mean the same XML.
///
/// Namespaces are resolved; prefixes and quotes are normalised, attributes sorted, references replaced, and white space
/// between child elements removed.
package struct StanzaForm: Sendable {
    /// The parsed item.
    package let element: Element
    /// The form as bytes: XML, except that attributes with a namespace are written `{uri}name`.
    package var canonical: [UInt8] {
        var writer = CanonicalWriter()
        writer.write(element, inherited: [], depth: 0)
        return writer.bytes
    }

    /// The canonical form as text.
    package var text: String { String(decoding: canonical, as: UTF8.self) }

    /// The namespaces that a client's stream header declares.
    package static let clientDeclarations = Array(
        " xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8
    )

    /// Maximum depth of elements; deeper elements are left out. Real stanzas do not reach this depth.
    static let maximumDepth = 128

    /// Creates the form of an element.
    package init(_ element: Element) { self.element = element }

    /// Creates the form of an item; nil if libxml2 does not parse it as a single element.
    ///
    /// - Parameter root: The attributes of the item's stream header, between `<stream` and `>`.
    package init?(_ bytes: Span<UInt8>, parser: StanzaParser, root: [UInt8] = clientDeclarations) {
        guard let element = try? parser.parse(bytes, root: root) else { return nil }
        self.init(element)
    }

    /// Creates the form of an item; nil if libxml2 does not parse it as a single element.
    package init?(_ bytes: [UInt8], parser: StanzaParser, root: [UInt8] = clientDeclarations) {
        self.init(bytes.span, parser: parser, root: root)
    }

    /// The kind of stanza.
    package var kind: StanzaHead.Kind { element.stanzaKind }
    package var id: String? { element.attribute("id") }
    package var type: String? { element.attribute("type") }
    package var from: String? { element.attribute("from") }
    package var to: String? { element.attribute("to") }
    /// The first child.
    package var payload: Element? { element.firstChild }
    /// Whether a server delivers the item with delay (XEP-0203). An unexpected delayed item was sent before the
    /// recording or the replay.
    var isDelayed: Bool { element.child("delay", .delay) != nil }
    /// Whether the item carries data that the server stores: a roster, a card, an archived message, a list of items.
    var hasStoredData: Bool {
        guard let payload else { return false }
        switch payload.namespace {
        case .roster, .vCard, .vCard4, .privateStorage, .blocking, .privacy: return type == "result"
        case .pubsub: return type == "result" && payload.child("items", .pubsub) != nil
        case .archive, .archive1, .archive0: return kind == .message || type == "result"
        default: return false
        }
    }
}

extension StanzaForm: Hashable {
    /// Returns whether the canonical forms are equal.
    package static func == (left: StanzaForm, right: StanzaForm) -> Bool { left.canonical == right.canonical }
    /// Hashes the canonical form.
    package func hash(into hasher: inout Hasher) { hasher.combine(canonical) }
}

extension Element {
    /// The kind of stanza; an element without a namespace, outside a stream, counts as content too.
    var stanzaKind: StanzaHead.Kind {
        guard isContent else { return .nonza }
        return isNamed("iq") ? .iq : isNamed("message") ? .message : isNamed("presence") ? .presence : .nonza
    }

    /// Whether the element is in a stream's content namespace, or in no namespace.
    var isContent: Bool { namespace.isContent || namespace == .none }

    /// Returns whether the element is content in the same namespace as the stanza that contains it.
    func isContent(of stanza: Element) -> Bool { isContent && namespace == stanza.namespace }

    /// Whether the element has child elements and only white space between them.
    var isElementOnly: Bool {
        guard firstChild != nil else { return false }
        var isBlank = true
        forEachText { text in
            isBlank = isBlank && text.indices.allSatisfy { [0x20, 0x0A, 0x09, 0x0D].contains(text[$0]) }
        }
        return isBlank
    }
}

/// Writes the canonical form.
private struct CanonicalWriter {
    var bytes: [UInt8] = []

    mutating func write(_ element: Element, inherited: [UInt8], depth: Int) {
        let namespace = element.withNamespaceURI { Array($0) }
        bytes.append(0x3C)
        element.withName { bytes.append($0) }
        if namespace != inherited {
            bytes += " xmlns=\"".utf8
            escape(namespace.span)
            bytes.append(0x22)
        }
        var attributes: [[UInt8]] = []
        element.forEachAttribute { name, uri, value in attributes.append(Self.attribute(name, uri, value)) }
        attributes.sort { $0.lexicographicallyPrecedes($1) }
        for attribute in attributes { bytes += attribute }
        let head = bytes.count
        bytes.append(0x3E)
        if depth < StanzaForm.maximumDepth {
            if element.isElementOnly {
                element.forEachElement { child in
                    write(child, inherited: namespace, depth: depth + 1)
                    return true
                }
            } else {
                for content in element.contents {
                    switch content {
                    case .element(let child): write(child, inherited: namespace, depth: depth + 1)
                    case .text(let text): escape(text.utf8Span.span)
                    }
                }
            }
        }
        guard bytes.count > head + 1 else {
            bytes.removeLast()
            bytes += "/>".utf8
            return
        }
        bytes += "</".utf8
        element.withName { bytes.append($0) }
        bytes.append(0x3E)
    }

    private static func attribute(_ name: Span<UInt8>, _ uri: Span<UInt8>, _ value: Span<UInt8>) -> [UInt8] {
        var writer = CanonicalWriter(bytes: [0x20])
        if !uri.isEmpty {
            writer.bytes.append(0x7B)
            writer.bytes.append(uri)
            writer.bytes.append(0x7D)
        }
        writer.bytes.append(name)
        writer.bytes += "=\"".utf8
        writer.escape(value)
        writer.bytes.append(0x22)
        return writer.bytes
    }

    private mutating func escape(_ text: Span<UInt8>) {
        for index in text.indices {
            switch text[index] {
            case 0x26: bytes += "&amp;".utf8
            case 0x3C: bytes += "&lt;".utf8
            case 0x22: bytes += "&quot;".utf8
            case let byte: bytes.append(byte)
            }
        }
    }
}

extension Array where Element == UInt8 {
    init(_ span: borrowing Span<UInt8>) { self = span.withUnsafeBufferPointer { [UInt8]($0) } }
}

/// Creates an ``Element`` from an item with parts of the scanner instead of libxml2, at a fraction of the cost. Used to
/// describe items. Code that makes decisions about logins, or about items that parsers may read differently
/// (``StanzaHead/isUnusual``), uses ``StanzaParser``.
///
/// The item must have been accepted by the scanner; its secrets may have been replaced. Both readers give the same
/// tree; a test compares them for all known stanzas. Both refuse an item whose namespaces, repeated at each element,
/// would be larger than 64 KiB and 16 times the item.
package struct ElementReader: ~Copyable {
    private var reader = ItemReader()
    private var arena = ElementArena()
    /// Filled for each item, and then exchanged for the contents of the arena.
    private var contents = ElementArena.Contents()
    private var decoded: [UInt8] = []

    /// Creates a reader without an item.
    package init() {}

    /// Reads the element of `item`, which must be the last event of `decoder`; nil if it is not one whole element.
    package mutating func read(_ item: Span<UInt8>, in decoder: borrowing StreamDecoder) -> Element? {
        reader.begin(decoder)
        return fill(item)
    }

    /// Reads the element that is the last event of `decoder`, which must be complete; nil if it is not one element.
    package mutating func read(_ decoder: borrowing StreamDecoder) -> Element? {
        guard let outline = decoder.outline else { return read(decoder.bytes, in: decoder) }
        // Exchanges memory with the outline, so that the memory is reused for the next item.
        let mustDecode = outline.exchange(into: &contents)
        contents.resetBytes()
        let item = decoder.bytes
        guard !contents.isTooWide(itemBytes: item.count) else { return nil }
        _ = contents.append(item)
        for index in 0..<contents.nodes.count {
            let node = contents.nodes[index]
            if node.isText {
                guard needsDecoding(item, node.name) else { continue }
                decoded.removeAll(keepingCapacity: true)
                AttributeValue.decodeText(item.slice(node.name), into: &decoded)
                contents.setText(decoded, ofNode: index)
            } else if node.namespace == .other {
                decoded.removeAll(keepingCapacity: true)
                let name =
                    node.isInherited ? NamespaceName(inherited: node.uri) : NamespaceName(declared: node.uri)
                decoder.appendURI(of: name, to: &decoded)
                contents.setURI(decoded, ofNode: index)
            }
        }
        if mustDecode { decodeAttributes(item) }
        return takeElement()
    }

    private mutating func decodeAttributes(_ item: Span<UInt8>) {
        for index in 0..<contents.attributes.count where contents.attributes[index].needsDecoding {
            decoded.removeAll(keepingCapacity: true)
            AttributeValue.decode(item.slice(contents.attributes[index].value), into: &decoded)
            contents.setValue(decoded, ofAttribute: index)
        }
    }

    /// Reads an item outside a stream; nil if it is not one whole element.
    package mutating func read(_ item: Span<UInt8>) -> Element? {
        reader.begin()
        return fill(item)
    }

    private mutating func fill(_ item: Span<UInt8>) -> Element? {
        contents.reset(itemBytes: item.count)
        while !contents.isTooWide, let token = reader.next(item) {
            switch token {
            case .start: begin(item)
            case .text(let range):
                if needsDecoding(item, range) {
                    decoded.removeAll(keepingCapacity: true)
                    AttributeValue.decodeText(item.slice(range), into: &decoded)
                    contents.addText(decoded)
                } else {
                    contents.addText(item.slice(range))
                }
            case .section(let range, _): addSection(item.slice(range))
            case .end: contents.end()
            case .fault: return nil
            }
        }
        guard reader.depth == 0, !contents.isTooWide, contents.nodes.count > 0 else { return nil }
        return takeElement()
    }

    /// Returns the element of the contents, in an arena without other elements.
    private mutating func takeElement() -> Element {
        if !isKnownUniquelyReferenced(&arena) { arena = ElementArena() }
        arena.exchange(&contents)
        return Element(arena: arena, index: 0)
    }

    private mutating func begin(_ item: Span<UInt8>) {
        let namespace = reader.namespace
        var uri = ByteRange.empty
        if namespace == .other {
            decoded.removeAll(keepingCapacity: true)
            reader.appendNamespaceURI(to: &decoded)
            uri = contents.append(decoded)
        } else {
            uri = namespace.withURI { contents.append($0) }
        }
        let name = contents.append(item.slice(reader.name))
        contents.begin(name: name, uri: uri, namespace: namespace)
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard !attribute.isDeclaration else { continue }
            var uri = ByteRange.empty
            if attribute.namespace != .none {
                decoded.removeAll(keepingCapacity: true)
                reader.appendNamespaceURI(ofAttribute: index, item, to: &decoded)
                uri = contents.append(decoded)
            }
            var value = ByteRange.empty
            if attribute.needsDecoding {
                decoded.removeAll(keepingCapacity: true)
                AttributeValue.decode(item.slice(attribute.value), into: &decoded)
                value = contents.append(decoded)
            } else {
                value = contents.append(item.slice(attribute.value))
            }
            let name = contents.append(item.slice(attribute.name))
            contents.addAttribute(
                ElementArena.Attribute(name: name, uri: uri, value: value, namespace: attribute.namespace)
            )
        }
    }

    /// Returns whether character data contains a reference or a carriage return.
    private func needsDecoding(_ item: Span<UInt8>, _ range: ByteRange) -> Bool {
        var index = Int(range.start)
        while true {
            index = item.skipPlain(from: index, quote: 0x3C)
            guard index < Int(range.end) else { return false }
            if item[index] == 0x26 || item[index] == 0x0D { return true }
            index &+= 1
        }
    }

    /// Adds a CDATA section, which contains no references; its line ends become line feeds (XML 1.0 §2.11).
    private mutating func addSection(_ text: Span<UInt8>) {
        decoded.removeAll(keepingCapacity: true)
        for index in text.indices {
            guard text[index] == 0x0D else {
                decoded.append(text[index])
                continue
            }
            if index + 1 == text.count || text[index + 1] != 0x0A { decoded.append(0x0A) }
        }
        contents.addText(decoded)
    }
}

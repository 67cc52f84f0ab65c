/// Makes an ``Element`` of an item with the scanner's own parts instead of libxml2: for telling what an item says, at a
/// fraction of the cost. What decides on a login, and on items that parsers may read differently
/// (``StanzaHead/isUnusual``), asks ``StanzaParser``.
///
/// The item is one the scanner has accepted, or the same with its secrets replaced. Both readers give the same tree; a
/// test compares them over all the stanzas there are. An item whose namespaces, spelled out at each element, would be more
/// than 64 KiB and 16 times the item is read by neither.
public struct ElementReader: ~Copyable {
    private var reader = ItemReader()
    private var arena = ElementArena()
    private var decoded: [UInt8] = []

    /// A reader without an item.
    public init() {}

    /// The element of `item`, which stands where the last event of `decoder` stands; nil where it is not one whole
    /// element.
    public mutating func read(_ item: Span<UInt8>, in decoder: borrowing StreamDecoder) -> Element? {
        reader.begin(decoder)
        return fill(item)
    }

    /// The element that is the last event of `decoder`, which is whole; nil where it is not one.
    public mutating func read(_ decoder: borrowing StreamDecoder) -> Element? {
        guard let outline = decoder.outline else { return read(decoder.bytes, in: decoder) }
        takeArena()
        // The outline goes with the element and leaves its memory for the next one.
        outline.pointee.take(into: &arena.contents.pointee)
        let contents = arena.contents
        contents.pointee.resetBytes()
        let item = decoder.bytes
        guard !contents.pointee.isTooWide(itemBytes: item.count) else { return nil }
        _ = append(item, contents)
        for index in 0..<contents.pointee.nodes.count {
            let node = contents.pointee.nodes[index]
            if node.isText {
                guard needsDecoding(item, node.name) else { continue }
                decoded.removeAll(keepingCapacity: true)
                AttributeValue.decodeText(item.slice(node.name), into: &decoded)
                contents.pointee.nodes[index].name = append(decoded.span, contents)
            } else if node.namespace == .other {
                decoded.removeAll(keepingCapacity: true)
                let name =
                    node.isInherited ? NamespaceName(inherited: node.uri) : NamespaceName(declared: node.uri)
                decoder.appendURI(of: name, to: &decoded)
                contents.pointee.nodes[index].uri = append(decoded.span, contents)
            }
        }
        if outline.pointee.needsDecoding { decodeAttributes(item, contents) }
        return Element(arena: arena, index: 0)
    }

    private mutating func decodeAttributes(
        _ item: Span<UInt8>,
        _ contents: UnsafeMutablePointer<ElementArena.Contents>
    ) {
        for index in 0..<contents.pointee.attributes.count where contents.pointee.attributes[index].needsDecoding {
            decoded.removeAll(keepingCapacity: true)
            AttributeValue.decode(item.slice(contents.pointee.attributes[index].value), into: &decoded)
            contents.pointee.attributes[index].value = append(decoded.span, contents)
        }
    }

    /// The element of an item that stands in no stream; nil where it is not one whole element.
    public mutating func read(_ item: Span<UInt8>) -> Element? {
        reader.begin()
        return fill(item)
    }

    private mutating func fill(_ item: Span<UInt8>) -> Element? {
        takeArena()
        arena.reset(itemBytes: item.count)
        let contents = arena.contents
        while !contents.pointee.isTooWide, let token = reader.next(item) {
            switch token {
            case .start: begin(item, contents)
            case .text(let range):
                if needsDecoding(item, range) {
                    decoded.removeAll(keepingCapacity: true)
                    AttributeValue.decodeText(item.slice(range), into: &decoded)
                    addText(decoded.span, contents)
                } else {
                    addText(item.slice(range), contents)
                }
            case .section(let range, _): addSection(item.slice(range), contents)
            case .end: contents.pointee.end()
            case .fault: return nil
            }
        }
        guard reader.depth == 0, !contents.pointee.isTooWide, contents.pointee.nodes.count > 0 else { return nil }
        return Element(arena: arena, index: 0)
    }

    /// Has an arena that no element refers to any more.
    private mutating func takeArena() {
        if !isKnownUniquelyReferenced(&arena) { arena = ElementArena() }
    }

    private mutating func begin(_ item: Span<UInt8>, _ contents: UnsafeMutablePointer<ElementArena.Contents>) {
        let namespace = reader.namespace
        var uri = ByteRange.empty
        if namespace == .other {
            decoded.removeAll(keepingCapacity: true)
            reader.appendNamespaceURI(to: &decoded)
            uri = append(decoded.span, contents)
        } else {
            uri = contents.pointee.append(namespace.uri.utf8Start, namespace.uri.utf8CodeUnitCount)
        }
        contents.pointee.begin(name: append(item.slice(reader.name), contents), uri: uri, namespace: namespace)
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard !attribute.isDeclaration else { continue }
            decoded.removeAll(keepingCapacity: true)
            if attribute.namespace != .none { reader.appendNamespaceURI(ofAttribute: index, item, to: &decoded) }
            let uri = append(decoded.span, contents)
            var value = ByteRange.empty
            if attribute.needsDecoding {
                decoded.removeAll(keepingCapacity: true)
                AttributeValue.decode(item.slice(attribute.value), into: &decoded)
                value = append(decoded.span, contents)
            } else {
                value = append(item.slice(attribute.value), contents)
            }
            contents.pointee.addAttribute(
                ElementArena.Attribute(
                    name: append(item.slice(attribute.name), contents),
                    uri: uri,
                    value: value,
                    namespace: attribute.namespace
                )
            )
        }
    }

    /// Whether character data holds a reference or a carriage return.
    private func needsDecoding(_ item: Span<UInt8>, _ range: ByteRange) -> Bool {
        var index = Int(range.start)
        while true {
            index = item.skipPlain(from: index, quote: 0x3C)
            guard index < Int(range.end) else { return false }
            if item[index] == 0x26 || item[index] == 0x0D { return true }
            index &+= 1
        }
    }

    /// A CDATA section knows no references; its line ends become line feeds (XML 1.0 §2.11).
    private mutating func addSection(
        _ text: Span<UInt8>,
        _ contents: UnsafeMutablePointer<ElementArena.Contents>
    ) {
        decoded.removeAll(keepingCapacity: true)
        for index in text.indices {
            guard text[index] == 0x0D else {
                decoded.append(text[index])
                continue
            }
            if index + 1 == text.count || text[index + 1] != 0x0A { decoded.append(0x0A) }
        }
        addText(decoded.span, contents)
    }

    private func append(_ bytes: Span<UInt8>, _ contents: UnsafeMutablePointer<ElementArena.Contents>) -> ByteRange {
        bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else {
                return ByteRange(contents.pointee.bytes.count, contents.pointee.bytes.count)
            }
            return contents.pointee.append(base, buffer.count)
        }
    }

    private func addText(_ bytes: Span<UInt8>, _ contents: UnsafeMutablePointer<ElementArena.Contents>) {
        bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
            contents.pointee.addText(base, buffer.count)
        }
    }
}

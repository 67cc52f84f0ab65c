/// The flat storage of one parsed item: nodes in document order, attributes, and the bytes of all names and values.
///
/// A reader fills ``Contents`` and exchanges them for those of the arena. The contents of an arena never change while
/// an ``Element`` refers to it: in that case the reader uses a new arena.
final class ElementArena {
    struct Node: BitwiseCopyable {
        /// Index of the enclosing node, -1 for the item itself.
        var parent: Int32
        /// Index after the last node inside this one.
        var end: Int32
        /// The local name, or the text.
        var name: ByteRange
        /// The namespace URI, for an element.
        var uri = ByteRange.empty
        var namespace = Namespace.none
        /// Whether `name` is text, not the name of an element.
        var isText = false
        /// In an outline: whether `uri` is in the declarations of the stream's header, not in the item.
        var isInherited = false
        var firstAttribute: Int32 = 0
        var attributeCount: Int32 = 0
    }

    struct Attribute: BitwiseCopyable {
        var name: ByteRange
        var uri: ByteRange
        var value: ByteRange
        var namespace: Namespace
        /// In an outline: whether `value` must be decoded.
        var needsDecoding = false
    }

    private var contents = Contents()

    /// Exchanges the contents. No element may refer to the arena.
    func exchange(_ others: inout Contents) { swap(&contents, &others) }

    func node(_ index: Int) -> Node { contents.nodes[index] }
    func attribute(_ index: Int) -> Attribute { contents.attributes[index] }

    /// Returns the bytes of a range in this arena as text.
    func text(_ range: ByteRange) -> String { String(decoding: bytes(range), as: UTF8.self) }

    /// Returns the bytes of a range in this arena, valid during the life of the arena.
    @inline(__always)
    func bytes(_ range: ByteRange) -> UnsafeBufferPointer<UInt8> { contents.bytes.unsafeBuffer(range.range) }

    @inline(__always)
    func equals(_ range: ByteRange, _ text: StaticString) -> Bool {
        range.count == text.utf8CodeUnitCount && bytes(range).span.equals(text)
    }

    struct Contents: ~Copyable {
        private(set) var nodes = UniqueArray<Node>()
        private(set) var attributes = UniqueArray<Attribute>()
        /// The bytes of names, values and texts.
        private(set) var bytes = UniqueArray<UInt8>()
        private(set) var openNode: Int32 = -1
        private var textNode: Int32 = -1
        /// Bytes of the URIs of all elements and attributes, each occurrence counted, except those of the table.
        private var uriBytes = 0
        private var uriLimit = Int.max

        mutating func reset(itemBytes: Int = .max) {
            uriBytes = 0
            uriLimit = Self.uriLimit(itemBytes: itemBytes)
            nodes.removeAll(keepingCapacity: 1024)
            attributes.removeAll(keepingCapacity: 1024)
            resetBytes()
            openNode = -1
            textNode = -1
        }

        mutating func resetBytes() { bytes.removeAll(keepingCapacity: 64 << 10) }

        /// Whether the namespaces, if repeated at each element, would be many times the size of the item: a prefix of
        /// one letter can represent 64 KiB, thousands of times. Such an item must not be copied, rewritten or compared.
        var isTooWide: Bool { uriBytes > uriLimit }

        /// Returns whether the contents are too wide for an item of this size; for contents that were filled without
        /// knowing the size.
        func isTooWide(itemBytes: Int) -> Bool { uriBytes > Self.uriLimit(itemBytes: itemBytes) }

        private static func uriLimit(itemBytes: Int) -> Int {
            let (product, overflows) = itemBytes.multipliedReportingOverflow(by: 16)
            return overflows ? .max : max(product, 64 << 10)
        }

        @inline(__always)
        mutating func append(_ more: Span<UInt8>) -> ByteRange {
            let start = bytes.count
            bytes.append(copying: more)
            return ByteRange(start, bytes.count)
        }

        mutating func append(_ more: [UInt8]) -> ByteRange { append(more.span) }

        /// Replaces a text by its decoded form.
        mutating func setText(_ text: [UInt8], ofNode index: Int) { nodes[index].name = append(text) }

        /// Replaces the range of a URI by the URI.
        mutating func setURI(_ uri: [UInt8], ofNode index: Int) { nodes[index].uri = append(uri) }

        /// Replaces a value by its decoded form.
        mutating func setValue(_ value: [UInt8], ofAttribute index: Int) { attributes[index].value = append(value) }

        @inline(__always)
        mutating func begin(name: ByteRange, uri: ByteRange, namespace: Namespace, isInherited: Bool = false) {
            textNode = -1
            if namespace == .other { uriBytes &+= uri.count }
            let index = Int32(truncatingIfNeeded: nodes.count)
            nodes.append(
                Node(
                    parent: openNode,
                    end: index &+ 1,
                    name: name,
                    uri: uri,
                    namespace: namespace,
                    isInherited: isInherited,
                    firstAttribute: Int32(truncatingIfNeeded: attributes.count)
                )
            )
            openNode = index
        }

        /// Adds an attribute to the last begun element.
        @inline(__always)
        mutating func addAttribute(_ attribute: Attribute) {
            guard openNode >= 0 else { return }
            if attribute.namespace == .other { uriBytes &+= attribute.uri.count }
            attributes.append(attribute)
            nodes[Int(openNode)].attributeCount &+= 1
        }

        @inline(__always)
        mutating func end() {
            textNode = -1
            guard openNode >= 0 else { return }
            nodes[Int(openNode)].end = Int32(truncatingIfNeeded: nodes.count)
            openNode = nodes[Int(openNode)].parent
        }

        /// Adds the character data at `range`.
        @inline(__always)
        mutating func addText(_ range: ByteRange) {
            guard openNode >= 0 else { return }
            let index = Int32(truncatingIfNeeded: nodes.count)
            nodes.append(Node(parent: openNode, end: index &+ 1, name: range, isText: true))
        }

        /// Adds decoded character data, joined to directly preceding data.
        mutating func addText(_ text: [UInt8]) { addText(text.span) }

        /// Adds character data, joined to directly preceding data.
        mutating func addText(_ text: Span<UInt8>) {
            guard openNode >= 0, !text.isEmpty else { return }
            let range = append(text)
            if textNode >= 0 {
                nodes[Int(textNode)].name.end = range.end
                return
            }
            textNode = Int32(truncatingIfNeeded: nodes.count)
            nodes.append(Node(parent: openNode, end: textNode &+ 1, name: range, isText: true))
        }
    }
}

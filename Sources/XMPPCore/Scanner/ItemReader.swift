/// Reads one whole item in place: tags and pieces of character data with their exact ranges.
///
/// For callers that change some bytes and leave all others unchanged, such as redaction. libxml2 does not report the
/// position of a value, so this reader uses the scanner's parts instead of making an ``Element``. The item must have
/// been accepted by the scanner. It is not checked again, but any other input ends in ``Token/fault``, never in a
/// crash. Reuse a reader for all items: then it does not allocate.
package struct ItemReader: ~Copyable {
    /// The token at the current position of the item.
    package enum Token: Sendable, Hashable {
        /// A start tag, described by ``ItemReader/name``, ``ItemReader/namespace`` and the attributes. An empty-element
        /// tag is followed by ``end``.
        case start
        /// Character data, not decoded.
        case text(ByteRange)
        /// A CDATA section: its content, and the content including the markup.
        case section(ByteRange, markup: ByteRange)
        /// The end of the innermost open element.
        case end
        /// The item was not accepted by the scanner, or was read before.
        case fault
    }

    /// An attribute of the current start tag.
    package struct Attribute: Sendable, Hashable {
        /// The local name.
        package var name: ByteRange
        /// The namespace of the attribute's prefix; ``Namespace/none`` if it has no prefix.
        package var namespace: Namespace
        /// The value between its quotes, not decoded.
        package var value: ByteRange
        /// Whether the value must be decoded; see ``AttributeValue/decode(_:into:)``.
        package var needsDecoding: Bool
        /// Whether the attribute is a namespace declaration.
        package var isDeclaration: Bool
    }

    private struct Open {
        var bindings: Int32
        var defaultBinding: Int32
    }

    /// Local name of the current start tag.
    package private(set) var name = ByteRange.empty
    /// Namespace of the current start tag.
    package private(set) var namespace = Namespace.none
    /// The range of the current start tag.
    package private(set) var tagRange = ByteRange.empty

    private var tag = Tag()
    private var binding = NamespaceScope.unbound
    private var scope = NamespaceScope()
    private var open: [Open] = []
    private var rootBinding: Int32 = -1
    private var rootCount = 0
    private var cursor = 0
    private var hasEndPending = false
    private var isFaulted = true

    /// Creates a reader without an item.
    package init() {}

    /// Begins reading the item of the decoder's last event.
    package mutating func begin(_ decoder: borrowing StreamDecoder) {
        decoder.copyScope(to: &scope)
        reset()
    }

    /// Begins reading an item outside a stream: only its own declarations apply.
    package mutating func begin() {
        scope.removeAll()
        reset()
    }

    /// Begins reading the same item again.
    package mutating func rewind() {
        scope.leave(to: rootCount)
        reset()
    }

    private mutating func reset() {
        open.removeAll(keepingCapacity: true)
        rootCount = scope.count
        rootBinding = scope.defaultBinding
        cursor = 0
        hasEndPending = false
        isFaulted = false
    }

    /// Number of open elements, including the item's own.
    package var depth: Int { open.count }

    /// Number of attributes of the current start tag, including namespace declarations.
    package var attributeCount: Int { tag.attributes.count }

    /// Returns an attribute of the current start tag; `item` is the same as for ``next(_:)``.
    package func attribute(_ index: Int, _ item: Span<UInt8>) -> Attribute {
        let attribute = tag.attributes[index]
        return Attribute(
            name: ByteRange(attribute.localName.lowerBound, attribute.localName.upperBound),
            namespace: attribute.isDeclaration ? .xmlns : namespace(prefix: item.extracting(attribute.prefix)),
            value: attribute.value,
            needsDecoding: attribute.needsDecoding,
            isDeclaration: attribute.isDeclaration
        )
    }

    /// Appends the URI of the current start tag's namespace; nothing if it has none.
    package func appendNamespaceURI(to output: inout [UInt8]) { scope.appendURI(of: binding, to: &output) }

    /// Appends the URI of an attribute's namespace; nothing if it has none.
    func appendNamespaceURI(ofAttribute index: Int, _ item: Span<UInt8>, to output: inout [UInt8]) {
        let prefix = item.extracting(tag.attributes[index].prefix)
        guard !prefix.isEmpty, let binding = scope.find(prefix) else { return }
        scope.appendURI(of: binding, to: &output)
    }

    private func namespace(prefix: Span<UInt8>) -> Namespace {
        guard !prefix.isEmpty else { return .none }
        guard let binding = scope.find(prefix) else { return .other }
        return scope.namespace(binding)
    }

    /// Returns the next token; nil at the end of `item`, which must be the same at each call.
    package mutating func next(_ item: Span<UInt8>) -> Token? {
        if hasEndPending {
            hasEndPending = false
            return close()
        }
        guard !isFaulted else { return fault() }
        guard cursor < item.count else { return nil }
        guard item[cursor] == 0x3C else { return readText(item) }
        guard cursor &+ 1 < item.count else { return fault() }
        switch item[cursor &+ 1] {
        case 0x21: return readSection(item)
        case 0x3F: return readDeclaration(item)
        default: return readTag(item)
        }
    }

    /// Skips the declaration at the beginning of a message (RFC 7395); it is a fault anywhere else.
    private mutating func readDeclaration(_ item: Span<UInt8>) -> Token? {
        guard cursor == 0, case .complete(let end) = XMLDeclaration.check(item) else { return fault() }
        cursor = end
        return next(item)
    }

    /// Skips white space around the element of a message (RFC 7395); other text is a fault there.
    private mutating func readOutside(_ item: Span<UInt8>) -> Token? {
        while cursor < item.count, XMLCharacters.isWhitespace(item[cursor]) { cursor &+= 1 }
        return cursor == item.count || item[cursor] == 0x3C ? next(item) : fault()
    }

    private mutating func readText(_ item: Span<UInt8>) -> Token? {
        guard !open.isEmpty else { return readOutside(item) }
        let start = cursor
        while cursor < item.count, item[cursor] != 0x3C {
            cursor = item.skipPlain(from: cursor, quote: 0x3C)
            // Skips any other byte at which the scan stopped: it has no special meaning here, and the scanner has
            // checked it.
            if cursor < item.count, item[cursor] != 0x3C { cursor &+= 1 }
        }
        return .text(ByteRange(start, cursor))
    }

    private mutating func readSection(_ item: Span<UInt8>) -> Token {
        let start = cursor
        guard !open.isEmpty, start &+ 12 <= item.count, item.extracting(start..<(start &+ 9)).equals("<![CDATA[")
        else { return fault() }
        var end = start &+ 9
        while end &+ 2 < item.count {
            if item[end] == 0x5D, item[end &+ 1] == 0x5D, item[end &+ 2] == 0x3E {
                cursor = end &+ 3
                return .section(ByteRange(start &+ 9, end), markup: ByteRange(start, cursor))
            }
            end &+= 1
        }
        return fault()
    }

    private mutating func readTag(_ item: Span<UInt8>) -> Token {
        guard case .complete = tag.read(item, at: cursor, limits: .unlimited) else { return fault() }
        tagRange = ByteRange(cursor, tag.end)
        cursor = tag.end
        guard tag.kind != .end else { return close() }
        let bindings = scope.count
        if tag.hasDeclarations, scope.enter(tag, in: item, isHeader: false, limit: .max) != nil { return fault() }
        let inherited = open.last?.defaultBinding ?? rootBinding
        let ownDefault = tag.hasDeclarations ? scope.defaultBinding : inherited
        name = tag.localName
        if tag.colon < 0 {
            binding = ownDefault
            namespace = scope.namespace(ownDefault)
        } else if let found = scope.find(tag.prefix(in: item)) {
            binding = found
            namespace = scope.namespace(found)
        } else {
            binding = NamespaceScope.unbound
            namespace = .other
        }
        open.append(Open(bindings: Int32(truncatingIfNeeded: bindings), defaultBinding: ownDefault))
        hasEndPending = tag.kind == .empty
        return .start
    }

    private mutating func close() -> Token {
        guard let last = open.popLast() else { return fault() }
        scope.leave(to: max(rootCount, Int(last.bindings)))
        return .end
    }

    private mutating func fault() -> Token {
        isFaulted = true
        return .fault
    }
}

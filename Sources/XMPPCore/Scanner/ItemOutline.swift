/// The structure of an item as the scanner has seen it, kept for the item's next reader: elements, attributes and runs
/// of text, by their offsets.
///
/// Reading an item a second time costs as much as scanning it; using the outline costs next to nothing. One outline
/// serves all decoders of an event loop, so that an idle stream needs none: it belongs to the item that began last. If
/// an item arrived in several reads with another stream's data between them, its outline is lost, and the reader parses
/// its bytes again. It also does so if the item contains parts that an outline does not support (CDATA sections,
/// prefixed attributes).
public final class ItemOutline {
    /// No method calls anything that comes back to the outline. With checks of exclusive access at each tag, to read a tree took 12,587
    /// instructions a stanza instead of 10,293.
    @exclusivity(unchecked) private var state = State()

    /// An outline of nothing.
    public init() {}

    /// Begins an item; gives the word by which its scanner knows later whether the outline is still its own.
    func beginItem() -> UInt64 { state.beginItem() }

    /// The tag at `start` of `window` opens an element, if the outline is still of `item`.
    func open(_ tag: borrowing Tag, at start: Int, of window: Span<UInt8>, _ name: NamespaceName, in item: UInt64) {
        if state.item == item { state.open(tag, at: start, of: window, name) }
    }

    /// The tag from `start` to `end` closes the innermost element, if the outline is still of `item`.
    @inline(__always)
    func close(at start: Int, end: Int, of item: UInt64) {
        if state.item == item { state.close(at: start, end: end) }
    }

    /// The item holds something that is not in the outline, if that is still of `item`.
    func giveUp(_ item: UInt64) {
        if state.item == item { state.isPartial = true }
    }

    /// Whether all of `item` is in the outline.
    func isWhole(_ item: UInt64) -> Bool {
        state.item == item && !state.isPartial && state.contents.openNode < 0 && state.contents.nodes.count > 0
    }

    /// Exchanges the outline for `contents`; after that there is none until the next item.
    ///
    /// - Returns: Whether the value of an attribute is not what is written.
    func take(into contents: inout ElementArena.Contents) -> Bool {
        swap(&state.contents, &contents)
        state.isPartial = true
        return state.needsDecoding
    }

    /// Number of nodes.
    fileprivate var nodeCount: Int { state.contents.nodes.count }

    /// A node.
    fileprivate func node(_ index: Int) -> ElementArena.Node { state.contents.nodes[index] }

    private struct State: ~Copyable {
        /// Nodes whose names, values and texts are offsets in the item; those of a text are as written.
        var contents = ElementArena.Contents()
        /// Which item it is of; 0 is none.
        var item: UInt64 = 0
        /// The item holds something that is not in the outline.
        var isPartial = false
        /// The value of an attribute is not what is written.
        var needsDecoding = false
        /// Offset behind the last tag.
        private var tagEnd = 0

        /// Elements, attributes and texts kept of an item.
        private static let mostNodes = 1 << 16

        mutating func beginItem() -> UInt64 {
            contents.reset()
            item &+= 1
            isPartial = false
            needsDecoding = false
            tagEnd = 0
            return item
        }

        mutating func open(_ tag: borrowing Tag, at start: Int, of item: Span<UInt8>, _ name: NamespaceName) {
            // The rest is not needed, and may be millions of elements.
            guard !isPartial else { return }
            addText(to: start)
            tagEnd = tag.end
            var uri = ByteRange.empty
            var isInherited = false
            switch name.source {
            case .known: break
            case .item(let range): uri = range
            case .inherited(let range):
                uri = range
                isInherited = true
            }
            contents.begin(name: tag.localName, uri: uri, namespace: name.namespace, isInherited: isInherited)
            let attributes = tag.attributes.span
            for index in attributes.indices {
                let attribute = attributes[index]
                if attribute.isDeclaration { continue }
                let isOfXML = attribute.colon >= 0
                // The prefix that needs no declaration, as in `xml:lang`; others are left to the reader.
                if isOfXML, !item.extracting(attribute.prefix).equals("xml") { isPartial = true }
                if attribute.needsDecoding { needsDecoding = true }
                contents.addAttribute(
                    ElementArena.Attribute(
                        name: isOfXML ? ByteRange(Int(attribute.colon) &+ 1, Int(attribute.name.end)) : attribute.name,
                        uri: .empty,
                        value: attribute.value,
                        namespace: isOfXML ? .xml : .none,
                        needsDecoding: attribute.needsDecoding
                    )
                )
            }
            if tag.kind == .empty { contents.end() }
            if contents.nodes.count &+ contents.attributes.count > Self.mostNodes { isPartial = true }
        }

        @inline(__always)
        mutating func close(at start: Int, end: Int) {
            guard !isPartial else { return }
            addText(to: start)
            tagEnd = end
            contents.end()
        }

        @inline(__always)
        private mutating func addText(to end: Int) {
            if tagEnd > 0, end > tagEnd { contents.addText(ByteRange(tagEnd, end)) }
        }
    }
}

/// A child element of an item, as its outline tells it.
public struct OutlinedChild: Sendable, BitwiseCopyable {
    /// The content of the element.
    public enum Content: Sendable, BitwiseCopyable {
        /// Character data as written, in the item, or nothing.
        case text(ByteRange)
        /// One element, of the same namespace, with nothing but text inside.
        case element(name: ByteRange, text: ByteRange)
        case other
    }

    /// Local name, in the item.
    public let name: ByteRange
    /// Namespace.
    public let namespace: Namespace
    /// The range of the declaration if the item declares the namespace and it is ``Namespace/other``, as written;
    /// otherwise empty, as when the stream's header declares it.
    public let uri: ByteRange
    /// The content of the element.
    public let content: Content
}

extension StreamDecoder {
    /// Calls `body` with each child element of the last event's item, in order, until it returns false.
    ///
    /// - Returns: whether `body` was called with all; false also if the decoder has no outline of the item.
    public func forEachChild(_ body: (OutlinedChild) -> Bool) -> Bool {
        guard let outline else { return false }
        var index = 1
        while index < outline.nodeCount {
            let node = outline.node(index)
            let end = max(Int(node.end), index + 1)
            if !node.isText {
                let content = outline.content(index, end)
                let child = OutlinedChild(
                    name: node.name,
                    namespace: node.namespace,
                    uri: node.isInherited ? .empty : node.uri,
                    content: content
                )
                guard body(child) else { return false }
            }
            index = end
        }
        return true
    }

}

extension ItemOutline {
    /// The content of the element at `index`, all of which is before `end`.
    fileprivate func content(_ index: Int, _ end: Int) -> OutlinedChild.Content {
        if let text = text(index, end) { return .text(text) }
        let inner = node(index + 1)
        guard !inner.isText, inner.end == end, inner.namespace == node(index).namespace, inner.namespace != .other,
            let text = text(index + 1, end)
        else { return .other }
        return .element(name: inner.name, text: text)
    }

    /// The text of an element without elements: one run, or none.
    private func text(_ index: Int, _ end: Int) -> ByteRange? {
        if end == index + 1 { return .empty }
        guard end == index + 2, case let inner = node(index + 1), inner.isText else { return nil }
        return inner.name
    }
}

/// The structure of an item as found by the scanner, stored for the item's next reader: elements, attributes and texts,
/// by their offsets.
///
/// Reading an item a second time costs as much as scanning it; using the outline costs almost nothing. One outline
/// serves all decoders of an event loop, so that an idle stream needs none: it belongs to the item that began last. If
/// an item arrived in several reads with another stream's data between them, its outline is lost, and the reader parses
/// its bytes again. The reader also parses an item again if it contains parts that an outline does not support (CDATA
/// sections, prefixed attributes).
public final class ItemOutline {
    /// Unchecked, because no method makes a call that accesses the outline again. With checks of exclusive access at
    /// each tag, reading a tree took 12,587 instructions per stanza instead of 10,293.
    @exclusivity(unchecked) private var state = State()

    package init() {}

    /// Begins an item; returns the number with which its scanner later checks whether the outline still belongs to it.
    func beginItem() -> UInt64 { state.beginItem() }

    /// Handles the tag at `start` of `window`, which opens an element, if the outline still belongs to `item`.
    func open(_ tag: borrowing Tag, at start: Int, of window: Span<UInt8>, _ name: NamespaceName, in item: UInt64) {
        if state.item == item { state.open(tag, at: start, of: window, name) }
    }

    /// Handles the tag from `start` to `end`, which closes the innermost element, if the outline still belongs to
    /// `item`.
    @inline(__always)
    func close(at start: Int, end: Int, of item: UInt64) {
        if state.item == item { state.close(at: start, end: end) }
    }

    /// Marks the outline as incomplete, if it still belongs to `item`.
    func giveUp(_ item: UInt64) {
        if state.item == item { state.isPartial = true }
    }

    /// Returns whether the outline contains all of `item`.
    func isWhole(_ item: UInt64) -> Bool {
        state.item == item && !state.isPartial && state.contents.openNode < 0 && state.contents.nodes.count > 0
    }

    /// Exchanges the outline for `contents`; afterwards the outline is incomplete until the next item begins.
    ///
    /// - Returns: Whether an attribute value must be decoded.
    func exchange(into contents: inout ElementArena.Contents) -> Bool {
        swap(&state.contents, &contents)
        state.isPartial = true
        return state.needsDecoding
    }

    /// Number of nodes.
    fileprivate var nodeCount: Int { state.contents.nodes.count }

    /// Returns a node.
    fileprivate func node(_ index: Int) -> ElementArena.Node { state.contents.nodes[index] }

    private struct State: ~Copyable {
        /// Nodes whose names, values and texts are offsets in the item; texts are not decoded.
        var contents = ElementArena.Contents()
        /// The number of the item that the outline belongs to; 0 for none.
        var item: UInt64 = 0
        /// Whether the item contains parts that are not in the outline.
        var isPartial = false
        /// Whether an attribute value must be decoded.
        var needsDecoding = false
        /// Offset after the last tag.
        private var tagEnd = 0

        /// Maximum number of elements, attributes and texts of an item.
        private static let maximumNodes = 1 << 16

        mutating func beginItem() -> UInt64 {
            contents.reset()
            item &+= 1
            isPartial = false
            needsDecoding = false
            tagEnd = 0
            return item
        }

        mutating func open(_ tag: borrowing Tag, at start: Int, of item: Span<UInt8>, _ name: NamespaceName) {
            // An incomplete outline is not used, and the rest of the item can be millions of elements.
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
                // Only the prefix `xml`, which needs no declaration, is supported; other prefixes are left to the
                // reader.
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
            if contents.nodes.count &+ contents.attributes.count > Self.maximumNodes { isPartial = true }
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

/// A child element of an item, from its outline.
package struct OutlinedChild: Sendable, BitwiseCopyable {
    /// The content of the element.
    package enum Content: Sendable, BitwiseCopyable {
        /// Character data in the item, not decoded, or nothing.
        case text(ByteRange)
        /// One element in the same namespace that contains only text.
        case element(name: ByteRange, text: ByteRange)
        case other
    }

    /// Local name, in the item.
    package let name: ByteRange
    /// Namespace.
    package let namespace: Namespace
    /// The range of the declaration, not decoded, if the item declares the namespace and it is ``Namespace/other``;
    /// otherwise empty, for example if the stream's header declares it.
    package let uri: ByteRange
    /// The content of the element.
    package let content: Content
}

extension StreamDecoder {
    /// Calls `body` with each child element of the last event's item, in order, until it returns false.
    ///
    /// - Returns: Whether `body` was called with all children; false also if the decoder has no outline of the item.
    package func forEachChild(_ body: (OutlinedChild) -> Bool) -> Bool {
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
    /// Returns the content of the element at `index`, which ends before `end`.
    fileprivate func content(_ index: Int, _ end: Int) -> OutlinedChild.Content {
        if let text = text(index, end) { return .text(text) }
        let inner = node(index + 1)
        guard !inner.isText, inner.end == end, inner.namespace == node(index).namespace, inner.namespace != .other,
            let text = text(index + 1, end)
        else { return .other }
        return .element(name: inner.name, text: text)
    }

    /// Returns the text of an element without child elements; empty if there is none.
    private func text(_ index: Int, _ end: Int) -> ByteRange? {
        if end == index + 1 { return .empty }
        guard end == index + 2, case let inner = node(index + 1), inner.isText else { return nil }
        return inner.name
    }
}

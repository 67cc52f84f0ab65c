/// What the scanner has seen of an item, kept for whoever reads the item next: elements, attributes and runs of text,
/// by their offsets.
///
/// Reading an item a second time costs as much as scanning it; this costs next to nothing. One outline serves all
/// decoders of an event loop, so that an idle stream keeps none: it belongs to the item that was begun last. Of an item
/// whose bytes came in several reads with another stream's between them nothing is left, and the reader goes through its
/// bytes again; so it does where an item holds what an outline does not tell (CDATA sections, prefixed attributes).
public final class ItemOutline {
    /// Reached by a plain pointer, since it is written at every tag.
    let state: UnsafeMutablePointer<State>

    /// An outline of nothing.
    public init() {
        state = .allocate(capacity: 1)
        state.initialize(to: State())
    }

    deinit {
        state.pointee.contents.deallocate()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    struct State {
        /// Nodes whose names, values and texts are offsets in the item; those of a text are as written.
        var contents = ElementArena.Contents()
        /// Which item it is of; 0 is none.
        private(set) var item: UInt64 = 0
        /// The item holds something that is not told here.
        var isPartial = false
        /// The value of an attribute is not what is written.
        private(set) var needsDecoding = false
        /// Offset behind the last tag.
        private var tagEnd = 0

        /// Elements, attributes and texts kept of an item.
        private static let mostNodes = 1 << 16

        /// Begins an item; gives the word by which its scanner knows later whether the outline is still its own.
        mutating func beginItem() -> UInt64 {
            contents.reset()
            item &+= 1
            isPartial = false
            needsDecoding = false
            tagEnd = 0
            return item
        }

        /// Gives the outline away; after that there is none until the next item.
        mutating func take(into contents: inout ElementArena.Contents) {
            swap(&self.contents, &contents)
            isPartial = true
        }

        /// The tag at `start` of `item` opens an element.
        mutating func open(_ tag: borrowing Tag, at start: Int, of item: Span<UInt8>, _ name: NamespaceName) {
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
            for index in 0..<tag.attributes.count {
                let attribute = tag.attributes[index]
                if attribute.isDeclaration { continue }
                let isOfXML = attribute.colon >= 0
                // The prefix that needs no declaration, as in `xml:lang`; others are left to the reader.
                if isOfXML, !item.extracting(attribute.prefix).equals("xml") { isPartial = true }
                if attribute.needsDecoding { needsDecoding = true }
                contents.addAttribute(
                    ElementArena.Attribute(
                        name: ByteRange(attribute.localName.lowerBound, attribute.localName.upperBound),
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

        /// The tag from `start` to `end` closes the innermost element.
        @inline(__always)
        mutating func close(at start: Int, end: Int) {
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

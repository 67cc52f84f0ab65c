/// Finds where each top-level item of an XMPP stream ends, and alone decides what is acceptable.
///
/// The scanner is deterministic and pure: no socket, no clock, no thread. It keeps no bytes. The caller shows it a
/// *window* that begins with the first byte of the current item; the scanner remembers how far it has looked, so that
/// no byte is scanned twice however the input is cut, and every cut gives the same items. Only a run of white space
/// between items may come in pieces, as its bytes arrive.
///
/// Acceptable is restricted XML (RFC 6120 §11.1): strict UTF-8, no control characters but TAB, LF and CR, no DOCTYPE,
/// comment or processing instruction, no entity but the five; balanced tags, no attribute twice, no unbound prefix;
/// all within ``StreamLimits``.
public struct StanzaScanner: ~Copyable {
    /// What a look at the window gave.
    public enum Step {
        /// An item of `length` bytes stands at the beginning of the window. Take it away before the next look.
        case item(Item)
        /// The item is not complete; show the same window again with more bytes behind it.
        case incomplete
        /// The bytes at this offset of the window are not acceptable; nothing more can be said of this stream.
        case fault(ScanFault.Code, at: Int, limit: Int)
    }

    /// A top-level item.
    public struct Item {
        /// What stands at the top level of a stream.
        public enum Kind: Sendable {
            /// `<?xml …?>`; begins a new epoch.
            case declaration
            /// `<stream:stream …>`; begins a new epoch where no declaration did.
            case header
            /// A stanza or other element at depth 1.
            case element
            /// White space between items: all that has arrived of it.
            case whitespace
            /// `</stream:stream>`, or the end of a header that closed itself.
            case end
        }

        /// What it is.
        public var kind: Kind
        /// Bytes from the beginning of the window.
        public var length: Int
        /// Of a header or element.
        public var head: StanzaHead
        /// The item begins a new epoch: a declaration, or a header without one.
        public var beginsEpoch: Bool
    }

    /// An open element. Its name is looked at again when it ends.
    struct Open: BitwiseCopyable {
        /// Offset of the qualified name: in the window, or, once that part of the window has gone, in `names`.
        var nameStart: Int32 = 0
        var nameCount: Int32 = 0
        var isNameStored = false
        /// Declarations in force outside it.
        var bindings: Int32 = 0
        /// The default namespace inside it; see ``NamespaceScope``.
        var defaultBinding = NamespaceScope.unbound
    }

    enum State {
        /// Between items: before the header, or at depth 1.
        case between
        /// In the content of an element; the cursor is where to go on.
        case content
        /// In a CDATA section.
        case section
        /// In a tag that begins at the cursor and is not complete; looked for its end up to `searched`.
        case tag(searched: Int, quote: UInt8, last: UInt8)
        case ended
        case faulted(ScanFault.Code, at: Int, limit: Int)
    }

    /// What a part of the scanner has come to: ``Step`` without the head, which is large.
    enum Signal {
        case more
        case incomplete
        case item(Item.Kind, length: Int, beginsEpoch: Bool)
        case fault(ScanFault.Code, at: Int, limit: Int)
    }

    /// Changeable at any time; what is measured from then on is measured against these.
    public var limits: StreamLimits {
        didSet { limits = limits.clamped }
    }

    var state = State.between
    var cursor = 0
    var head = StanzaHead()
    var seenDeclaration = false
    /// Offsets in the window are no longer offsets in the item: the head takes nothing more.
    var hasDiscarded = false
    var tag = Tag()
    var scope = NamespaceScope()
    var open = ReusedArray<Open>()
    /// The names of open elements that are in the window no more, outermost first.
    var names: [UInt8] = []
    let secrets = SecretNames.sieve
    /// Told of every tag of an item, where there is one.
    let outline: ItemOutline?
    /// Its state, which costs no count of references.
    let outlineState: UnsafeMutablePointer<ItemOutline.State>?
    /// The word for the current item in the outline.
    var outlinedItem: UInt64 = 0

    /// The declarations of the stream header, as they would stand in a tag: ` xmlns:prefix='uri'` for each.
    public internal(set) var declarations: [UInt8] = []

    /// A scanner at the beginning of a stream. Where there is an `outline`, it is filled for ``ElementReader``.
    public init(limits: StreamLimits = .unauthenticated, outline: ItemOutline? = nil) {
        self.limits = limits.clamped
        self.outline = outline
        outlineState = outline?.state
    }

    /// Whether a header has been seen whose end has not.
    public var isInStream: Bool { open.count > 0 }

    /// What is known so far of the item that is not complete yet, or never will be; empty between items, and once the
    /// beginning of the item has been given up.
    public var partialHead: StanzaHead {
        switch state {
        case .between, .ended: StanzaHead()
        default: hasDiscarded ? StanzaHead() : head
        }
    }

    /// Whether the current item is an element whose start tag has been read.
    public var isInsideElement: Bool { open.count > 1 }

    /// Looks at the window for the current item.
    public mutating func next(_ window: Span<UInt8>) -> Step {
        switch look(window) {
        case .item(let kind, let length, let beginsEpoch):
            .item(Item(kind: kind, length: length, head: head, beginsEpoch: beginsEpoch))
        case .fault(let code, let at, let limit): .fault(code, at: at, limit: limit)
        case .incomplete, .more: .incomplete
        }
    }

    /// The same; the head of an item is then in `head`. Never gives `more`.
    mutating func look(_ window: Span<UInt8>) -> Signal {
        while true {
            let signal: Signal
            switch state {
            case .between: signal = readBetween(window)
            case .content: signal = readContent(window)
            case .section: signal = readSection(window)
            case .tag(let searched, let quote, let last):
                guard findTagEnd(window, from: searched, quote: quote, last: last) else { return .incomplete }
                signal = readTag(window, at: cursor)
            case .ended: signal = readAfterEnd(window)
            case .faulted(let code, let at, let limit): return .fault(code, at: at, limit: limit)
            }
            switch signal {
            case .more: continue
            case .incomplete: return .incomplete
            case .fault(let code, let at, let limit):
                state = .faulted(code, at: at, limit: limit)
                return signal
            case .item(let kind, _, _):
                cursor = 0
                switch kind {
                case .end: state = .ended
                case .header where open.count == 0: state = .ended
                case .whitespace: break
                default: state = .between
                }
                return signal
            }
        }
    }

    /// The end of the input: what was wrong with an item that never became complete, if anything was.
    public mutating func finish(_ window: Span<UInt8>) -> Step {
        guard case .tag = state, case .fault(let code, let at, let limit) = tag.read(window, at: cursor, limits: limits)
        else { return .incomplete }
        state = .faulted(code, at: at, limit: limit)
        return .fault(code, at: at, limit: limit)
    }

    /// Where in the window the next look begins. What lies before is not looked at again, but for a tag, which is taken
    /// apart once when its end has come: so the work grows with the bytes and not with the number of reads.
    var resumePoint: Int {
        if case .tag(let searched, _, _) = state { searched } else { cursor }
    }

    /// Gives up the beginning of an item that is too large to be kept: how many bytes of the window have been looked at
    /// for good. The caller takes them away before the next look.
    mutating func discard(_ window: Span<UInt8>) -> Int {
        var count = cursor
        switch state {
        case .content, .section:
            // Of two slashes the second is told by the first.
            if count > 0, window[count &- 1] == 0x2F { count &-= 1 }
        case .tag(let searched, let quote, let last):
            state = .tag(searched: searched &- count, quote: quote, last: last)
        default: return 0
        }
        for index in 0..<open.count where !open[index].isNameStored {
            let start = Int(open[index].nameStart)
            open[index].nameStart = Int32(truncatingIfNeeded: names.count)
            open[index].isNameStored = true
            names.append(window.extracting(start..<(start &+ Int(open[index].nameCount))))
        }
        hasDiscarded = true
        if let outlineState, outlineState.pointee.item == outlinedItem { outlineState.pointee.isPartial = true }
        cursor &-= count
        return count
    }
}

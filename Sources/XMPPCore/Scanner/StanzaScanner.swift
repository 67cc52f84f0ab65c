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
        let count = cursor
        switch state {
        case .content, .section: break
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
        cursor = 0
        return count
    }

    // MARK: Between items

    private mutating func readBetween(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        guard window[0] == 0x3C else {
            let space = Self.whitespace(window)
            guard space == 0 else { return whitespaceItem(space) }
            head = StanzaHead()
            return .fault(openingFault(window[0]), at: 0, limit: 0)
        }
        guard window.count > 1 else { return .incomplete }
        head = StanzaHead()
        hasDiscarded = false
        cursor = 0
        switch window[1] {
        case 0x3F: return readDeclaration(window)
        case 0x21: return readMarkup(window, at: 0)
        case 0x00 where open.count == 0: return .fault(.unsupportedEncoding, at: 0, limit: 0)
        default: return readTag(window, at: 0)
        }
    }

    private mutating func readAfterEnd(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        let space = Self.whitespace(window)
        head = StanzaHead()
        return space > 0 ? whitespaceItem(space) : .fault(.afterStreamEnd, at: 0, limit: 0)
    }

    private mutating func whitespaceItem(_ count: Int) -> Signal {
        head = StanzaHead()
        return .item(.whitespace, length: count, beginsEpoch: false)
    }

    private static func whitespace(_ window: Span<UInt8>) -> Int {
        var count = 0
        while count < window.count, XMLCharacters.isWhitespace(window[count]) { count &+= 1 }
        return count
    }

    /// What is wrong with a first byte that is neither `<` nor white space.
    private func openingFault(_ byte: UInt8) -> ScanFault.Code {
        switch byte {
        case 0xFE, 0xFF: open.count == 0 ? .unsupportedEncoding : .invalidUTF8
        case 0x00: open.count == 0 ? .unsupportedEncoding : .invalidCharacter
        default: open.count == 0 ? .notXML : .textOutsideStanza
        }
    }

    private mutating func readDeclaration(_ window: Span<UInt8>) -> Signal {
        let target: StaticString = "<?xml"
        for index in 0..<5 {
            guard index < window.count else { return .incomplete }
            guard window[index] == target.utf8Start[index] else {
                return .fault(.processingInstruction, at: 0, limit: 0)
            }
        }
        guard window.count > 5 else { return .incomplete }
        guard XMLCharacters.isWhitespace(window[5]), !seenDeclaration || open.count > 0 else {
            return .fault(.processingInstruction, at: 0, limit: 0)
        }
        switch XMLDeclaration.check(window) {
        case .incomplete: return .incomplete
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        case .complete(let end):
            resetEpoch()
            seenDeclaration = true
            return .item(.declaration, length: end, beginsEpoch: true)
        }
    }

    /// Forgets the stream: no declaration, name or element of it is known to the next one.
    mutating func resetEpoch() {
        open.removeAll()
        names.removeAll(keepingCapacity: true)
        scope.removeAll()
        declarations = []
        seenDeclaration = false
    }

    // MARK: Inside an element

    /// Reads text and tags until the item ends or bytes are missing.
    private mutating func readContent(_ window: Span<UInt8>) -> Signal {
        while true {
            // Most tags follow another at once.
            if cursor >= window.count || window[cursor] != 0x3C {
                var mayHoldKey = false
                let stop = TextScan.scanText(window, from: cursor, mayHoldKey: &mayHoldKey)
                if mayHoldKey { head.mayHoldSecret = true }
                switch stop {
                case .end(let at):
                    cursor = at
                    return .incomplete
                case .fault(let code, let at): return .fault(code, at: at, limit: 0)
                case .special(let at): cursor = at
                }
            }
            guard cursor &+ 1 < window.count else { return .incomplete }
            if window[cursor] == 0x5D {
                // Alone it is text, before `]>` it is an error (production 14).
                if window[cursor &+ 1] == 0x5D {
                    guard cursor &+ 2 < window.count else { return .incomplete }
                    guard window[cursor &+ 2] != 0x3E else { return .fault(.sectionEndInText, at: cursor, limit: 0) }
                }
                cursor &+= 1
                continue
            }
            let signal: Signal
            switch window[cursor &+ 1] {
            case 0x2F: signal = readEndTag(window)
            case 0x21: signal = readMarkup(window, at: cursor)
            case 0x3F: return .fault(.processingInstruction, at: cursor, limit: 0)
            default: signal = readTag(window, at: cursor)
            }
            guard case .more = signal, case .content = state else { return signal }
        }
    }

    /// `<!`: a CDATA section inside an element is allowed, everything else is not.
    private mutating func readMarkup(_ window: Span<UInt8>, at start: Int) -> Signal {
        guard start &+ 2 < window.count else { return .incomplete }
        let opening: StaticString = "<![CDATA["
        switch window[start &+ 2] {
        case 0x2D: return .fault(.comment, at: start, limit: 0)
        case 0x5B:
            for index in 2..<9 {
                guard start &+ index < window.count else { return .incomplete }
                guard window[start &+ index] == opening.utf8Start[index] else {
                    return .fault(.malformedTag, at: start, limit: 0)
                }
            }
            guard open.count > 1 else { return .fault(.textOutsideStanza, at: start, limit: 0) }
            state = .section
            head.isUnusual = true
            cursor = start &+ 9
            if let outlineState, outlineState.pointee.item == outlinedItem { outlineState.pointee.isPartial = true }
            return .more
        default: return .fault(.documentType, at: start, limit: 0)
        }
    }

    private mutating func readSection(_ window: Span<UInt8>) -> Signal {
        var mayHoldKey = false
        let stop = TextScan.scanSection(window, from: cursor, mayHoldKey: &mayHoldKey)
        if mayHoldKey { head.mayHoldSecret = true }
        switch stop {
        case .end(let at):
            cursor = at
            return .incomplete
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        case .special(let at):
            cursor = at
            guard at &+ 1 < window.count else { return .incomplete }
            guard window[at &+ 1] == 0x5D else {
                cursor = at &+ 1
                return .more
            }
            guard at &+ 2 < window.count else { return .incomplete }
            guard window[at &+ 2] == 0x3E else {
                cursor = at &+ 1
                return .more
            }
            cursor = at &+ 3
            state = .content
            return .more
        }
    }
}

/// Finds the end of each top-level item of an XMPP stream, and alone decides which input is acceptable.
///
/// The scanner is deterministic and pure: no socket, no clock, no thread. It stores no bytes. The caller passes a
/// *window* that begins with the first byte of the current item; the scanner remembers its position, so that no byte is
/// scanned twice, and the same items result regardless of how reads split the input. Only white space between items may
/// be returned in pieces, as its bytes arrive.
///
/// Acceptable input is restricted XML (RFC 6120 §11.1): strict UTF-8, no control characters except TAB, LF and CR, no
/// DOCTYPE, comment or processing instruction, only the five predefined entities; balanced tags, no repeated attribute,
/// no unbound prefix; all within ``StreamLimits``.
public struct StanzaScanner: ~Copyable {
    /// A top-level item.
    public enum Item {
        /// An item at the top level of a stream.
        public enum Kind: Sendable {
            /// `<?xml …?>`; begins a new epoch.
            case declaration
            /// `<stream:stream …>`; begins a new epoch if it has no declaration.
            case header
            /// A stanza or other element at depth 1.
            case element
            /// White space between items: all that has arrived.
            case whitespace
            /// `</stream:stream>`, or the end of a header with an empty-element tag.
            case end
        }
    }

    /// An open element. Its name is compared with that of its end tag.
    struct Open: BitwiseCopyable {
        /// Offset of the qualified name: in the window, or, after that part of the window was removed, in `names`.
        var nameStart: Int32 = 0
        var nameCount: Int32 = 0
        var isNameStored = false
        /// Number of declarations in scope outside the element.
        var bindings: Int32 = 0
        /// The default namespace inside the element; see ``NamespaceScope``.
        var defaultBinding = NamespaceScope.unbound
    }

    private enum State {
        /// Between items: before the header, or at depth 1.
        case between
        /// In the content of an element; scanning continues at the cursor.
        case content
        case section
        /// In an incomplete tag that begins at the cursor; its end was searched up to `searched`.
        case tag(searched: Int, quote: UInt8, last: UInt8)
        case ended
        case faulted(ScanFault.Code, at: Int, limit: Int)
    }

    /// The result of scanning the window, or a part of it.
    enum Signal {
        /// A part has been read, and another may follow.
        case more
        /// The item is incomplete; pass the same window again with more bytes.
        case incomplete
        /// The window begins with an item of `length` bytes; its head is in ``head``. Remove it before the next call.
        case item(Item.Kind, length: Int, beginsEpoch: Bool)
        /// The bytes at this offset of the window are not acceptable; the stream cannot be read further.
        case fault(ScanFault.Code, at: Int, limit: Int = 0)
    }

    /// The limits; a change applies to later checks.
    var limits: StreamLimits {
        didSet { limits = limits.clamped }
    }

    private var state = State.between
    private var cursor = 0
    /// The head of the current item; between items, the head of the last one.
    private(set) var head = StanzaHead()
    private var seenDeclaration = false
    /// Whether the beginning of the item was discarded. Offsets in the window then differ from offsets in the item, so
    /// the head is not extended further.
    private(set) var hasDiscarded = false
    private var tag = Tag()
    private var scope = NamespaceScope()
    private var open = UniqueArray<Open>()
    /// The names of open elements that are no longer in the window, outermost first.
    private var names: [UInt8] = []
    private let secrets = SecretNames.sieve
    /// The outline that receives every tag of an item; nil if there is none.
    let outline: ItemOutline?
    /// The number of the current item in the outline.
    private(set) var outlinedItem: UInt64 = 0

    /// The declarations of the stream header, as written in a tag: ` xmlns:prefix='uri'` for each.
    private(set) var declarations: [UInt8] = []

    /// Creates a scanner at the beginning of a stream. An `outline` is filled for ``ElementReader``.
    init(limits: StreamLimits = .unauthenticated, outline: ItemOutline? = nil) {
        self.limits = limits.clamped
        self.outline = outline
    }

    /// The head, as far as known, of an incomplete item. It is empty between items, and after the beginning of the item
    /// has been discarded.
    var partialHead: StanzaHead {
        switch state {
        case .between, .ended: StanzaHead()
        default: hasDiscarded ? StanzaHead() : head
        }
    }

    /// Whether the current item is an element whose start tag has been read.
    var isInsideElement: Bool { open.count > 1 }

    /// Scans the window for the current item. Never returns `more`.
    mutating func scan(_ window: Span<UInt8>) -> Signal {
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

    /// Ends the input. Returns the fault of an incomplete tag if it has one, otherwise `incomplete`.
    mutating func finish(_ window: Span<UInt8>) -> Signal {
        guard case .tag = state, case .fault(let code, let at, let limit) = tag.read(window, at: cursor, limits: limits)
        else { return .incomplete }
        state = .faulted(code, at: at, limit: limit)
        return .fault(code, at: at, limit: limit)
    }

    /// The position in the window at which the next call continues. Earlier bytes are not scanned again, except for a
    /// tag, which is parsed once when its end has arrived: so the work grows with the number of bytes and not with the
    /// number of reads.
    var resumePoint: Int {
        if case .tag(let searched, _, _) = state { searched } else { cursor }
    }

    /// Discards the beginning of an item that is too large to be stored: returns how many bytes of the window are no
    /// longer needed. The caller removes them before the next call.
    mutating func discard(_ window: Span<UInt8>) -> Int {
        var count = cursor
        switch state {
        case .content, .section:
            // The second slash of `://` is recognised by the characters before it, so these are kept.
            if count > 0, window[count &- 1] == 0x2F { count &-= 1 }
            if count > 0, window[count &- 1] == 0x3A { count &-= 1 }
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
        outline?.giveUp(outlinedItem)
        cursor &-= count
        return count
    }
}

/// Between items: white space, declarations, the beginning of items, and invalid bytes.
extension StanzaScanner {
    private mutating func readBetween(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        guard window[0] == 0x3C else {
            let space = Self.whitespace(window)
            guard space == 0 else { return whitespaceItem(space) }
            head = StanzaHead()
            return .fault(openingFault(window[0]), at: 0)
        }
        guard window.count > 1 else { return .incomplete }
        head = StanzaHead()
        hasDiscarded = false
        cursor = 0
        switch window[1] {
        case 0x3F: return readDeclaration(window)
        case 0x21: return readMarkup(window, at: 0)
        case 0x00 where open.count == 0: return .fault(.unsupportedEncoding, at: 0)
        default: return readTag(window, at: 0)
        }
    }

    private mutating func readAfterEnd(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        let space = Self.whitespace(window)
        head = StanzaHead()
        return space > 0 ? whitespaceItem(space) : .fault(.afterStreamEnd, at: 0)
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

    /// Returns the fault of a first byte that is neither `<` nor white space.
    private func openingFault(_ byte: UInt8) -> ScanFault.Code {
        switch byte {
        case 0xFE, 0xFF: open.count == 0 ? .unsupportedEncoding : .invalidUTF8
        case 0x00: open.count == 0 ? .unsupportedEncoding : .invalidCharacter
        default: open.count == 0 ? .notXML : .textOutsideStanza
        }
    }

    private mutating func readDeclaration(_ window: Span<UInt8>) -> Signal {
        guard !seenDeclaration || open.count > 0 else { return .fault(.processingInstruction, at: 0) }
        switch XMLDeclaration.check(window) {
        case .incomplete: return .incomplete
        case .fault(let code, let at): return .fault(code, at: at)
        case .complete(let end):
            resetEpoch()
            seenDeclaration = true
            return .item(.declaration, length: end, beginsEpoch: true)
        }
    }

    /// Resets the stream state: the next stream starts without declarations, names or open elements.
    private mutating func resetEpoch() {
        open.removeAll(keepingCapacity: 64)
        names.removeAll(keepingCapacity: true)
        scope.removeAll()
        declarations = []
        seenDeclaration = false
    }
}

/// Tags: finding their end, opening and closing elements, and filling the head.
extension StanzaScanner {
    /// Searches for the `>` of an incomplete tag, without parsing the tag again for each new byte. Returns true if the
    /// tag can be parsed: at the `>`, or at a byte that a tag cannot contain, so that a fault is reported at once.
    private mutating func findTagEnd(_ window: Span<UInt8>, from: Int, quote: UInt8, last: UInt8) -> Bool {
        var (index, quote, last) = (from, quote, last)
        let limit = cursor &+ limits.tagBytes
        let end = min(window.count, limit)
        let searched = window.extracting(0..<end)
        while true {
            if quote != 0 { index = searched.skipPlain(from: index, quote: quote) }
            guard index < end else { break }
            let byte = searched[index]
            if quote != 0 {
                if byte == quote { quote = 0 }
                if byte == 0x3C { return true }
            } else {
                switch byte {
                case 0x3E, 0x3C: return true
                case 0x22, 0x27:
                    guard last == 0x3D else { return true }
                    quote = byte
                default: break
                }
            }
            if !XMLCharacters.isWhitespace(byte) { last = byte }
            index &+= 1
        }
        if index >= limit { return true }
        state = .tag(searched: index, quote: quote, last: last)
        return false
    }

    private mutating func readTag(_ window: Span<UInt8>, at start: Int) -> Signal {
        let end = min(window.count, start &+ limits.tagBytes)
        switch tag.read(window.extracting(0..<end), at: start, limits: limits) {
        case .fault(let code, let at, let limit): return .fault(code, at: at, limit: limit)
        case .incomplete:
            guard window.count &- start < limits.tagBytes else {
                return .fault(.tagTooLong, at: start, limit: limits.tagBytes)
            }
            if case .tag = state {
                // The search stopped at a byte, but the parser still waits for more.
                state = .tag(searched: window.count, quote: 0, last: 0)
                return .incomplete
            }
            cursor = start
            state = .tag(searched: start &+ 1, quote: 0, last: 0)
            return .more
        case .complete: return tag.kind == .end ? closeElement(window, at: start) : openElement(window, at: start)
        }
    }

    /// Reads the end tag at the cursor. Most end tags consist only of the open element's name between `</` and `>`.
    @inline(__always)
    private mutating func readEndTag(_ window: Span<UInt8>) -> Signal {
        let top = open[open.count &- 1]
        let nameStart = cursor &+ 2
        let nameEnd = nameStart &+ Int(top.nameCount)
        guard !top.isNameStored, nameEnd < window.count, window[nameEnd] == 0x3E, nameEnd &- cursor < limits.tagBytes,
            window.extracting(nameStart..<nameEnd).equals(window.extracting(nameRange(top)))
        else { return readTag(window, at: cursor) }
        return close(top, at: cursor, end: nameEnd &+ 1)
    }

    @inline(__always)
    private func nameRange(_ element: Open) -> Range<Int> {
        Int(element.nameStart)..<(Int(element.nameStart) &+ Int(element.nameCount))
    }

    private mutating func closeElement(_ window: Span<UInt8>, at start: Int) -> Signal {
        guard open.count > 0 else { return .fault(.notAStream, at: start) }
        let top = open[open.count &- 1]
        let name = window.extracting(tag.name.range)
        let isSame =
            top.isNameStored
            ? names.span.extracting(nameRange(top)).equals(name) : window.extracting(nameRange(top)).equals(name)
        guard isSame else { return .fault(.mismatchedTag, at: start) }
        return close(top, at: start, end: tag.end)
    }

    @inline(__always)
    private mutating func close(_ top: Open, at start: Int, end: Int) -> Signal {
        outline?.close(at: start, end: end, of: outlinedItem)
        if top.isNameStored { names.removeLast(names.count &- Int(top.nameStart)) }
        open.truncate(to: open.count &- 1)
        guard open.count > 0 else {
            head = StanzaHead()
            return .item(.end, length: end, beginsEpoch: false)
        }
        scope.leave(to: Int(top.bindings))
        guard open.count > 1 else { return .item(.element, length: end, beginsEpoch: false) }
        cursor = end
        state = .content
        return .more
    }

    private mutating func openElement(_ window: Span<UInt8>, at start: Int) -> Signal {
        let depth = open.count
        guard depth < limits.depth else { return .fault(.tooDeep, at: start, limit: limits.depth) }
        if depth <= 1, isStreamHeader(window) { return openStream(window) }
        guard depth > 0 else { return .fault(.notAStream, at: start) }

        let bindings = scope.count
        var element = Open()
        element.bindings = Int32(truncatingIfNeeded: bindings)
        element.defaultBinding = open[depth &- 1].defaultBinding
        if tag.hasDeclarations {
            if let code = scope.enter(tag, in: window, isHeader: false, limit: limits.namespaces) {
                return .fault(code, at: start, limit: code == .tooManyNamespaces ? limits.namespaces : 0)
            }
            element.defaultBinding = scope.defaultBinding
            if scope.hasDoubtfulURI { recordDifference() }
        }
        let binding: Int32
        switch tag.resolve(window, in: scope, defaultBinding: element.defaultBinding) {
        case .binding(let found): binding = found
        case .fault(let code, let at): return .fault(code, at: at)
        }
        if tag.hasNumericReference { head.isUnusual = true }
        if depth == 1 {
            recordStanza(window, binding: binding)
        } else {
            if !head.mayContainSecret, tag.mayContainSecret(window, scope.namespace(binding), secrets) {
                head.mayContainSecret = true
            }
            // Parts beyond the item limit are not added to the head, because the beginning of the item may have been
            // discarded.
            if depth == 2, head.payloadName == nil, !hasDiscarded, tag.end <= limits.itemBytes {
                head.payloadName = tag.localName
                head.payloadNamespace = scope.name(binding)
            }
        }
        if let outline {
            if depth == 1 { outlinedItem = outline.beginItem() }
            outline.open(tag, at: start, of: window, scope.name(binding), in: outlinedItem)
        }
        cursor = tag.end
        if tag.kind == .empty {
            scope.leave(to: bindings)
            guard depth > 1 else {
                head.isEmptyElement = true
                return .item(.element, length: tag.end, beginsEpoch: false)
            }
        } else {
            element.nameStart = tag.name.start
            element.nameCount = Int32(truncatingIfNeeded: tag.name.count)
            open.append(element)
        }
        state = .content
        return .more
    }

    private mutating func recordDifference() {
        head.isUnusual = true
        head.hasDoubtfulNamespace = true
        scope.hasDoubtfulURI = false
    }

    // MARK: Stream header

    /// Returns whether the tag opens a stream, according to its own declarations or those in scope.
    @inline(__always)
    private mutating func isStreamHeader(_ window: Span<UInt8>) -> Bool {
        let name = tag.localName
        guard name.count == 6, window.extracting(name.range).equals("stream") else { return false }
        return isOfStreams(window)
    }

    private mutating func isOfStreams(_ window: Span<UInt8>) -> Bool {
        let prefix = tag.prefix(in: window)
        for index in 0..<tag.attributes.count {
            let attribute = tag.attributes[index]
            guard attribute.isDeclaration, window.extracting(attribute.declaredPrefix).equals(prefix) else { continue }
            guard attribute.needsDecoding else {
                return Namespace(uri: window.extracting(attribute.value.range)) == .streams
            }
            var uri: [UInt8] = []
            AttributeValue.decode(window.extracting(attribute.value.range), into: &uri)
            return Namespace(uri: uri.span) == .streams
        }
        guard let binding = prefix.isEmpty ? scope.defaultBinding : scope.find(prefix) else { return false }
        return scope.namespace(binding) == .streams
    }

    private mutating func openStream(_ window: Span<UInt8>) -> Signal {
        // Only the root of a message has no name; see beginMessage().
        guard open.count == 0 || open[0].nameCount > 0 else {
            return .fault(.streamHeaderInMessage, at: Int(tag.name.start) &- 1)
        }
        let beginsEpoch = !seenDeclaration || open.count > 0
        resetEpoch()
        if let code = scope.enter(tag, in: window, isHeader: true, limit: limits.namespaces) {
            return .fault(code, at: 0, limit: code == .tooManyNamespaces ? limits.namespaces : 0)
        }
        var root = Open()
        root.defaultBinding = scope.defaultBinding
        switch tag.resolve(window, in: scope, defaultBinding: root.defaultBinding) {
        case .binding(let binding):
            head.name = tag.localName
            head.namespace = scope.name(binding)
            recordAttributes(window)
        case .fault(let code, let at): return .fault(code, at: at)
        }
        if tag.hasReference { head.mayContainSecret = true }
        if scope.hasDoubtfulURI { recordDifference() }
        declarations = scope.declarations
        if tag.kind == .empty {
            head.isEmptyElement = true
        } else {
            // The header is removed from the window before its end arrives.
            names.append(window.extracting(tag.name.range))
            root.nameCount = Int32(truncatingIfNeeded: tag.name.count)
            root.isNameStored = true
            open.append(root)
        }
        return .item(.header, length: tag.end, beginsEpoch: beginsEpoch)
    }

    /// The namespace of the stream's content: the header's default namespace.
    var contentNamespace: Namespace {
        open.count > 0 ? scope.namespace(open[0].defaultBinding) : .none
    }

    /// Calls `body` with each prefix (empty for the default) and URI of the stream header.
    ///
    /// For a parser of single items. Call it only between items: inside an item, the declarations of the item are
    /// included.
    func forEachDeclaration(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        scope.forEach(body)
    }

    /// Copies the declarations in scope: between items, those of the stream header.
    func copyScope(to scope: inout NamespaceScope) { scope.assign(self.scope) }

    /// Appends the URI of `name`, which belongs to a head in this scanner's current epoch, to `output`. `item` contains
    /// the item of that head.
    func appendURI(of name: NamespaceName, item: Span<UInt8>, to output: inout [UInt8]) {
        switch name.source {
        case .known: output.append(name.namespace.uri)
        case .item(let range): AttributeValue.decode(item.slice(range), into: &output)
        case .inherited(let range): scope.appendInherited(range, to: &output)
        }
    }

    // MARK: Heads

    private mutating func recordStanza(_ window: Span<UInt8>, binding: Int32) {
        head.name = tag.localName
        head.namespace = scope.name(binding)
        let name = window.extracting(tag.localName.range)
        if head.namespace.namespace.isContent {
            switch name.count {
            case 2 where name.equals("iq"): head.kind = .iq
            case 7 where name.equals("message"): head.kind = .message
            case 8 where name.equals("presence"): head.kind = .presence
            default: break
            }
        }
        if tag.hasReference || secrets.contains(element: name, head.namespace.namespace)
            || head.kind == .nonza && secrets.mayBeCredential(element: name, head.namespace.namespace)
        {
            head.mayContainSecret = true
        }
        recordAttributes(window)
    }

    private mutating func recordAttributes(_ window: Span<UInt8>) {
        let isUnknown = head.namespace.namespace.isUnknown
        for index in 0..<tag.attributes.count {
            let attribute = tag.attributes[index]
            let name = window.extracting(attribute.name.range)
            let value = StanzaHead.Attribute(range: attribute.value, needsDecoding: attribute.needsDecoding)
            switch name.count {
            case 2 where name.equals("id"): head.id = value
            case 2 where name.equals("to"): head.to = value
            case 4 where name.equals("type"): head.type = value
            case 4 where name.equals("from"): head.from = value
            case 7 where name.equals("version"): head.version = value
            default:
                if !head.mayContainSecret, attribute.mayBeSecret(window, secrets, isUnknown: isUnknown) {
                    head.mayContainSecret = true
                }
            }
        }
    }
}

/// Inside an element: text, CDATA sections, and the next tag.
extension StanzaScanner {
    /// Reads text and tags until the item ends or bytes are missing.
    private mutating func readContent(_ window: Span<UInt8>) -> Signal {
        while true {
            // Most tags directly follow another tag.
            if cursor >= window.count || window[cursor] != 0x3C, let stop = passText(window, isSection: false) {
                return stop
            }
            guard cursor &+ 1 < window.count else { return .incomplete }
            if window[cursor] == 0x5D {
                // A single bracket is text; `]]>` is an error (production 14).
                if window[cursor &+ 1] == 0x5D {
                    guard cursor &+ 2 < window.count else { return .incomplete }
                    guard window[cursor &+ 2] != 0x3E else { return .fault(.sectionEndInText, at: cursor) }
                }
                cursor &+= 1
                continue
            }
            let signal: Signal
            switch window[cursor &+ 1] {
            case 0x2F: signal = readEndTag(window)
            case 0x21: signal = readMarkup(window, at: cursor)
            case 0x3F: return .fault(.processingInstruction, at: cursor)
            default: signal = readTag(window, at: cursor)
            }
            guard case .more = signal, case .content = state else { return signal }
        }
    }

    /// Moves the cursor to the end of plain text. Returns nil if the text ends at a byte to examine, otherwise a
    /// signal.
    @inline(__always)
    private mutating func passText(_ window: Span<UInt8>, isSection: Bool) -> Signal? {
        var mayHoldKey = false
        let stop = TextScan.scanText(window, from: cursor, isSection: isSection, mayHoldKey: &mayHoldKey)
        if mayHoldKey { head.mayContainSecret = true }
        switch stop {
        case .end(let at):
            cursor = at
            return .incomplete
        case .fault(let code, let at): return .fault(code, at: at)
        case .special(let at):
            cursor = at
            return nil
        }
    }

    /// Reads `<!`: a CDATA section inside an element is allowed, other markup is not.
    private mutating func readMarkup(_ window: Span<UInt8>, at start: Int) -> Signal {
        guard start &+ 2 < window.count else { return .incomplete }
        let opening: StaticString = "<![CDATA["
        switch window[start &+ 2] {
        case 0x2D: return .fault(.comment, at: start)
        case 0x5B:
            for index in 2..<9 {
                guard start &+ index < window.count else { return .incomplete }
                guard window[start &+ index] == opening.utf8Start[index] else {
                    return .fault(.malformedTag, at: start)
                }
            }
            guard open.count > 1 else { return .fault(.textOutsideStanza, at: start) }
            state = .section
            head.isUnusual = true
            // Text that continues in a section may contain a secret that neither part shows.
            head.mayContainSecret = true
            cursor = start &+ 9
            outline?.giveUp(outlinedItem)
            return .more
        default: return .fault(.documentType, at: start)
        }
    }

    private mutating func readSection(_ window: Span<UInt8>) -> Signal {
        if let stop = passText(window, isSection: true) { return stop }
        // The section ends with `]]>`; any other bracket is text.
        for (offset, byte) in [(1, 0x5D), (2, 0x3E)] as [(Int, UInt8)] {
            guard cursor &+ offset < window.count else { return .incomplete }
            guard window[cursor &+ offset] == byte else {
                cursor &+= 1
                return .more
            }
        }
        cursor &+= 3
        state = .content
        return .more
    }
}

/// Messages of RFC 7395: one element each, in no scope but its own.
extension StanzaScanner {
    /// Prepares for the next message. The element of a message is read like a stanza, inside a root without a name and
    /// without declarations.
    mutating func beginMessage() {
        resetEpoch()
        open.append(Open(isNameStored: true))
        head = StanzaHead()
        hasDiscarded = false
        state = .between
        cursor = 0
    }

    /// Begins the element of the message, whose `<` is at `start` of the window: ``look(_:)`` returns its end.
    mutating func beginElement(at start: Int) {
        state = .content
        cursor = start
    }
}

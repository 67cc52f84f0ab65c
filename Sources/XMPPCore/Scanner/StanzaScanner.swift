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

    private struct Open {
        var nameStart: Int32
        var bindings: Int32
        /// Index of the default namespace's binding, or -1.
        var defaultBinding: Int32
    }

    private enum State {
        /// Between items: before the header (`depth` 0) or inside the stream (`depth` 1).
        case between
        /// In the text of an element; the cursor is where to go on.
        case text
        /// In a CDATA section.
        case section
        /// In a tag that begins at the cursor and is not complete; looked for its end up to `searched`.
        case tag(searched: Int, quote: UInt8, last: UInt8)
        case ended
        case faulted(ScanFault.Code, at: Int, limit: Int)
    }

    /// Changeable at any time; what is measured from then on is measured against these.
    public var limits: StreamLimits

    private var state = State.between
    private var cursor = 0
    private var head = StanzaHead()
    private var seenDeclaration = false
    /// Offsets in the window are no longer offsets in the item: the head takes nothing more.
    private var hasDiscarded = false
    private var tag = Tag()
    private var scope = NamespaceScope()
    private var open: [Open] = []
    private var names: [UInt8] = []
    private let secrets = SecretNames.sieve

    /// A scanner at the beginning of a stream.
    public init(limits: StreamLimits = .unauthenticated) {
        self.limits = limits
    }

    /// Whether a header has been seen whose end has not.
    public var isInStream: Bool { !open.isEmpty }

    /// Bytes at the beginning of the window that have been looked at for good and are not needed again by the scanner.
    ///
    /// For an item that is too large to be kept: take them away and tell ``discard(_:)``.
    public var discardable: Int {
        switch state {
        case .text, .section: cursor
        case .tag: cursor
        default: 0
        }
    }

    /// Tells the scanner that the first `count` bytes of the window, at most ``discardable``, have been taken away.
    public mutating func discard(_ count: Int) {
        hasDiscarded = true
        cursor -= count
        if case .tag(let searched, let quote, let last) = state {
            state = .tag(searched: searched - count, quote: quote, last: last)
        }
    }

    /// What is known so far of the item that is not complete yet.
    public var partialHead: StanzaHead { head }

    /// Whether the current item is an element whose start tag has been read.
    public var isInsideElement: Bool { open.count > 1 }

    /// Looks at the window for the current item.
    public mutating func next(_ window: Span<UInt8>) -> Step {
        while true {
            switch state {
            case .between:
                if let step = readBetween(window) { return step }
            case .text:
                if let step = readText(window) { return step }
            case .section:
                if let step = readSection(window) { return step }
            case .tag(let searched, let quote, let last):
                guard findTagEnd(window, from: searched, quote: quote, last: last) else { return .incomplete }
                if let step = readTag(window, at: cursor) { return step }
            case .ended:
                guard window.count > 0 else { return .incomplete }
                let space = whitespace(window)
                guard space > 0 else { return fail(.afterStreamEnd, at: 0) }
                return item(.whitespace, length: space)
            case .faulted(let code, let at, let limit):
                return .fault(code, at: at, limit: limit)
            }
        }
    }

    /// The end of the input: what was wrong with an item that never became complete, if anything was.
    public mutating func finish(_ window: Span<UInt8>) -> Step {
        if case .tag = state {
            switch tag.read(window, at: cursor, limits: limits) {
            case .fault(let code, let at, let limit): return fail(code, at: at, limit: limit)
            case .complete, .incomplete: break
            }
        }
        return .incomplete
    }

    // MARK: Between items

    private mutating func readBetween(_ window: Span<UInt8>) -> Step? {
        guard !window.isEmpty else { return .incomplete }
        let space = whitespace(window)
        guard space == 0 else { return item(.whitespace, length: space) }
        guard window[0] == 0x3C else { return fail(openingFault(window), at: 0) }
        guard window.count > 1 else { return .incomplete }
        head = StanzaHead()
        hasDiscarded = false
        cursor = 0
        switch window[1] {
        case 0x3F: return readDeclaration(window)
        case 0x21: return readMarkup(window, at: 0)
        case 0x00: return fail(.unsupportedEncoding, at: 0)
        default: return readTag(window, at: 0)
        }
    }

    private func whitespace(_ window: Span<UInt8>) -> Int {
        var count = 0
        while count < window.count, XMLCharacters.isWhitespace(window[count]) { count &+= 1 }
        return count
    }

    private func openingFault(_ window: Span<UInt8>) -> ScanFault.Code {
        switch window[0] {
        case 0xFE, 0xFF, 0x00: open.isEmpty ? .unsupportedEncoding : .invalidUTF8
        default: open.isEmpty ? .notXML : .textOutsideStanza
        }
    }

    private mutating func readDeclaration(_ window: Span<UInt8>) -> Step? {
        let target: StaticString = "<?xml"
        for index in 0..<5 {
            guard index < window.count else { return .incomplete }
            guard window[index] == target.utf8Start[index] else { return fail(.processingInstruction, at: 0) }
        }
        guard window.count > 5 else { return .incomplete }
        guard XMLCharacters.isWhitespace(window[5]) else { return fail(.processingInstruction, at: 0) }
        guard !seenDeclaration || !open.isEmpty else { return fail(.processingInstruction, at: 0) }
        switch XMLDeclaration.check(window) {
        case .incomplete: return .incomplete
        case .fault(let code, let at): return fail(code, at: at)
        case .complete(let end):
            resetEpoch()
            seenDeclaration = true
            return item(.declaration, length: end, beginsEpoch: true)
        }
    }

    private mutating func resetEpoch() {
        open.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        scope.removeAll()
        seenDeclaration = false
    }

    // MARK: Inside an element

    private mutating func readText(_ window: Span<UInt8>) -> Step? {
        let start = cursor
        let stop = TextScan.scan(window, from: start, place: .text)
        switch stop {
        case .end(let at), .special(let at):
            if !head.mayHoldSecret, at > start, TextScan.mayHoldKey(window, from: start, to: at) {
                head.mayHoldSecret = true
            }
            cursor = at
        case .fault(let code, let at): return fail(code, at: at)
        }
        guard case .special = stop else { return .incomplete }
        guard window[cursor] == 0x3C else {
            // `]`: alone it is text, before `]>` it is an error (production 14).
            guard cursor &+ 1 < window.count else { return .incomplete }
            guard window[cursor &+ 1] == 0x5D else {
                cursor &+= 1
                return nil
            }
            guard cursor &+ 2 < window.count else { return .incomplete }
            guard window[cursor &+ 2] != 0x3E else { return fail(.sectionEndInText, at: cursor) }
            cursor &+= 1
            return nil
        }
        guard cursor &+ 1 < window.count else { return .incomplete }
        switch window[cursor &+ 1] {
        case 0x21: return readMarkup(window, at: cursor)
        case 0x3F: return fail(.processingInstruction, at: cursor)
        default: return readTag(window, at: cursor)
        }
    }

    /// `<!`: a CDATA section inside an element is allowed, everything else is not.
    private mutating func readMarkup(_ window: Span<UInt8>, at start: Int) -> Step? {
        guard start &+ 2 < window.count else { return .incomplete }
        let opening: StaticString = "<![CDATA["
        switch window[start &+ 2] {
        case 0x2D: return fail(.comment, at: start)
        case 0x5B:
            for index in 2..<9 {
                guard start &+ index < window.count else { return .incomplete }
                guard window[start &+ index] == opening.utf8Start[index] else {
                    return fail(.malformedTag, at: start)
                }
            }
            guard open.count > 1 else { return fail(.textOutsideStanza, at: start) }
            state = .section
            cursor = start &+ 9
            return nil
        default: return fail(.documentType, at: start)
        }
    }

    private mutating func readSection(_ window: Span<UInt8>) -> Step? {
        let start = cursor
        switch TextScan.scan(window, from: start, place: .section) {
        case .end(let at):
            cursor = at
            noteKeys(window, from: start, to: at)
            return .incomplete
        case .fault(let code, let at): return fail(code, at: at)
        case .special(let at):
            cursor = at
            noteKeys(window, from: start, to: at)
            guard at &+ 2 < window.count else {
                if at &+ 1 < window.count, window[at &+ 1] != 0x5D {
                    cursor = at &+ 1
                    return nil
                }
                return .incomplete
            }
            if window[at &+ 1] == 0x5D, window[at &+ 2] == 0x3E {
                cursor = at &+ 3
                state = .text
            } else {
                cursor = at &+ 1
            }
            return nil
        }
    }

    private mutating func noteKeys(_ window: Span<UInt8>, from start: Int, to end: Int) {
        if !head.mayHoldSecret, TextScan.mayHoldKey(window, from: start, to: end) { head.mayHoldSecret = true }
    }

    // MARK: Tags

    /// Looks for the `>` of an incomplete tag without taking it apart again at each new byte. Stops early at what no
    /// tag can hold, so that a fault is told when it is seen.
    private mutating func findTagEnd(_ window: Span<UInt8>, from: Int, quote: UInt8, last: UInt8) -> Bool {
        var (index, quote, last) = (from, quote, last)
        let end = min(window.count, cursor &+ limits.tagBytes)
        while index < end {
            let byte = window[index]
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
        if index >= cursor &+ limits.tagBytes { return true }
        state = .tag(searched: index, quote: quote, last: last)
        return false
    }

    private mutating func readTag(_ window: Span<UInt8>, at start: Int) -> Step? {
        let end = min(window.count, start &+ limits.tagBytes)
        switch tag.read(window.extracting(0..<end), at: start, limits: limits) {
        case .fault(let code, let at, let limit): return fail(code, at: at, limit: limit)
        case .incomplete:
            guard window.count &- start < limits.tagBytes else {
                return fail(.tagTooLong, at: start, limit: limits.tagBytes)
            }
            if case .tag = state {
                // The search stopped at something, and the reader still waits for more: take its word.
                state = .tag(searched: window.count, quote: 0, last: 0)
                return .incomplete
            }
            cursor = start
            state = .tag(searched: start &+ 1, quote: 0, last: 0)
            return nil
        case .complete: break
        }
        return tag.kind == .end ? closeElement(window, at: start) : openElement(window, at: start)
    }

    private mutating func openElement(_ window: Span<UInt8>, at start: Int) -> Step? {
        let depth = open.count
        guard depth < limits.depth else { return fail(.tooDeep, at: start, limit: limits.depth) }
        if depth <= 1, isStreamHeader(window) { return openStream(window) }
        guard depth > 0 else { return fail(.notAStream, at: start) }

        let bindings = scope.count
        if tag.hasDeclarations, let code = scope.enter(tag, in: window, isHeader: false) {
            return fail(code, at: start)
        }
        let binding: Int32
        switch resolve(window, inherited: open[depth - 1].defaultBinding) {
        case .success(let found): binding = found
        case .failure(let fault): return fail(fault.code, at: Int(fault.offset))
        }
        let namespace = binding < 0 ? Namespace.none : scope.namespace(Int(binding))
        if tag.hasReference || secrets.contains(element: window.extracting(tag.localName.range), namespace) {
            head.mayHoldSecret = true
        }
        if depth == 1 {
            noteStanza(window, binding: binding)
        } else if !head.mayHoldSecret {
            for attribute in tag.attributes where mayBeSecret(attribute, window) { head.mayHoldSecret = true }
        }
        if depth == 2, head.payloadName == nil, !hasDiscarded {
            head.payloadName = tag.localName
            head.payloadNamespace = binding < 0 ? NamespaceName(.none) : scope.name(Int(binding))
        }
        cursor = tag.end
        if tag.kind == .empty {
            scope.leave(to: bindings)
            guard depth > 1 else {
                head.isEmptyElement = true
                return item(.element, length: tag.end)
            }
        } else {
            push(window, bindings: bindings)
        }
        state = .text
        return nil
    }

    private mutating func closeElement(_ window: Span<UInt8>, at start: Int) -> Step? {
        guard let top = open.last else { return fail(.notAStream, at: start) }
        let nameStart = Int(top.nameStart)
        guard names.span.extracting(nameStart..<names.count).equals(window.extracting(tag.name.range)) else {
            return fail(.mismatchedTag, at: start)
        }
        names.removeLast(names.count - nameStart)
        open.removeLast()
        switch open.count {
        case 0:
            state = .ended
            return item(.end, length: tag.end)
        case 1:
            scope.leave(to: Int(top.bindings))
            return item(.element, length: tag.end)
        default:
            scope.leave(to: Int(top.bindings))
            cursor = tag.end
            state = .text
            return nil
        }
    }

    private mutating func push(_ window: Span<UInt8>, bindings: Int) {
        let defaultBinding =
            tag.hasDeclarations || open.isEmpty
            ? Int32(truncatingIfNeeded: scope.find(window.extracting(0..<0)) ?? -1)
            : open[open.count - 1].defaultBinding
        open.append(
            Open(
                nameStart: Int32(truncatingIfNeeded: names.count),
                bindings: Int32(truncatingIfNeeded: bindings),
                defaultBinding: defaultBinding
            )
        )
        names.append(window.extracting(tag.name.range))
    }

    // MARK: Stream header

    /// Whether the tag opens a stream, by its own declarations or those in force.
    private func isStreamHeader(_ window: Span<UInt8>) -> Bool {
        guard window.extracting(tag.localName.range).equals("stream") else { return false }
        let prefix = tag.prefix(in: window)
        for attribute in tag.attributes where attribute.isDeclaration {
            guard window.extracting(attribute.declaredPrefix).equals(prefix) else { continue }
            var uri: [UInt8] = []
            AttributeValue.decode(window.extracting(attribute.value.range), into: &uri)
            return Namespace(uri: uri.span) == .streams
        }
        guard let binding = scope.find(prefix) else { return false }
        return scope.namespace(binding) == .streams
    }

    private mutating func openStream(_ window: Span<UInt8>) -> Step? {
        let beginsEpoch = !seenDeclaration || !open.isEmpty
        resetEpoch()
        if let code = scope.enter(tag, in: window, isHeader: true) { return fail(code, at: 0) }
        switch resolve(window, inherited: -1) {
        case .success(let binding):
            head.name = tag.localName
            head.namespace = binding < 0 ? NamespaceName(.none) : scope.name(Int(binding))
            noteAttributes(window)
        case .failure(let fault): return fail(fault.code, at: Int(fault.offset))
        }
        if tag.hasReference { head.mayHoldSecret = true }
        if tag.kind == .empty {
            head.isEmptyElement = true
            state = .ended
            return item(.header, length: tag.end, beginsEpoch: beginsEpoch)
        }
        push(window, bindings: 0)
        return item(.header, length: tag.end, beginsEpoch: beginsEpoch)
    }

    /// The namespace of the stream's content: the header's default namespace.
    public var contentNamespace: Namespace {
        guard let root = open.first, root.defaultBinding >= 0 else { return .none }
        return scope.namespace(Int(root.defaultBinding))
    }

    /// Calls `body` with each prefix (empty for the default) and URI the stream header declared.
    ///
    /// For a parser that gets single items. Only between items; within one its own declarations come too.
    public func forEachDeclaration(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        scope.forEach(body)
    }

    /// Copies the declarations in force: between items those of the stream header.
    func copyScope(to scope: inout NamespaceScope) { scope.assign(self.scope) }

    /// The URI of `name`, which belongs to a head of this scanner's current epoch, appended to `output`.
    /// `item` holds the item of that head.
    public func appendURI(of name: NamespaceName, item: Span<UInt8>, to output: inout [UInt8]) {
        switch name.source {
        case .known:
            let uri = name.namespace.uri
            output.append(contentsOf: UnsafeBufferPointer(start: uri.utf8Start, count: uri.utf8CodeUnitCount))
        case .item(let range): AttributeValue.decode(item.slice(range), into: &output)
        case .inherited(let range): output.append(scope.inherited(range))
        }
    }

    // MARK: Names

    /// Resolves the tag's own prefix, gives its binding (-1 for no namespace), and checks the attributes' prefixes
    /// and that none stands there twice.
    private func resolve(_ window: Span<UInt8>, inherited: Int32) -> Result<Int32, ScanFault> {
        let binding: Int32
        if tag.colon < 0 {
            let found =
                tag.hasDeclarations
                ? Int32(truncatingIfNeeded: scope.find(window.extracting(0..<0)) ?? -1) : inherited
            binding = found >= 0 && scope.namespace(Int(found)) == .none ? -1 : found
        } else {
            let prefix = tag.prefix(in: window)
            guard !prefix.equals("xmlns") else { return failure(.reservedPrefix, at: Int(tag.name.start)) }
            if let found = scope.find(prefix) {
                binding = Int32(truncatingIfNeeded: found)
            } else if prefix.equals("xml") {
                binding = -1
            } else {
                return failure(.unboundPrefix, at: Int(tag.name.start))
            }
        }
        let count = tag.attributes.count
        for index in 0..<count {
            let attribute = tag.attributes[index]
            let attributeBinding = attribute.colon >= 0 && !attribute.isDeclaration ? find(attribute, window) : nil
            if attribute.colon >= 0, !attribute.isDeclaration, attributeBinding == nil {
                return failure(.unboundPrefix, at: Int(attribute.name.start))
            }
            for earlier in 0..<index where isSame(tag.attributes[earlier], attribute, attributeBinding, window) {
                return failure(.duplicateAttribute, at: Int(attribute.name.start))
            }
        }
        return .success(binding)
    }

    private static let xmlBinding = -1

    /// The binding of an attribute's prefix; ``xmlBinding`` for `xml:`, which needs no declaration.
    private func find(_ attribute: Tag.Attribute, _ window: Span<UInt8>) -> Int? {
        let prefix = window.extracting(attribute.prefix)
        return prefix.equals("xml") ? Self.xmlBinding : scope.find(prefix)
    }

    /// Whether two attributes have the same name, by the letter or by namespace (Namespaces in XML 1.0 §6.3).
    private func isSame(
        _ earlier: Tag.Attribute,
        _ later: Tag.Attribute,
        _ laterBinding: Int?,
        _ window: Span<UInt8>
    ) -> Bool {
        if earlier.name.count == later.name.count,
            window.extracting(earlier.name.range).equals(window.extracting(later.name.range))
        {
            return true
        }
        guard let laterBinding, earlier.colon >= 0, !earlier.isDeclaration,
            window.extracting(earlier.localName).equals(window.extracting(later.localName)),
            let earlierBinding = find(earlier, window)
        else { return false }
        guard laterBinding >= 0, earlierBinding >= 0 else { return laterBinding == earlierBinding }
        return scope.uri(earlierBinding).equals(scope.uri(laterBinding))
    }

    private func failure(_ code: ScanFault.Code, at offset: Int) -> Result<Int32, ScanFault> {
        .failure(ScanFault(code, at: UInt64(max(0, offset))))
    }

    // MARK: Heads

    private mutating func noteStanza(_ window: Span<UInt8>, binding: Int32) {
        head.name = tag.localName
        head.namespace = binding < 0 ? NamespaceName(.none) : scope.name(Int(binding))
        if head.namespace.namespace.isContent {
            let name = window.extracting(tag.localName.range)
            switch name.count {
            case 2 where name.equals("iq"): head.kind = .iq
            case 7 where name.equals("message"): head.kind = .message
            case 8 where name.equals("presence"): head.kind = .presence
            default: break
            }
        }
        noteAttributes(window)
    }

    private mutating func noteAttributes(_ window: Span<UInt8>) {
        for attribute in tag.attributes {
            let name = window.extracting(attribute.name.range)
            let value = StanzaHead.Attribute(range: attribute.value, needsDecoding: attribute.needsDecoding)
            switch name.count {
            case 2 where name.equals("id"): head.id = value
            case 2 where name.equals("to"): head.to = value
            case 4 where name.equals("type"): head.type = value
            case 4 where name.equals("from"): head.from = value
            case 7 where name.equals("version"): head.version = value
            default:
                if mayBeSecret(attribute, window) { head.mayHoldSecret = true }
            }
        }
    }

    /// Whether an attribute may be a secret by its name, or hold a key in a URL.
    private func mayBeSecret(_ attribute: Tag.Attribute, _ window: Span<UInt8>) -> Bool {
        guard !attribute.isDeclaration else { return false }
        return secrets.contains(attribute: window.extracting(attribute.localName))
            || TextScan.attributeMayHoldKey(window, attribute.value)
    }

    // MARK: Outcomes

    private mutating func item(_ kind: Item.Kind, length: Int, beginsEpoch: Bool = false) -> Step {
        if case .ended = state {} else { state = .between }
        cursor = 0
        defer { if kind != .element { head = StanzaHead() } }
        return .item(Item(kind: kind, length: length, head: head, beginsEpoch: beginsEpoch))
    }

    private mutating func fail(_ code: ScanFault.Code, at offset: Int, limit: Int = 0) -> Step {
        state = .faulted(code, at: offset, limit: limit)
        return .fault(code, at: offset, limit: limit)
    }
}

extension Tag {
    /// The prefix of the name; empty where there is none.
    @_lifetime(copy bytes)
    func prefix(in bytes: Span<UInt8>) -> Span<UInt8> {
        bytes.extracting(Int(name.start)..<max(Int(name.start), Int(colon)))
    }
}

extension Tag.Attribute {
    /// The prefix of the name; empty where there is none.
    var prefix: Range<Int> { Int(name.start)..<max(Int(name.start), Int(colon)) }
    /// The local part of the name.
    var localName: Range<Int> { (colon < 0 ? Int(name.start) : Int(colon) + 1)..<Int(name.end) }
    /// Of a namespace declaration: the prefix it declares; empty for the default namespace.
    var declaredPrefix: Range<Int> { colon < 0 ? Int(name.end)..<Int(name.end) : localName }
}

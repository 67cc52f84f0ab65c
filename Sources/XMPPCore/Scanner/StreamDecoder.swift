/// One direction of a stream: bytes are appended as they arrive, and events are returned for each top-level item.
///
/// Deterministic and pure: no socket, no clock, no thread. Append bytes, then request events until there are none: if
/// more bytes are needed, the result is `nil` or false, never an error. The bytes of an event can be read through
/// ``bytes`` until the next call.
public struct StreamDecoder: ~Copyable {
    /// The stream's number within the leg: 1 for the first, one more at each restart; 0 before the first byte.
    package private(set) var epoch = 0
    /// Offset in the leg of the first byte that belongs to no event yet.
    package private(set) var position: UInt64 = 0

    private var scanner: StanzaScanner
    @usableFromInline var storage: [UInt8] = []
    /// Bytes at the beginning of `storage` that belong to past events.
    private var consumed = 0
    /// The range in `storage` of the last event's bytes.
    @usableFromInline var current = 0..<0
    private var epochStart: UInt64 = 0
    /// Positions at which reads ended inside an item that was incomplete at that time.
    private(set) var boundaries = ReadBoundaries()
    /// Positions at which TLS records ended, of bytes that arrived in TLS.
    private var recordBoundaries = ReadBoundaries()
    private var oversize: Oversize?
    /// The state of a decoder of messages; nil for a stream.
    private var messages: MessageReader?
    /// Whether `oversize` or `messages` is set; checked at every event.
    @usableFromInline var isSpecial = false
    /// The bytes that the head of an oversize item refers to.
    private var headBytes: [UInt8] = []
    private var isFinished = false

    /// An item beyond the limit, which is scanned to its end without being stored. A class, since it is rare, and the
    /// decoder is moved often.
    private final class Oversize {
        let start: UInt64
        /// The head when the limit was exceeded; only the end shows whether the item may contain secrets.
        let head: StanzaHead
        /// The head at the end of the item.
        var end: StanzaHead?
        /// Whether the event of the item has been returned.
        var isReturned = false

        init(start: UInt64, head: StanzaHead) {
            self.start = start
            self.head = head
        }
    }

    /// Creates a decoder for one direction of a leg.
    ///
    /// - Parameter outline: An outline that the decoders of an event loop share. ``ElementReader`` can then read items
    ///   without parsing their bytes again.
    public init(limits: StreamLimits = .unauthenticated, outline: ItemOutline? = nil) {
        scanner = StanzaScanner(limits: limits, outline: outline)
    }

    /// Whether an item beyond the limit is scanned, or was the last event.
    private var hasOversize: Bool { isSpecial && oversize != nil }

    /// The current limits; change them only at an event.
    package var limits: StreamLimits {
        get { scanner.limits }
        set { scanner.limits = newValue }
    }

    /// The namespace of the stream's content, once the header has been seen.
    package var contentNamespace: Namespace { messages?.contentNamespace ?? scanner.contentNamespace }

    /// Number of bytes that have arrived and belong to no event yet.
    package var pendingCount: Int { storage.count - consumed }

    /// Bytes that have arrived and belong to no event yet. Valid until the next call.
    @usableFromInline package var pending: Span<UInt8> {
        @_lifetime(borrow self)
        get { storage.span.extracting(consumed..<storage.count) }
    }

    /// The bytes of the last event: the whole item, the fragment, the part of a truncated item that its head refers to,
    /// or all remaining bytes for a fault or an incomplete item. Valid until the next call.
    @inlinable package var bytes: Span<UInt8> {
        @_lifetime(borrow self)
        get { isSpecial ? bytesOfOversize : storage.span.extracting(current) }
    }

    /// The address of ``bytes``, valid until the next call.
    ///
    /// For an owner that stores decoders in an array and returns the span as its own: the compiler allows no span of an
    /// element to outlive the call of the subscript ("lifetime-dependent value escapes its scope"). A copy of the bytes
    /// for each event would be the alternative.
    @inlinable package var bytesAddress: UnsafeBufferPointer<UInt8> { bytes.withUnsafeBufferPointer { $0 } }

    /// The address of ``pending``, valid until the next call.
    @inlinable package var pendingAddress: UnsafeBufferPointer<UInt8> { pending.withUnsafeBufferPointer { $0 } }

    @usableFromInline var bytesOfOversize: Span<UInt8> {
        @_lifetime(borrow self)
        get { oversize?.isReturned == true ? headBytes.span : storage.span.extracting(current) }
    }

    /// Appends the bytes of one read.
    ///
    /// - Parameter keepsItem: Whether ``bytes`` remain those of the last event, which must be an item that is not
    ///   truncated.
    public mutating func append(_ input: Span<UInt8>, keepsItem: Bool = false) {
        append(input, records: nil, keepsItem: keepsItem)
    }

    /// Appends the bytes of one read.
    ///
    /// - Parameters:
    ///   - records: The offsets in the bytes at which further TLS records begin; nil if the bytes did not arrive in TLS.
    ///   - keepsItem: Whether ``bytes`` remain those of the last event.
    package mutating func append(_ input: Span<UInt8>, records: [Int]?, keepsItem: Bool) {
        guard !input.isEmpty else { return }
        if let records {
            // A read consists of whole TLS records.
            if pendingCount > 0 { recordBoundaries.append(position + UInt64(pendingCount)) }
            for start in records { recordBoundaries.append(position + UInt64(pendingCount + start)) }
        }
        if keepsItem {
            if pendingCount > 0 { boundaries.append(position + UInt64(pendingCount)) }
            return storage.append(input)
        }
        forgetTruncated()
        if consumed == storage.count {
            // Nothing is pending: an idle stream does not keep a buffer that a burst has enlarged.
            if storage.capacity > 16 << 10 { storage = [] } else { storage.removeAll(keepingCapacity: true) }
        } else {
            if consumed > 0 { storage.removeFirst(consumed) }
            boundaries.append(position + UInt64(storage.count))
        }
        consumed = 0
        current = 0..<0
        storage.append(input)
    }

    /// Restarts as at the beginning of a leg: declarations and pending bytes are discarded. The number of the stream
    /// and the offset within the leg continue. Used for a stream inside TLS, which must not use any data received
    /// before TLS (RFC 6120 §5.4.3.3).
    package mutating func restart() {
        position += UInt64(pendingCount)
        epochStart = position
        scanner = StanzaScanner(limits: scanner.limits, outline: scanner.outline)
        storage = []
        consumed = 0
        current = 0..<0
        boundaries = ReadBoundaries()
        recordBoundaries = ReadBoundaries()
        oversize = nil
        // Of messages, an unknown number was lost.
        messages = messages.map { _ in MessageReader(isInside: true) }
        if messages != nil { epoch = max(epoch, 1) }
        isSpecial = messages != nil
        headBytes = []
        isFinished = false
    }

    /// Returns the next event; nil if more bytes are needed.
    public mutating func next() -> StreamEvent? {
        var event = StreamEvent()
        return next(into: &event) ? event : nil
    }

    /// Puts the next event into `event`; returns false without changing it if more bytes are needed.
    ///
    /// For calls at each stanza: an event has 30 words, which ``next()`` copies twice.
    package mutating func next(into event: inout StreamEvent) -> Bool {
        if isSpecial {
            forgetTruncated()
            if messages != nil { return nextMessage(into: &event) }
            if let head = oversize?.end { return put(endOversize(head), into: &event) }
        }
        guard !isFinished else { return false }
        switch Self.scan(&scanner, storage, from: consumed) {
        case .incomplete, .more: return put(hasOversize ? fragment(discardable()) : beginOversize(), into: &event)
        case .fault(let code, let at, let limit): return put(fault(code, at: at, limit: limit), into: &event)
        case .item(let kind, let length, let beginsEpoch):
            if hasOversize || length > limits.itemBytes && kind == .element {
                if !hasOversize { openOversize(scanner.head) }
                oversize?.end = scanner.head
                return put(fragment(length), into: &event)
            }
            putItem(kind, length: length, beginsEpoch: beginsEpoch, into: &event)
            return true
        }
    }

    private func put(_ found: StreamEvent?, into event: inout StreamEvent) -> Bool {
        guard let found else { return false }
        event = found
        return true
    }

    /// Passes the scanner and the storage as two arguments, because the scanner changes while it reads the storage: the
    /// compiler accepts this for two parts of one struct.
    @inline(__always)
    private static func scan(_ scanner: inout StanzaScanner, _ storage: [UInt8], from start: Int)
        -> StanzaScanner.Signal
    {
        scanner.scan(storage.span.extracting(start..<storage.count))
    }

    /// Ends the input, after ``next()`` has returned nil: returns the rest of an incomplete item, or nil if no bytes
    /// remain.
    public mutating func finish() -> StreamEvent? {
        forgetTruncated()
        guard !isFinished, pendingCount > 0 || hasOversize else { return nil }
        if let event = finishMessage() { return event }
        let storage = self.storage
        if case .fault(let code, let at, let limit) = scanner.finish(storage.span.extracting(consumed..<storage.count))
        {
            return fault(code, at: at, limit: limit)
        }
        isFinished = true
        current = consumed..<storage.count
        var event = makeEvent(.incomplete, length: pendingCount)
        // The beginning of an item beyond the limit was discarded, so its head has no bytes.
        if hasOversize { event.isTruncated = true } else { event.head = scanner.partialHead }
        return event
    }

    /// Whether all bytes so far belong to whole items or are between them, so that another item could begin here. Valid
    /// after ``next()`` has returned nil.
    package var isBetweenItems: Bool {
        // The head of a truncated item is kept until the call after its end.
        let isInsideOversize = hasOversize && oversize?.isReturned != true
        if let messages { return pendingCount == 0 && !messages.isInside && !isInsideOversize }
        return !isInsideOversize && !storage[consumed...].contains(UInt8(ascii: "<"))
    }

    /// Appends the URI of a name in the head of the last event.
    package func appendURI(of name: NamespaceName, to output: inout [UInt8]) {
        scanner.appendURI(of: name, item: bytes, to: &output)
    }

    /// The outline of the last event's item, if it is complete.
    var outline: ItemOutline? {
        guard let outline = scanner.outline, outline.isWhole(scanner.outlinedItem) else { return nil }
        return outline
    }

    /// Copies the declarations in scope: at an item, those of the stream header.
    func copyScope(to scope: inout NamespaceScope) { scanner.copyScope(to: &scope) }

    /// The namespace declarations of the stream header, as written in a tag: ` xmlns:prefix='uri'` for each.
    package var declarations: [UInt8] { scanner.declarations }

    /// Calls `body` with each prefix (empty for the default) and URI of the stream header.
    package func forEachDeclaration(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        scanner.forEachDeclaration(body)
    }

    // MARK: Events

    private mutating func putItem(
        _ kind: StanzaScanner.Item.Kind,
        length: Int,
        beginsEpoch: Bool,
        into event: inout StreamEvent
    ) {
        if beginsEpoch {
            epoch += 1
            epochStart = position
        }
        event.kind = .item(kind)
        event.epoch = epoch
        event.offset = position - epochStart
        event.position = position
        event.length = UInt64(length)
        event.head = scanner.head
        event.isTruncated = false
        consume(length, into: &event)
    }

    private func makeEvent(_ kind: StreamEvent.Kind, length: Int) -> StreamEvent {
        StreamEvent(kind: kind, epoch: epoch, offset: position - epochStart, position: position, length: UInt64(length))
    }

    /// Consumes the next `count` bytes, and stores the positions at which reads and TLS records ended in them.
    private mutating func consume(_ count: Int, into event: inout StreamEvent) {
        current = consumed..<(consumed + count)
        consumed += count
        let start = position
        position += UInt64(count)
        event.chunks = boundaries.isEmpty ? [] : boundaries.consume(from: start, to: position)
        event.tlsRecords = recordBoundaries.isEmpty ? [] : recordBoundaries.consume(from: start, to: position)
    }

    private mutating func fault(_ code: ScanFault.Code, at: Int, limit: Int) -> StreamEvent {
        isFinished = true
        current = consumed..<storage.count
        let offset = position - epochStart + UInt64(max(0, at))
        var event = makeEvent(.fault(ScanFault(code, at: offset, limit: limit)), length: pendingCount)
        // The beginning of an item beyond the limit was discarded; if no item had begun, the head is that of the
        // previous item.
        if hasOversize { event.isTruncated = true } else if at > 0 { event.head = scanner.partialHead }
        return event
    }

    // MARK: Items beyond the limit

    private mutating func beginOversize() -> StreamEvent? {
        guard pendingCount > limits.itemBytes, scanner.isInsideElement else { return nil }
        openOversize(scanner.partialHead)
        return fragment(discardable())
    }

    private mutating func openOversize(_ head: StanzaHead) {
        let end = min(storage.count, consumed + head.extent)
        headBytes = Array(storage[consumed..<end])
        oversize = Oversize(start: position, head: head)
        isSpecial = true
    }

    private mutating func discardable() -> Int {
        let storage = self.storage
        return scanner.discard(storage.span.extracting(consumed..<storage.count))
    }

    private mutating func fragment(_ count: Int) -> StreamEvent? {
        guard count > 0 else { return nil }
        let isFirst = oversize?.start == position
        var event = makeEvent(.fragment(isFirst: isFirst), length: count)
        // The head refers to the first fragment's bytes only.
        if isFirst, let head = oversize?.head { event.head = head }
        consume(count, into: &event)
        return event
    }

    private mutating func endOversize(_ head: StanzaHead) -> StreamEvent? {
        guard let start = oversize?.start else { return nil }
        oversize?.isReturned = true
        current = 0..<0
        var event = StreamEvent(
            kind: .item(.element),
            epoch: epoch,
            offset: start - epochStart,
            position: start,
            length: position - start
        )
        event.head = head
        event.isTruncated = true
        return event
    }

    /// Discards a truncated item's head bytes, which are valid until the call after its event.
    private mutating func forgetTruncated() {
        guard hasOversize, oversize?.isReturned == true else { return }
        oversize = nil
        isSpecial = messages != nil
        headBytes = []
    }
}

/// An event in one direction of a stream.
public struct StreamEvent: Sendable {
    /// The kind of event.
    public enum Kind: Sendable {
        /// A whole top-level item.
        case item(StanzaScanner.Item.Kind)
        /// A piece of an item beyond the size limit; the item itself follows, truncated, when it ends.
        case fragment(isFirst: Bool)
        /// The bytes are not acceptable; no event follows. Of messages, the bytes are the whole message, and the events
        /// of later messages follow.
        case fault(ScanFault)
        /// The input ended inside an item; no event follows.
        case incomplete
    }

    /// The kind of event.
    public var kind: Kind
    /// The stream's number within the leg.
    package var epoch: Int
    /// Offset of the first byte from the beginning of the epoch.
    public var offset: UInt64
    /// Offset of the first byte from the beginning of the leg.
    package var position: UInt64
    /// Number of bytes on the wire.
    public var length: UInt64
    /// The head of a header or element, complete or not; empty in later fragments, and in the incomplete end of an item
    /// beyond the size limit.
    package var head = StanzaHead()
    /// Offsets within the item at which reads ended.
    package var chunks: [UInt64] = []
    /// Offsets within the item at which TLS records ended.
    package var tlsRecords: [UInt64] = []
    /// Whether the item was beyond the size limit. Only its head is known; if the item is incomplete, the head is
    /// unknown too.
    package var isTruncated = false

    init(kind: Kind, epoch: Int, offset: UInt64, position: UInt64, length: UInt64) {
        self.kind = kind
        self.epoch = epoch
        self.offset = offset
        self.position = position
        self.length = length
    }

    /// Creates an empty event, for ``StreamDecoder/next(into:)``.
    package init() { self.init(kind: .incomplete, epoch: 0, offset: 0, position: 0, length: 0) }
}

/// Positions at which reads ended, in ascending order, consumed item by item.
///
/// The time for an item is O(1) plus the number of its positions, even if many items and many small reads are buffered.
struct ReadBoundaries {
    private var positions: [UInt64] = []
    /// Index of the first unconsumed position.
    private var next = 0
    private(set) var comparisons = 0

    var isEmpty: Bool { next == positions.count }

    /// Appends a position, which must be greater than all earlier ones.
    mutating func append(_ position: UInt64) { positions.append(position) }

    /// Consumes the positions up to `end`, and returns those inside the item, relative to `start`.
    mutating func consume(from start: UInt64, to end: UInt64) -> [UInt64] {
        var inside: [UInt64] = []
        while next < positions.count {
            comparisons += 1
            let position = positions[next]
            guard position <= end else { return inside }
            if position > start, position < end { inside.append(position - start) }
            next += 1
        }
        positions.removeAll(keepingCapacity: positions.count <= 64)
        next = 0
        return inside
    }
}

/// Messages of RFC 7395: each is one event, an item or a fault, which contains all of its bytes.
///
/// `<open/>` is a ``StanzaScanner/Item/Kind/header`` and begins an epoch, `<close/>` is an
/// ``StanzaScanner/Item/Kind/end``, every other element an ``StanzaScanner/Item/Kind/element``. Positions and offsets count
/// the bytes of messages, not those of frames. A message beyond the size limit gives fragments first, like an item of a
/// stream. After a fault, the next message is decoded.
extension StreamDecoder {
    /// Creates a decoder for one direction of a leg.
    ///
    /// - Parameters:
    ///   - framing: How the direction is divided into items.
    ///   - outline: An outline that the decoders of an event loop share; see ``init(limits:outline:)``.
    package init(framing: StreamFraming, limits: StreamLimits = .unauthenticated, outline: ItemOutline? = nil) {
        self.init(limits: limits, outline: outline)
        guard framing != .stream else { return }
        messages = MessageReader(isInside: framing == .messagesInside)
        isSpecial = true
        if framing == .messagesInside { epoch = 1 }
    }

    /// Whether the input are messages.
    package var isOfMessages: Bool { messages != nil }

    /// The deviations of the last message; empty for a stream.
    package var messageTraits: MessageTraits { messages?.traits ?? [] }

    /// Appends a piece of a message, as frames and reads divide it; it may be empty.
    ///
    /// - Parameters:
    ///   - endsMessage: Whether the message is complete. The next piece belongs to the next message.
    ///   - keepsItem: As for ``append(_:keepsItem:)``.
    package mutating func append(message piece: Span<UInt8>, endsMessage: Bool, keepsItem: Bool = false) {
        append(piece, keepsItem: keepsItem)
        messages?.add(pieceTo: position &+ UInt64(pendingCount), endsMessage: endsMessage)
    }

    /// Returns the element of a message that is an item, without the declaration and the white space around it: for
    /// ``StanzaParser/parse(_:root:)``, which accepts nothing around an element.
    @_lifetime(copy message)
    package static func element(ofMessage message: Span<UInt8>) -> Span<UInt8> {
        guard message.count > 1 else { return message }
        var (start, end) = (0, message.count)
        if message[1] == 0x3F, case .complete(let declared) = XMLDeclaration.check(message) { start = declared }
        while start < end, XMLCharacters.isWhitespace(message[start]) { start &+= 1 }
        while end > start, XMLCharacters.isWhitespace(message[end &- 1]) { end &-= 1 }
        return message.extracting(start..<end)
    }

    /// Returns a stanza as a message: with a declaration of `jabber:client` if it is in no namespace. Over TCP, stanzas
    /// inherit that from the stream header (RFC 7395 §3.3.3).
    package static func qualified(message item: [UInt8]) -> [UInt8] {
        var decoder = StreamDecoder(framing: .messagesInside, limits: .authenticated)
        var stanza: [UInt8] = []
        stanza.append(Self.element(ofMessage: item.span))
        decoder.append(message: stanza.span, endsMessage: true)
        guard let event = decoder.next(), case .item(.element) = event.kind, !event.isTruncated,
            event.head.namespace.namespace == .none
        else { return stanza }
        let end = Int(event.head.name.end)
        return stanza[..<end] + Array(" xmlns='jabber:client'".utf8) + stanza[end...]
    }

    /// Puts the next event into `event`; returns false without changing it if more bytes are needed.
    private mutating func nextMessage(into event: inout StreamEvent) -> Bool {
        guard let messages, !isFinished, messages.isInside || pendingCount > 0 else { return false }
        let available = messages.end.map { Int(min($0 &- position, UInt64(pendingCount))) } ?? pendingCount
        let isWhole = messages.end != nil
        if !messages.hasBegun {
            scanner.beginMessage()
            messages.begin(at: position &- epochStart)
        }
        Self.read(messages, &scanner, storage, consumed..<(consumed + available), isWhole, position &- epochStart)
        let isFinal = isWhole && (!hasOversize || available == 0)
        if isFinal, hasOversize || available <= limits.itemBytes {
            putMessage(messages, length: available, into: &event)
            return true
        }
        guard let fragment = fragment(ofMessage: messages, available) else { return false }
        event = fragment
        return true
    }

    /// Passes the scanner and the storage as two arguments, as ``look(_:_:from:)`` does.
    private static func read(
        _ messages: MessageReader,
        _ scanner: inout StanzaScanner,
        _ storage: [UInt8],
        _ range: Range<Int>,
        _ isWhole: Bool,
        _ start: UInt64
    ) {
        messages.read(storage.span.extracting(range), isWhole: isWhole, at: start, &scanner)
    }

    /// Puts the event of the current message, whose remaining bytes are the next `length`.
    private mutating func putMessage(_ messages: MessageReader, length: Int, into event: inout StreamEvent) {
        let fault = messages.fault
        var head = scanner.head
        let kind = messages.finish()
        if !messages.traits.isEmpty { head.isUnusual = true }
        if let oversize {
            var last = oversize.head
            last.mayContainSecret = last.mayContainSecret || head.mayContainSecret
            if let ended = endOversize(fault == nil ? head : last) { event = ended }
        } else {
            if fault == nil, kind == .header {
                epoch += 1
                epochStart = position
            }
            event = makeEvent(.item(kind), length: length)
            event.head = head
            consume(length, into: &event)
        }
        if let fault { event.kind = .fault(fault) }
    }

    /// Returns a fragment of a message beyond the size limit: all bytes that need not be stored.
    private mutating func fragment(ofMessage messages: MessageReader, _ available: Int) -> StreamEvent? {
        guard hasOversize || available > limits.itemBytes else { return nil }
        // Before the element's first tag is complete, its length has other limits.
        if case .element = messages.phase, !hasOversize, !scanner.isInsideElement { return nil }
        if case .prolog = messages.phase { return nil }
        if !hasOversize { openOversize(scanner.head) }
        let storage = self.storage
        let count = messages.discard(storage.span.extracting(consumed..<(consumed + available)), &scanner)
        return fragment(count)
    }

    /// Ends the input: returns the fault of an incomplete message if it has one; nil otherwise, and for a stream.
    private mutating func finishMessage() -> StreamEvent? {
        guard let fault = messages?.fault, messages?.hasBegun == true else { return nil }
        isFinished = true
        current = consumed..<storage.count
        var event = makeEvent(.fault(fault), length: pendingCount)
        event.isTruncated = hasOversize
        return event
    }
}

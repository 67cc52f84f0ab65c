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

    /// Puts the next event into `event`; returns false without changing it if more bytes are needed.
    mutating func nextMessage(into event: inout StreamEvent) -> Bool {
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
            last.mayHoldSecret = last.mayHoldSecret || head.mayHoldSecret
            if let ended = endOversize(fault == nil ? head : last) { event = ended }
        } else {
            if fault == nil, kind == .header {
                epoch += 1
                epochStart = position
            }
            event = makeEvent(.item(kind), length: length)
            event.head = head
            event.chunks = take(length)
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
    mutating func finishMessage() -> StreamEvent? {
        guard let fault = messages?.fault, messages?.hasBegun == true else { return nil }
        isFinished = true
        current = consumed..<storage.count
        var event = makeEvent(.fault(fault), length: pendingCount)
        event.isTruncated = hasOversize
        return event
    }
}

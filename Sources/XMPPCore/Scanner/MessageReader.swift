/// How an XMPP stream is divided into items.
package enum StreamFraming: Sendable, Hashable {
    /// One XML document between a stream header and its end (RFC 6120 §4), over TCP.
    case stream
    /// WebSocket messages of one element each, beginning with `<open/>` (RFC 7395 §3.3).
    case messages
    /// Messages of a connection whose beginning was not seen: the first need not be `<open/>`.
    case messagesInside
}

/// Deviations of a message that is nevertheless one element.
package struct MessageTraits: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The message begins with an XML declaration, which RFC 7395 §3.3.3 does not recommend.
    package static let declaration = MessageTraits(rawValue: 1)
    /// White space before the element: the message does not begin with `<`, as RFC 7395 §3.3.3 requires.
    package static let leadingSpace = MessageTraits(rawValue: 2)
    /// White space after the element.
    package static let trailingSpace = MessageTraits(rawValue: 4)
    /// An `<open/>` or `<close/>` with content.
    package static let content = MessageTraits(rawValue: 8)
    /// The message is binary, and not text as RFC 7395 §3.2 requires. The frames show this, not the reader.
    package static let binary = MessageTraits(rawValue: 16)
}

/// Reads the current message of a ``StreamDecoder``: finds its element with the scanner, and checks what is around it.
///
/// Like the scanner it is passed a window again and again, until the message ends. A class, since the decoder is moved
/// often, and only decoders of messages have one.
final class MessageReader {
    enum Phase {
        /// Before the element: white space and a declaration up to the cursor have been read.
        case prolog
        /// In the element: the scanner has the position.
        case element
        /// After the element: white space up to the cursor has been read.
        case tail
        /// The message has a fault; the rest of it is not read.
        case failed
    }

    /// The kind of stream element that a message is.
    enum Role {
        case open, close, other
    }

    private(set) var phase = Phase.prolog
    private var cursor = 0
    /// Offset of the current message in the epoch.
    private var origin: UInt64 = 0
    /// Offset of the element in the message.
    private var elementStart = 0
    /// Whether the element is within the size limit.
    private var isElementSmall = true
    /// Whether the current message was begun: the scanner is prepared.
    private(set) var hasBegun = false
    private var role = Role.other
    /// The first fault of the current message, with its offset in the epoch.
    private(set) var fault: ScanFault?
    private var currentTraits = MessageTraits()
    /// The traits of the last message that ended.
    private(set) var traits = MessageTraits()

    /// Offsets in the leg after the last byte of messages that have arrived, in ascending order.
    private var ends: [UInt64] = []
    private var nextEnd = 0
    /// Whether the last piece that has arrived did not end its message.
    private var isArriving = false

    /// Whether `<open/>` was read, and no `<close/>` after it.
    private(set) var isOpen: Bool
    private var isClosed = false

    init(isInside: Bool = false) { isOpen = isInside }

    /// The namespace of stanzas: always that of clients (RFC 7395 §3.3.3) while the stream is open.
    var contentNamespace: Namespace { isOpen || isClosed ? .client : .none }

    /// Whether a message has begun whose event was not returned, even if it has no bytes so far.
    var isInside: Bool { isArriving || nextEnd < ends.count }

    /// The end of the current message; nil if it has not arrived.
    var end: UInt64? { nextEnd < ends.count ? ends[nextEnd] : nil }

    /// Adds a piece of a message that ends at this offset in the leg.
    func add(pieceTo end: UInt64, endsMessage: Bool) {
        isArriving = !endsMessage
        if endsMessage { ends.append(end) }
    }

    /// Begins the message at this offset in the epoch.
    func begin(at offset: UInt64) {
        hasBegun = true
        origin = offset
        phase = .prolog
        cursor = 0
        role = .other
        fault = nil
        currentTraits = []
    }

    /// Ends the current message; returns the kind of item that it is, if it has no fault.
    func finish() -> StanzaScanner.Item.Kind {
        hasBegun = false
        traits = currentTraits
        nextEnd += 1
        if nextEnd == ends.count {
            ends.removeAll(keepingCapacity: ends.count <= 64)
            nextEnd = 0
        }
        guard fault == nil else { return .element }
        switch role {
        case .open:
            isOpen = true
            return .header
        case .close:
            (isOpen, isClosed) = (false, true)
            return .end
        case .other: return .element
        }
    }

    /// Number of bytes at the beginning of the window that are not needed any more, if the message is too large to be
    /// stored. The caller removes them before the next call.
    func discard(_ window: Span<UInt8>, _ scanner: inout StanzaScanner) -> Int {
        switch phase {
        case .prolog: return 0
        case .element: return scanner.discard(window)
        case .tail:
            defer { cursor = 0 }
            return cursor
        case .failed: return window.count
        }
    }

    // MARK: Reading

    /// Reads on in the window, which begins with the first byte of the message that was not discarded.
    ///
    /// - Parameters:
    ///   - isWhole: Whether the window ends with the message.
    ///   - start: Offset of the window in the epoch.
    func read(_ window: Span<UInt8>, isWhole: Bool, at start: UInt64, _ scanner: inout StanzaScanner) {
        while true {
            let isDone: Bool
            switch phase {
            case .prolog: isDone = readProlog(window, isWhole, start, &scanner)
            case .element: isDone = readElement(window, isWhole, start, &scanner)
            case .tail: return readTail(window, isWhole, start, limit: scanner.limits.itemBytes)
            case .failed: return
            }
            if isDone { return }
        }
    }

    private func fail(_ code: ScanFault.Code, _ offset: UInt64, limit: Int = 0) -> Bool {
        fault = ScanFault(code, at: offset, limit: limit)
        phase = .failed
        return true
    }

    private func skipWhitespace(_ window: Span<UInt8>) -> Bool {
        let start = cursor
        while cursor < window.count, XMLCharacters.isWhitespace(window[cursor]) { cursor &+= 1 }
        return cursor > start
    }

    /// Returns true if no more can be read now.
    private func readProlog(
        _ window: Span<UInt8>,
        _ isWhole: Bool,
        _ start: UInt64,
        _ scanner: inout StanzaScanner
    ) -> Bool {
        if skipWhitespace(window) { currentTraits.insert(.leadingSpace) }
        let place = start &+ UInt64(cursor)
        guard cursor < scanner.limits.itemBytes || cursor == 0 else {
            return fail(.itemTooLong, origin &+ UInt64(scanner.limits.itemBytes), limit: scanner.limits.itemBytes)
        }
        guard !isClosed else { return cursor < window.count || isWhole ? fail(.afterStreamEnd, origin) : true }
        guard cursor < window.count else { return isWhole ? fail(.emptyMessage, place) : true }
        guard window[cursor] == 0x3C else { return fail(.textInMessage, place) }
        guard cursor &+ 1 < window.count else {
            return isWhole ? fail(.unfinishedElement, start &+ UInt64(window.count)) : true
        }
        guard window[cursor &+ 1] == 0x3F else {
            phase = .element
            elementStart = cursor
            scanner.beginElement(at: cursor)
            return false
        }
        // A declaration is the first thing in a document (XML 1.0 production 22).
        guard cursor == 0 else { return fail(.processingInstruction, place) }
        switch XMLDeclaration.check(window) {
        case .complete(let end):
            currentTraits.insert(.declaration)
            cursor = end
            return false
        case .incomplete: return isWhole ? fail(.unfinishedElement, start &+ UInt64(window.count)) : true
        case .fault(let code, let at): return fail(code, start &+ UInt64(at))
        }
    }

    private func readElement(
        _ window: Span<UInt8>,
        _ isWhole: Bool,
        _ start: UInt64,
        _ scanner: inout StanzaScanner
    ) -> Bool {
        switch scanner.scan(window) {
        case .incomplete, .more:
            guard isWhole else { return true }
            if case .fault(let code, let at, let limit) = scanner.finish(window) {
                return fail(code, start &+ UInt64(max(0, at)), limit: limit)
            }
            return fail(.unfinishedElement, start &+ UInt64(window.count))
        case .fault(let code, let at, let limit): return fail(code, start &+ UInt64(max(0, at)), limit: limit)
        case .item(_, let length, _):
            isElementSmall = !scanner.hasDiscarded && length <= scanner.limits.itemBytes
            role = isElementSmall ? Self.role(scanner.head, window) : .other
            if role != .other, !isEmpty(scanner.head, window.extracting(elementStart..<length)) {
                currentTraits.insert(.content)
            }
            if role != .open, !isOpen { return fail(.missingOpen, origin) }
            cursor = length
            phase = .tail
            return false
        }
    }

    private static func role(_ head: StanzaHead, _ window: Span<UInt8>) -> Role {
        guard head.namespace.namespace == .framing else { return .other }
        let name = window.slice(head.name)
        return name.equals("open") ? .open : name.equals("close") ? .close : .other
    }

    private func isEmpty(_ head: StanzaHead, _ element: Span<UInt8>) -> Bool {
        guard !head.isEmptyElement else { return true }
        var index = element.count
        while index > 0, element[index &- 1] != 0x3C { index &-= 1 }
        return head.payloadName == nil && index > 1 && element[index &- 2] == 0x3E
    }

    private func readTail(_ window: Span<UInt8>, _ isWhole: Bool, _ start: UInt64, limit: Int) {
        if skipWhitespace(window) { currentTraits.insert(.trailingSpace) }
        if isElementSmall, cursor > limit {
            _ = fail(.itemTooLong, origin &+ UInt64(limit), limit: limit)
            return
        }
        guard cursor < window.count else { return }
        let place = start &+ UInt64(cursor)
        guard window[cursor] == 0x3C else {
            _ = fail(.textInMessage, place)
            return
        }
        guard cursor &+ 1 < window.count || isWhole else { return }
        let code: ScanFault.Code =
            switch cursor &+ 1 < window.count ? window[cursor &+ 1] : 0 {
            case 0x21: .comment
            case 0x2F: .mismatchedTag
            case 0x3F: .processingInstruction
            default: .severalElements
            }
        _ = fail(code, place)
    }
}

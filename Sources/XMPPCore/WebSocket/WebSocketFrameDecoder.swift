/// Decodes the frames of one direction of a WebSocket (RFC 6455 §5), after the handshake.
///
/// The decoder is deterministic and pure: no socket, no clock, no thread. It stores no payload, except that of a control
/// frame, so that a frame of any size passes. As for ``StanzaScanner``, the caller passes a *window* that begins with the
/// first byte not yet consumed, and removes as many bytes as the result says before the next call; if more bytes are
/// needed, the result is ``Signal/incomplete``, never an error. Every split of the input gives the same headers, control
/// frames and faults, and the same payload in other pieces.
///
/// Checks what RFC 6455 requires of the sender, including the UTF-8 of text messages (§8.1), and the length of messages.
/// Binary messages, which RFC 7395 §3.2 does not allow, are accepted: see ``frame``.
package struct WebSocketFrameDecoder: ~Copyable {
    /// The result of decoding the beginning of the window.
    package enum Signal: Sendable, Hashable {
        /// More bytes are needed; pass the same window again with more bytes.
        case incomplete
        /// The window begins with a frame header of `length` bytes, described by ``WebSocketFrameDecoder/frame``. If the
        /// frame is a data frame, ``payload(length:endsMessage:)`` follows at least once, otherwise ``control(length:)``.
        case header(length: Int)
        /// The window begins with `length` bytes of payload of a data frame. May be 0 in an empty frame. If
        /// `endsMessage`, the message is complete.
        case payload(length: Int, endsMessage: Bool)
        /// The window begins with the whole payload of a control frame: see ``WebSocketFrameDecoder/controlPayload``.
        case control(length: Int)
        /// The bytes are not acceptable; later calls return the same fault.
        case fault(WebSocketFault)
    }

    private enum State {
        case header
        case payload(remaining: Int)
        case control
        case faulted(WebSocketFault)
    }

    /// Maximum number of bytes of a control frame's payload (RFC 6455 §5.5).
    package static let controlBytes = 125

    /// The endpoint that sends the frames.
    package let sender: WebSocketSender
    /// Maximum number of payload bytes of one message, compared with the announced length and with the sum of the
    /// fragments. Of compressed messages, the compressed bytes count. Default 16 MiB; a change applies to later frames.
    package var messageBytes: Int
    /// Whether RSV1 is accepted on the first frame of a message: permessage-deflate was negotiated (RFC 7692). The UTF-8
    /// of compressed messages is not checked. Default false.
    package var acceptsCompression = false

    /// The last header.
    package private(set) var frame = WebSocketFrame(.continuation)
    /// Offset in the direction of the first byte not yet consumed.
    package private(set) var offset: UInt64 = 0
    /// The kind of the current or last message: text or binary.
    package private(set) var messageKind = WebSocketOpcode.text
    /// Whether the current or last message is compressed.
    package private(set) var isMessageCompressed = false
    /// Number of frames of the current or last message so far.
    package private(set) var fragments = 0
    /// Number of payload bytes that the frames of the current or last message have announced so far.
    package private(set) var messageLength = 0

    private var state = State.header
    private var isInMessage = false
    private var hasClosed = false
    private var text = UTF8Check()
    private var control: [UInt8] = []

    /// Creates a decoder for the bytes after the handshake.
    package init(_ sender: WebSocketSender, messageBytes: Int = 16 << 20) {
        self.sender = sender
        self.messageBytes = messageBytes
    }

    /// Whether all bytes so far belong to whole messages and control frames, so that another frame could be inserted
    /// here that is not a control frame.
    package var isBetweenMessages: Bool { isBetweenFrames && !isInMessage }

    /// Whether the last frame is complete, so that a control frame could be inserted here.
    package var isBetweenFrames: Bool {
        if case .header = state { true } else { false }
    }

    /// Whether a close frame was decoded.
    package var isClosed: Bool { hasClosed }

    /// The unmasked payload of the last control frame, valid until the next call.
    package var controlPayload: Span<UInt8> {
        @_lifetime(borrow self)
        get { control.span }
    }

    /// The code of the last control frame, if that is a close frame: ``WebSocketCloseCode/noStatus`` if it has none.
    package var closeCode: WebSocketCloseCode {
        guard control.count >= 2 else { return .noStatus }
        return WebSocketCloseCode(rawValue: UInt16(control[0]) &<< 8 | UInt16(control[1]))
    }

    /// The reason in the last control frame, if that is a close frame: valid UTF-8, at most 123 bytes.
    package var closeReason: Span<UInt8> {
        @_lifetime(borrow self)
        get { control.span.extracting(min(2, control.count)..<control.count) }
    }

    // MARK: Decoding

    /// Decodes the beginning of the window, and appends the payload of data frames, unmasked, to `payload`.
    package mutating func next(_ window: Span<UInt8>, into payload: inout [UInt8]) -> Signal {
        guard case .payload(let remaining) = state else { return readOther(window) }
        guard !window.isEmpty || remaining == 0 else { return .incomplete }
        let count = min(remaining, window.count)
        let start = payload.count
        payload.append(window.extracting(0..<count))
        var isASCII = false
        if let key = frame.maskKey {
            isASCII = WebSocketMask.apply(key, at: frame.payloadLength &- remaining, to: &payload, from: start)
        }
        let signal = pass(count, of: remaining, isASCII: isASCII, payload.span.extracting(start..<(start &+ count)))
        let passed = if case .payload(let length, _) = signal { length } else { 0 }
        if passed < count { payload.removeLast(count &- passed) }
        return signal
    }

    /// Decodes the beginning of the window, and unmasks the payload of data frames in place: the first `length` bytes.
    /// Do not use the window again after a fault.
    package mutating func next(inPlace window: inout MutableSpan<UInt8>) -> Signal {
        guard case .payload(let remaining) = state else { return readOther(window.span) }
        guard !window.isEmpty || remaining == 0 else { return .incomplete }
        let count = min(remaining, window.count)
        var isASCII = false
        if let key = frame.maskKey {
            isASCII = WebSocketMask.apply(key, at: frame.payloadLength &- remaining, to: &window, count: count)
        }
        return pass(count, of: remaining, isASCII: isASCII, window.span.extracting(0..<count))
    }

    /// Consumes unmasked bytes of payload, up to the first that is invalid.
    private mutating func pass(_ count: Int, of remaining: Int, isASCII: Bool, _ bytes: Span<UInt8>) -> Signal {
        var count = count
        var invalid: UInt64?
        if messageKind == .text, !isMessageCompressed {
            if !isASCII || text.isIncomplete, let place = text.firstInvalid(in: bytes) {
                count = place
                invalid = offset &+ UInt64(place)
            } else if count == remaining, frame.isFinal, text.isIncomplete {
                invalid = offset &+ UInt64(count)
            }
        }
        offset &+= UInt64(count)
        if let invalid {
            let fault = WebSocketFault(.invalidUTF8, at: invalid)
            state = .faulted(fault)
            return count > 0 ? .payload(length: count, endsMessage: false) : .fault(fault)
        }
        guard count == remaining else {
            state = .payload(remaining: remaining &- count)
            return .payload(length: count, endsMessage: false)
        }
        state = .header
        if frame.isFinal { isInMessage = false }
        return .payload(length: count, endsMessage: frame.isFinal)
    }

    /// Decodes a header or a control frame.
    private mutating func readOther(_ window: Span<UInt8>) -> Signal {
        let signal: Signal
        switch state {
        case .control: signal = readControl(window)
        case .faulted(let fault): return .fault(fault)
        default: signal = readHeader(window)
        }
        switch signal {
        case .fault(let fault): state = .faulted(fault)
        case .header(let length), .control(let length): offset &+= UInt64(length)
        default: break
        }
        return signal
    }
}

/// Headers and control frames.
extension WebSocketFrameDecoder {
    private mutating func readHeader(_ window: Span<UInt8>) -> Signal {
        guard !window.isEmpty else { return .incomplete }
        let first = window[0]
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else { return faultInFirst(first, nil) }
        let isFinal = first & 0x80 != 0
        let isPlain = first & 0x70 == 0 && !hasClosed && (opcode == .continuation) == isInMessage && !opcode.isControl
        if !isPlain, let code = faultOfFirst(first, opcode) { return fault(code, at: 0) }

        guard window.count > 1 else { return .incomplete }
        let second = window[1]
        let isMasked = second & 0x80 != 0
        guard isMasked == (sender == .client) else { return fault(isMasked ? .maskedFrame : .unmaskedFrame, at: 1) }
        var length = Int(second & 0x7F)
        var headerLength = 2
        if length > Self.controlBytes {
            guard !opcode.isControl else { return fault(.controlTooLong, at: 1, limit: Self.controlBytes) }
            let digits = length == 126 ? 2 : 8
            headerLength &+= digits
            guard window.count >= headerLength else { return .incomplete }
            guard digits == 2 || window[2] < 0x80 else { return fault(.lengthOverflow, at: 2) }
            let announced = Self.number(window.extracting(2..<headerLength))
            guard announced >= (digits == 2 ? 126 : 1 << 16) else { return fault(.lengthNotMinimal, at: 2) }
            guard let exact = Int(exactly: announced) else { return fault(.lengthOverflow, at: 2) }
            length = exact
        }
        let earlier = opcode == .continuation ? messageLength : 0
        guard opcode.isControl || length <= max(0, messageBytes &- earlier) else {
            return fault(.messageTooLong, at: 1, limit: messageBytes)
        }
        var maskKey: UInt32?
        if isMasked {
            headerLength &+= 4
            guard window.count >= headerLength else { return .incomplete }
            let key = Self.number(window.extracting((headerLength &- 4)..<headerLength))
            maskKey = UInt32(truncatingIfNeeded: key)
        }
        frame.opcode = opcode
        frame.isFinal = isFinal
        frame.isCompressed = first & 0x40 != 0
        frame.maskKey = maskKey
        frame.payloadLength = length
        frame.headerLength = headerLength
        frame.offset = offset
        begin()
        return .header(length: headerLength)
    }

    /// Begins the frame whose header was read.
    private mutating func begin() {
        guard !frame.opcode.isControl else {
            state = .control
            return
        }
        state = .payload(remaining: frame.payloadLength)
        if frame.opcode == .continuation {
            fragments &+= 1
            messageLength &+= frame.payloadLength
            return
        }
        isInMessage = true
        messageKind = frame.opcode
        isMessageCompressed = frame.isCompressed
        fragments = 1
        messageLength = frame.payloadLength
        text = UTF8Check()
    }

    /// Returns the rule that the first byte of a header violates; nil if there is none.
    private func faultOfFirst(_ byte: UInt8, _ opcode: WebSocketOpcode?) -> WebSocketFault.Code? {
        if hasClosed { return .afterClose }
        let mayBeCompressed = acceptsCompression && (opcode == .text || opcode == .binary)
        guard byte & (mayBeCompressed ? 0x30 : 0x70) == 0 else { return .reservedBit }
        guard let opcode else { return .reservedOpcode }
        if opcode.isControl { return byte & 0x80 == 0 ? .fragmentedControl : nil }
        if opcode == .continuation { return isInMessage ? nil : .unexpectedContinuation }
        return isInMessage ? .unfinishedMessage : nil
    }

    private func faultInFirst(_ byte: UInt8, _ opcode: WebSocketOpcode?) -> Signal {
        fault(faultOfFirst(byte, opcode) ?? .reservedOpcode, at: 0)
    }

    private func fault(_ code: WebSocketFault.Code, at index: Int, limit: Int = 0) -> Signal {
        .fault(WebSocketFault(code, at: offset &+ UInt64(index), limit: limit))
    }

    /// Returns a number of up to eight bytes in network byte order.
    private static func number(_ bytes: Span<UInt8>) -> UInt64 {
        var number: UInt64 = 0
        for index in bytes.indices { number = number &<< 8 | UInt64(bytes[index]) }
        return number
    }

    private mutating func readControl(_ window: Span<UInt8>) -> Signal {
        let count = frame.payloadLength
        guard window.count >= count else { return .incomplete }
        control.removeAll(keepingCapacity: true)
        control.append(window.extracting(0..<count))
        if let key = frame.maskKey { WebSocketMask.apply(key, at: 0, to: &control, from: 0) }
        if frame.opcode == .close, let fault = faultOfClose() { return fault }
        state = .header
        if frame.opcode == .close { hasClosed = true }
        return .control(length: count)
    }

    /// Returns the fault of a close frame's payload (RFC 6455 §5.5.1); nil if there is none.
    private func faultOfClose() -> Signal? {
        switch control.count {
        case 0: return nil
        case 1: return fault(.malformedClose, at: 0)
        default: break
        }
        guard closeCode.isAllowedOnWire else { return fault(.closeCode, at: 0) }
        var check = UTF8Check()
        let invalid = check.firstInvalid(in: closeReason) ?? (check.isIncomplete ? closeReason.count : nil)
        return invalid.map { fault(.invalidUTF8, at: 2 &+ $0) }
    }
}

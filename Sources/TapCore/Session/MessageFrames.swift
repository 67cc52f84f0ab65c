internal import TapRecord
import XMPPCore

/// The WebSocket frames of one direction (RFC 6455 §5): finds the messages in them, and stores the bytes that were not
/// forwarded yet.
///
/// Frames are decoded one step at a time, so that messages and control frames keep their order: the decoder of the
/// direction contains no message after the current one. A class, since only WebSockets need it, and relays are moved
/// often.
final class MessageFrames {
    /// The result of one step, apart from a piece of a message.
    enum Signal {
        /// A whole control frame: ping, pong or close.
        case control(ControlFrame)
        /// The bytes are not frames; none can be decoded after them.
        case fault(WebSocketFault)
    }

    private let direction: Direction
    private var frames: WebSocketFrameDecoder
    /// Whether bytes are skipped until a read begins with a frame.
    private var isSeeking: Bool
    /// The bytes from offset ``start`` of the leg on.
    private var stored: [UInt8] = []
    private var start: UInt64 = 0
    /// Offset in the leg up to which frames were decoded.
    private(set) var decoded: UInt64
    /// Offset in the leg of the last frame.
    private var frameStart: UInt64 = 0
    /// The memory for pieces of messages, so that it is allocated once.
    private var spare: [UInt8] = []
    private var isFaulted = false
    /// The control frames inside the current message that were not forwarded, by their offsets in the leg.
    private var inner: [Range<UInt64>] = []

    /// - Parameters:
    ///   - offset: Offset in the leg of the first byte.
    ///   - isSeeking: Whether bytes before it were lost, so that a read that begins with a frame must be found first.
    init(_ direction: Direction, at offset: UInt64 = 0, isSeeking: Bool = false) {
        self.direction = direction
        self.isSeeking = isSeeking
        start = offset
        decoded = offset
        frames = WebSocketFrameDecoder(direction == .send ? .client : .server, messageBytes: .max)
    }

    /// Offset in the leg up to which bytes have arrived.
    var arrived: UInt64 { start &+ UInt64(stored.count) }

    /// Number of bytes that have arrived and were not decoded.
    var undecodedCount: Int { Int(arrived &- decoded) }

    /// Whether the current or last message is binary.
    var isBinary: Bool { frames.messageKind == .binary }

    /// Whether the bytes that have arrived are whole messages and control frames.
    var isBetweenMessages: Bool { undecodedCount == 0 && frames.isBetweenMessages }

    /// Returns whether this offset in the leg is that of the last decoded byte, and no message is incomplete there.
    func isBetweenMessages(at offset: UInt64) -> Bool { offset == decoded && frames.isBetweenMessages }

    /// Appends received bytes, and frees those that were decoded and forwarded up to this offset in the leg.
    func append(_ bytes: Span<UInt8>, forwarded: UInt64) {
        let done = min(decoded, forwarded, arrived)
        if done == arrived {
            if stored.capacity > 16 << 10 { stored = [] } else { stored.removeAll(keepingCapacity: true) }
        } else if done > start {
            stored.removeFirst(Int(done &- start))
        }
        start = max(start, done)
        if isSeeking {
            guard Self.isFrame(bytes, from: direction) else {
                start &+= UInt64(bytes.count)
                return decoded = start
            }
            isSeeking = false
        }
        stored.append(bytes)
    }

    /// Returns whether bytes begin with the first frame of a message that is XML, or with a control frame.
    private static func isFrame(_ bytes: Span<UInt8>, from direction: Direction) -> Bool {
        var frames = WebSocketFrameDecoder(direction == .send ? .client : .server)
        var payload: [UInt8] = []
        guard case .header(let length) = frames.next(bytes, into: &payload) else { return false }
        guard !frames.frame.opcode.isControl else { return frames.frame.payloadLength + length <= bytes.count }
        _ = frames.next(bytes.extracting(length...), into: &payload)
        return payload.first == 0x3C
    }

    /// Decodes frames up to the next piece of a message, which is appended to `decoder`, or the next signal.
    ///
    /// - Parameter forwarded: Offset in the leg up to which bytes were forwarded.
    /// - Returns: False if more bytes are needed; `signal` is set if there is one.
    func advance(_ decoder: inout StreamDecoder, _ signal: inout Signal?, forwarded: UInt64) -> Bool {
        guard !isFaulted else { return false }
        let stored = self.stored
        var piece: [UInt8] = []
        swap(&piece, &spare)
        defer { swap(&piece, &spare) }
        while true {
            piece.removeAll(keepingCapacity: true)
            switch frames.next(stored.span.extracting(Int(decoded &- start)..<stored.count), into: &piece) {
            case .incomplete:
                // The limits of items apply to payloads, not to headers of frames.
                let limit = Self.frameBytes(decoder.limits.itemBytes)
                guard arrived > forwarded, arrived &- forwarded > UInt64(limit) else { return false }
                isFaulted = true
                signal = .fault(WebSocketFault(.messageTooLong, at: decoded, limit: limit))
                return true
            case .header(let length):
                frameStart = decoded
                decoded &+= UInt64(length)
            case .payload(let length, let endsMessage):
                decoded &+= UInt64(length)
                decoder.append(message: piece.span, endsMessage: endsMessage)
                return true
            case .control(let length):
                decoded &+= UInt64(length)
                if !frames.isBetweenMessages, frameStart >= forwarded { inner.append(frameStart..<decoded) }
                signal = .control(ControlFrame(frames))
                return true
            case .fault(let fault):
                isFaulted = true
                signal = .fault(fault)
                return true
            }
        }
    }

    /// Maximum number of bytes of the frames of one message: twice that of an item, as Prosody allows, and some control
    /// frames.
    private static func frameBytes(_ itemBytes: Int) -> Int {
        let (twice, isTooLarge) = max(0, itemBytes).multipliedReportingOverflow(by: 2)
        return isTooLarge ? Int.max : min(twice, Int.max - 65_536) + 65_536
    }

    /// Returns the bytes in this range of the leg, which must not have been freed.
    func bytes(_ range: Range<UInt64>) -> [UInt8] {
        let (from, to) = (max(range.lowerBound, start), min(range.upperBound, arrived))
        guard from < to else { return [] }
        return Array(stored[Int(from &- start)..<Int(to &- start)])
    }

    /// Returns the bytes from this offset in the leg on.
    func bytes(from offset: UInt64) -> [UInt8] { bytes(offset..<max(offset, arrived)) }

    /// Forgets the control frames inside the current message, and returns their bytes from this offset in the leg on.
    func takeInnerControls(from offset: UInt64) -> [UInt8] {
        defer { inner = [] }
        return inner.flatMap { $0.lowerBound >= offset ? bytes($0) : [] }
    }
}

/// A control frame (RFC 6455 §5.5).
struct ControlFrame {
    /// Ping, pong or close.
    let opcode: WebSocketOpcode
    /// Number of bytes of payload.
    let length: Int
    /// The code of a close frame, ``WebSocketCloseCode/noStatus`` if it has none; nil for another frame.
    let closeCode: WebSocketCloseCode?
    /// The reason of a close frame, as the peer wrote it.
    let reason: String

    /// Creates a description of the last control frame of a decoder.
    init(_ frames: borrowing WebSocketFrameDecoder) {
        opcode = frames.frame.opcode
        length = frames.frame.payloadLength
        closeCode = opcode == .close ? frames.closeCode : nil
        reason = opcode == .close ? frames.closeReason.string() : ""
    }
}

internal import Synchronization
internal import TapRecord
import XMPPCore

/// One direction of a session: the bytes received, the bytes forwarded, and the mode for later bytes.
///
/// Bytes are forwarded once, in the order of arrival, unless an item is skipped.
struct DirectionRelay: ~Copyable {
    /// How bytes are forwarded.
    enum Mode {
        /// An item is forwarded after it is complete and a decision on it is made.
        case store
        /// Bytes are forwarded on arrival and decoded afterwards.
        case cutThrough
        /// The rest of a partly forwarded item is forwarded on arrival; the next item is stored.
        case draining
        /// Bytes are forwarded and not decoded, from this offset in the leg.
        case opaque(UndecodedReason, from: UInt64)
    }

    /// Why bytes are not decoded.
    enum UndecodedReason: Equatable {
        case tls
        case compression
        /// The stream could not be parsed.
        case unparsable
        /// The bytes are not XMPP.
        case foreign
        /// The other direction is not decoded either.
        case paired
        /// The bytes follow the end of the stream.
        case ended
        /// The session is relayed without decoding (``SessionOptions/isBlind``).
        case blind

        /// The code of this reason in a record.
        var code: String {
            switch self {
            case .tls: "tls"
            case .compression: "compressed"
            case .unparsable: "unparsable"
            case .foreign, .paired: "not-xmpp"
            case .ended: "after-stream-end"
            case .blind: "not-decoded"
            }
        }
    }

    /// The part of an item that is not forwarded yet.
    enum Outgoing {
        case nothing
        /// The whole item: its bytes are in ``decoder``.
        case item
        /// The end of the item; the beginning has been forwarded already.
        case rest([UInt8])
    }

    /// Forces pass-by-reference: otherwise, the compiler loads all fields to read one.
    private let anchor = Atomic<Bool>(false)
    let direction: Direction
    private(set) var mode = Mode.store
    private(set) var decoder: StreamDecoder
    /// The frames of a WebSocket; nil for other transports, and for recorded messages.
    private var frames: MessageFrames?
    /// The control frame or the fault that follows the last event; nil if there is none.
    private var signal: MessageFrames.Signal?
    /// Number of bytes received.
    private(set) var received: UInt64 = 0
    /// Whether the last bytes arrived in TLS. The borders of the TLS records are known then.
    private(set) var isInTLS = false
    /// Offset in the leg up to which bytes were forwarded or skipped.
    private var forwarded: UInt64 = 0
    /// Items that are stored until an event, and forwarded before all later bytes; nil if there are none.
    private(set) var buffered: [UInt8]?
    /// Whether stored items, and the end of the leg, are held until ``release()``.
    private(set) var isHeld = false
    /// Whether the last event's item stays in ``decoder`` while the direction is held.
    private var keepsItem = false
    /// Whether a rule delays the last event's item, which stays in ``decoder``, and all later items.
    private(set) var isDelayed = false

    // State of the session that belongs to the direction.

    /// The running digest of the bytes that records do not show.
    var digest: (any Digest)?
    /// Whether the decoder may have another event.
    var hasInput = false
    /// The time at which bytes that were forwarded at once last arrived; nil if there were none.
    var arrival: Run.Instant?
    /// Whether the stream's end tag was forwarded.
    var hasClosedStream = false
    /// Whether TLS has begun, and a new stream inside it is expected.
    var mayRestart = false
    /// Whether an unexpected stream restart was reported; it is reported once.
    var hasRestartedUncalled = false
    /// The largest element in bytes that the receiver has announced to accept (XEP-0478).
    var receiverBytes = Int.max
    /// How the leg's input ended; nil while it is open.
    var end: LegEnd?
    /// Whether a close frame was received from the peer, or sent to the receiver: no other frame may follow (RFC 6455
    /// §5.5.1).
    var hasClosedSocket = false
    /// Whether items are stored because a stanza is to be injected, or the answer to an injected one must not be
    /// forwarded.
    var storesForInjection = false
    /// Whether the end of the input was forwarded.
    var hasPassedEnd = false

    /// - Parameter isFramed: Whether messages arrive in the frames of a WebSocket, as bytes of the leg; otherwise each
    ///   read is one message.
    init(
        _ direction: Direction,
        framing: StreamFraming = .stream,
        isFramed: Bool = true,
        limits: StreamLimits,
        outline: ItemOutline?
    ) {
        self.direction = direction
        decoder = StreamDecoder(framing: framing, limits: limits, outline: outline)
        frames = framing != .stream && isFramed ? MessageFrames(direction) : nil
    }

    /// The decoder's limits. They may be changed only after an event.
    var limits: StreamLimits {
        get { decoder.limits }
        set { decoder.limits = newValue }
    }

    /// The number of bytes received that belong to no event yet.
    var waiting: Int { decoder.pendingCount + (frames?.undecodedCount ?? 0) }

    /// Offset in the leg up to which bytes were passed to the decoder.
    var arrived: UInt64 { frames?.arrived ?? (decoder.position + UInt64(waiting)) }

    /// Offset in the leg of the first byte that belongs to no event yet.
    var position: UInt64 { frames?.decoded ?? decoder.position }

    /// Returns the offset in the leg of the byte after the last event.
    func end(of event: StreamEvent) -> UInt64 { frames?.decoded ?? event.position + event.length }

    /// Whether all bytes so far belong to whole items, or are between them.
    var isBetweenItems: Bool { decoder.isBetweenItems && frames?.isBetweenMessages != false }

    /// Whether the peer that sends in this direction has disconnected abnormally. Its remaining bytes need not be
    /// forwarded.
    var isGone: Bool {
        switch end {
        case .reset, .failed: true
        case .finished, nil: false
        }
    }

    /// Whether items are stored until a decision on them is made, so that they can still be changed or dropped.
    var isStoring: Bool {
        if case .store = mode { return true }
        return false
    }

    var isCutThrough: Bool {
        if case .cutThrough = mode { return true }
        return false
    }

    /// Whether bytes are forwarded without being decoded.
    var isOpaque: Bool {
        if case .opaque = mode { return true }
        return false
    }

    /// Whether decoding is paused until ``release()``. A partly forwarded item continues, even if the direction is
    /// held.
    var isWaiting: Bool { (isHeld || isDelayed) && isStoring }

    // MARK: Bytes in

    /// Counts received bytes; returns whether they are the first.
    mutating func count(_ bytes: Int) -> Bool {
        defer { received += UInt64(bytes) }
        return received == 0
    }

    /// Receives the bytes of one read, which ``count(_:)`` has counted.
    ///
    /// - Parameter records: The offsets in the bytes at which further TLS records begin; nil without TLS.
    mutating func receive(_ bytes: Span<UInt8>, records: [Int]? = nil) -> Disposition {
        isInTLS = records != nil && !decoder.isOfMessages
        switch mode {
        case .opaque:
            forwarded = received
            return .relay
        case .cutThrough:
            append(bytes, records)
            hasInput = true
            forwarded = received
            return .relay
        case .store, .draining:
            append(bytes, records)
            hasInput = true
            return .keep
        }
    }

    @inline(__always)
    private mutating func append(_ bytes: Span<UInt8>, _ records: [Int]?) {
        if decoder.isOfMessages { return appendMessages(bytes) }
        decoder.append(bytes, records: records, keepsItem: !isCutThrough && (keepsItem || isDelayed))
    }

    private mutating func appendMessages(_ bytes: Span<UInt8>) {
        if let frames { return frames.append(bytes, forwarded: forwarded) }
        decoder.append(message: bytes, endsMessage: true)
    }

    /// Puts the next event into `event`; returns false if more bytes are needed, or if ``takeSignal()`` returns a
    /// signal.
    @inline(__always)
    mutating func next(into event: inout StreamEvent) -> Bool {
        frames == nil ? decoder.next(into: &event) : nextMessage(into: &event)
    }

    private mutating func nextMessage(into event: inout StreamEvent) -> Bool {
        guard let frames, signal == nil else { return false }
        while !decoder.next(into: &event) {
            guard frames.advance(&decoder, &signal, forwarded: forwarded), signal == nil else { return false }
        }
        return true
    }

    /// The deviations of the last event's message from RFC 7395; empty for a stream.
    var messageTraits: MessageTraits {
        frames?.isBinary == true ? decoder.messageTraits.union(.binary) : decoder.messageTraits
    }

    /// Removes and returns the control frame or fault that ``next(into:)`` has found; nil if there is none.
    mutating func takeSignal() -> MessageFrames.Signal? { signal.take() }

    /// Returns a copy of the bytes that have arrived and belong to no event yet.
    func copyPending() -> [UInt8] {
        if let frames { return frames.bytes(from: frames.decoded) }
        var pending: [UInt8] = []
        pending.append(decoder.pending)
        return pending
    }

    /// Returns the last event, at the end of the input; nil if there is none.
    mutating func finish() -> StreamEvent? { decoder.finish() }

    // MARK: Bytes out

    /// Marks the last event's item as forwarded; returns the part that the caller must still write.
    mutating func pass(_ event: StreamEvent) -> Outgoing {
        if frames != nil { return passMessage(event) }
        let end = event.position + event.length
        let gone = forwarded
        skip(event)
        guard end > gone, !event.isTruncated else { return .nothing }
        guard gone > event.position else { return .item }
        var rest: [UInt8] = []
        rest.append(decoder.bytes.extracting(Int(gone - event.position)...))
        return .rest(rest)
    }

    /// As ``pass(_:)``: the frames are forwarded as they arrived, with the control frames inside.
    private mutating func passMessage(_ event: StreamEvent) -> Outgoing {
        let gone = forwarded
        _ = frames?.takeInnerControls(from: gone)
        skip(event)
        let bytes = frames?.bytes(gone..<max(gone, forwarded)) ?? []
        return bytes.isEmpty ? .nothing : .rest(bytes)
    }

    /// Returns the control frames that have arrived and were not forwarded, and marks them as forwarded; nil if there
    /// are none. Frames inside a message wait for the decision on it.
    mutating func passControl() -> [UInt8]? {
        guard let frames else { return nil }
        let isDraining = if case .draining = mode { true } else { false }
        guard isDraining || isStoring && frames.isBetweenMessages(at: frames.decoded) else { return nil }
        let gone = forwarded
        forwarded = max(gone, frames.decoded)
        if isDraining, frames.isBetweenMessages(at: forwarded) { mode = .store }
        let bytes = frames.bytes(gone..<forwarded)
        return bytes.isEmpty ? nil : bytes
    }

    /// Marks the last event's message as done, without forwarding it; returns the control frames inside it, which must
    /// be forwarded.
    mutating func skipMessage(_ event: StreamEvent) -> [UInt8] {
        let controls = frames?.takeInnerControls(from: forwarded) ?? []
        skip(event)
        return controls
    }

    /// Marks the last event's item as done, without forwarding the rest of it.
    mutating func skip(_ event: StreamEvent) {
        let end = end(of: event)
        forwarded = max(forwarded, end)
        // Fragments of an item beyond the size limit do not end the item.
        guard case .draining = mode, end == forwarded else { return }
        switch event.kind {
        case .item: mode = .store
        // After a fault of a message, the next one is decoded.
        case .fault where decoder.isOfMessages: mode = .store
        case .fault, .fragment, .incomplete: break
        }
    }

    /// Stores the last event's item until ``takeBuffered()``.
    mutating func buffer(_ event: StreamEvent) {
        let gone = forwarded
        skip(event)
        var bytes = buffered ?? []
        buffered = nil
        if let frames { bytes += frames.bytes(gone..<forwarded) } else { bytes.append(decoder.bytes) }
        buffered = bytes
    }

    /// Holds the direction and keeps the last event's item, which was not forwarded, until ``release()``.
    mutating func keep() {
        hold()
        keepsItem = isHeld
    }

    /// Replaces the buffered items.
    mutating func setBuffered(_ bytes: [UInt8]?) { buffered = bytes }

    mutating func takeBuffered() -> [UInt8]? {
        defer { buffered = nil }
        return buffered
    }

    /// Returns the bytes that belong to no event yet and were not forwarded, and marks them as forwarded; nil if there
    /// are none.
    mutating func takeRest() -> [UInt8]? {
        if let frames {
            let rest = frames.bytes(from: forwarded)
            forwarded = max(forwarded, received)
            return rest.isEmpty ? nil : rest
        }
        let start = max(forwarded, decoder.position)
        let end = decoder.position + UInt64(decoder.pendingCount)
        guard start < end else { return nil }
        forwarded = end
        var rest: [UInt8] = []
        rest.append(decoder.pending.extracting(Int(start - decoder.position)...))
        return rest
    }

    // MARK: Modes

    /// Holds stored items until ``release()``. Bytes in cut-through or opaque mode cannot be held: they are already
    /// forwarded.
    mutating func hold() { if !isCutThrough, !isOpaque { isHeld = true } }

    /// Resumes the direction.
    mutating func release() {
        isHeld = false
        keepsItem = false
        hasInput = true
    }

    /// Delays the last event's item until ``endDelay()``.
    mutating func delay() { isDelayed = true }

    /// Ends the delay that ``delay()`` began.
    mutating func endDelay() {
        isDelayed = false
        hasInput = true
    }

    /// Forwards bytes on arrival from now on; the caller forwards the pending bytes with ``takeRest()``.
    mutating func enterCutThrough() {
        mode = .cutThrough
        isHeld = false
    }

    /// Stores items again, from the next item boundary on.
    mutating func leaveCutThrough() {
        guard isCutThrough else { return }
        mode = waiting == 0 && isBetweenItems ? .store : .draining
    }

    /// Forwards the rest of the incomplete item on arrival; later items are stored.
    mutating func drain() { mode = .draining }

    /// Stops decoding; the caller forwards the pending bytes with ``takeRest()``.
    mutating func stopDecoding(_ why: UndecodedReason) {
        mode = .opaque(why, from: position)
        isHeld = false
        isDelayed = false
    }

    /// Replaces the decoder of a direction that is no longer decoded, to free its buffer.
    mutating func dropIdleDecoder() {
        guard isOpaque, waiting > 0 else { return }
        guard let limits = frames.map({ _ in decoder.limits }) else { return decoder = StreamDecoder() }
        decoder = StreamDecoder(framing: .messagesInside, limits: limits)
        frames = MessageFrames(direction, at: received)
    }

    /// Restarts decoding: later bytes are the plaintext of TLS.
    mutating func enterTLS() {
        decoder.restart()
        if frames != nil { frames = MessageFrames(direction, at: received, isSeeking: true) }
        signal = nil
        mayRestart = decoder.epoch > 0
        buffered = nil
        mode = .store
        forwarded = position
        isDelayed = false
        release()
    }
}

struct Directions: ~Copyable {
    /// Both directions, indexed by the raw value of ``Direction``.
    private(set) var both: InlineArray<2, DirectionRelay>

    init(framing: StreamFraming, isFramed: Bool, limits: StreamLimits, outline: ItemOutline?) {
        both = [
            DirectionRelay(.send, framing: framing, isFramed: isFramed, limits: limits, outline: outline),
            DirectionRelay(.recv, framing: framing, isFramed: isFramed, limits: limits, outline: outline),
        ]
    }

    // A single yield statement allows inlining; otherwise every use allocates a frame and moves a whole relay.
    subscript(direction: Direction) -> DirectionRelay {
        @inline(__always) _read { yield both[Int(direction.rawValue)] }
        @inline(__always) _modify { yield &both[Int(direction.rawValue)] }
    }

    var send: DirectionRelay {
        @inline(__always) _read { yield self[.send] }
        @inline(__always) _modify { yield &self[.send] }
    }

    var recv: DirectionRelay {
        @inline(__always) _read { yield self[.recv] }
        @inline(__always) _modify { yield &self[.recv] }
    }

    /// The bytes of the direction's last event.
    @_lifetime(borrow self)
    @inline(__always)
    func bytes(_ direction: Direction) -> Span<UInt8> {
        let bytes = both[Int(direction.rawValue)].decoder.bytesAddress
        return _overrideLifetime(bytes.span, borrowing: self)
    }

    /// The received bytes of the direction that belong to no event yet; of messages, without those whose frames were
    /// not decoded.
    @_lifetime(borrow self)
    @inline(__always)
    func pending(_ direction: Direction) -> Span<UInt8> {
        let bytes = both[Int(direction.rawValue)].decoder.pendingAddress
        return _overrideLifetime(bytes.span, borrowing: self)
    }
}

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
    /// Number of bytes received.
    private(set) var received: UInt64 = 0
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
    /// Whether items are stored because a stanza is to be injected, or the answer to an injected one must not be
    /// forwarded.
    var storesForInjection = false
    /// Whether the end of the input was passed on.
    var hasPassedEnd = false

    init(_ direction: Direction, limits: StreamLimits, outline: ItemOutline?) {
        self.direction = direction
        decoder = StreamDecoder(limits: limits, outline: outline)
    }

    /// The decoder's limits. They may be changed only after an event.
    var limits: StreamLimits {
        get { decoder.limits }
        set { decoder.limits = newValue }
    }

    /// The number of bytes received that belong to no event yet.
    var waiting: Int { decoder.pendingCount }

    /// Offset in the leg up to which bytes were passed to the decoder.
    var arrived: UInt64 { decoder.position + UInt64(waiting) }

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
    mutating func receive(_ bytes: Span<UInt8>) -> Disposition {
        switch mode {
        case .opaque:
            forwarded = received
            return .relay
        case .cutThrough:
            decoder.append(bytes)
            hasInput = true
            forwarded = received
            return .relay
        case .store, .draining:
            decoder.append(bytes, keepsItem: keepsItem || isDelayed)
            hasInput = true
            return .keep
        }
    }

    /// Puts the next event into `event`; returns false if more bytes are needed.
    @inline(__always)
    mutating func next(into event: inout StreamEvent) -> Bool { decoder.next(into: &event) }

    /// Returns the last event, at the end of the input; nil if there is none.
    mutating func finish() -> StreamEvent? { decoder.finish() }

    // MARK: Bytes out

    /// Marks the last event's item as forwarded; returns the part that the caller must still write.
    mutating func pass(_ event: StreamEvent) -> Outgoing {
        let end = event.position + event.length
        let gone = forwarded
        skip(event)
        guard end > gone, !event.isTruncated else { return .nothing }
        guard gone > event.position else { return .item }
        var rest: [UInt8] = []
        rest.append(decoder.bytes.extracting(Int(gone - event.position)...))
        return .rest(rest)
    }

    /// Marks the last event's item as done, without forwarding the rest of it.
    mutating func skip(_ event: StreamEvent) {
        let end = event.position + event.length
        forwarded = max(forwarded, end)
        // Fragments of an item beyond the size limit do not end the item.
        if case .draining = mode, case .item = event.kind, end == forwarded { mode = .store }
    }

    /// Stores the last event's item until ``takeBuffered()``.
    mutating func buffer(_ event: StreamEvent) {
        skip(event)
        var bytes = buffered ?? []
        buffered = nil
        bytes.append(decoder.bytes)
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
        mode = waiting == 0 && decoder.isBetweenItems ? .store : .draining
    }

    /// Forwards the rest of the incomplete item on arrival; later items are stored.
    mutating func drain() { mode = .draining }

    /// Stops decoding; the caller forwards the pending bytes with ``takeRest()``.
    mutating func stopDecoding(_ why: UndecodedReason) {
        mode = .opaque(why, from: decoder.position)
        isHeld = false
        isDelayed = false
    }

    /// Replaces the decoder of a direction that is no longer decoded, to free its buffer.
    mutating func dropIdleDecoder() {
        if isOpaque, waiting > 0 { decoder = StreamDecoder() }
    }

    /// Restarts decoding: later bytes are the plaintext of TLS.
    mutating func enterTLS() {
        decoder.restart()
        mayRestart = decoder.epoch > 0
        buffered = nil
        mode = .store
        forwarded = decoder.position
        isDelayed = false
        release()
    }
}

struct Directions: ~Copyable {
    /// Both directions, indexed by the raw value of ``Direction``.
    private(set) var both: InlineArray<2, DirectionRelay>

    init(limits: StreamLimits, outline: ItemOutline?) {
        both = [
            DirectionRelay(.send, limits: limits, outline: outline),
            DirectionRelay(.recv, limits: limits, outline: outline),
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

    /// The received bytes of the direction that belong to no event yet.
    @_lifetime(borrow self)
    @inline(__always)
    func pending(_ direction: Direction) -> Span<UInt8> {
        let bytes = both[Int(direction.rawValue)].decoder.pendingAddress
        return _overrideLifetime(bytes.span, borrowing: self)
    }
}

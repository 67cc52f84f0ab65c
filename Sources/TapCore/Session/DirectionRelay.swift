internal import Synchronization
internal import TapRecord
import XMPPCore

/// One direction of a session: what has come, what of it has gone out, and by which rule the rest goes.
///
/// Bytes go out in the order in which they came, each once, unless an item is skipped.
struct DirectionRelay: ~Copyable {
    /// How bytes pass.
    enum Mode {
        /// An item goes out when it is complete and has been looked at.
        case store
        /// Bytes go out as they come and are looked at afterwards.
        case cutThrough
        /// The item of which a part has gone out goes on as it comes; the next one is stored.
        case draining
        /// Bytes go out and are not decoded, from this offset in the leg on.
        case opaque(Opacity, from: UInt64)
    }

    /// Why bytes are not decoded.
    enum Opacity: Equatable {
        case tls
        case compression
        /// The stream could not be parsed.
        case unparsable
        /// It never was XMPP.
        case foreign
        /// The other direction is not decoded either.
        case paired
        /// They come after the end of the stream.
        case ended

        /// The word for it in a record.
        var code: String {
            switch self {
            case .tls: "tls"
            case .compression: "compressed"
            case .unparsable: "unparsable"
            case .foreign, .paired: "not-xmpp"
            case .ended: "after-stream-end"
            }
        }
    }

    /// What is still to go out of an item.
    enum Outgoing {
        case nothing
        /// All of it: ``decoder`` has its bytes.
        case item
        /// The end of it, since the beginning has gone.
        case rest([UInt8])
    }

    /// Has a relay handed over by its address: to read one field the compiler would otherwise load them all.
    private let anchor = Atomic<Bool>(false)
    let direction: Direction
    private(set) var mode = Mode.store
    private(set) var decoder: StreamDecoder
    /// Bytes that have arrived.
    private(set) var received: UInt64 = 0
    /// Offset in the leg up to which bytes have gone out or were skipped.
    private var forwarded: UInt64 = 0
    /// Items that wait for an event, and go out before all that follows them.
    private(set) var buffered: [UInt8]?
    /// Items that are stored wait until ``release()``, and so does the end of the leg.
    private(set) var isHeld = false
    /// The last event's item stays in ``decoder`` while the direction is held, whatever comes behind it.
    private var keepsItem = false
    /// A rule lets the last event's item wait in ``decoder``, and all that follows it.
    private(set) var isDelayed = false

    // What the session has noticed about the direction.

    /// The running digest of bytes that records do not show.
    var digest: (any Digest)?
    /// The decoder may have another event.
    var hasInput = false
    /// When the bytes came last that passed as they came; nil before.
    var arrival: Run.Instant?
    /// The stream's end tag has passed.
    var hasClosedStream = false
    /// TLS has begun, and a new stream in it is due.
    var mayRestart = false
    /// A stream restarted unexpectedly; reported once.
    var hasRestartedUncalled = false
    /// The most bytes that the receiver has said to accept in one element (XEP-0478).
    var receiverBytes = Int.max
    /// How the leg's input ended; nil while it is open.
    var end: LegEnd?
    /// The end has been passed on.
    var hasPassedEnd = false

    init(_ direction: Direction, limits: StreamLimits, outline: ItemOutline?) {
        self.direction = direction
        decoder = StreamDecoder(limits: limits, outline: outline)
    }

    /// The limits of what is decoded; change them at an event.
    var limits: StreamLimits {
        get { decoder.limits }
        set { decoder.limits = newValue }
    }

    /// Bytes that have arrived and belong to no event yet.
    var waiting: Int { decoder.pendingCount }

    /// Offset in the leg up to which bytes were taken to be decoded.
    var arrived: UInt64 { decoder.position + UInt64(waiting) }

    /// Whether the peer that the bytes come from is gone: what has not passed will not be missed.
    var isGone: Bool {
        switch end {
        case .reset, .failed: true
        case .finished, nil: false
        }
    }

    /// Whether an item is still here as a whole when it is looked at, so that anything may become of it.
    var isStoring: Bool {
        if case .store = mode { return true }
        return false
    }

    var isCutThrough: Bool {
        if case .cutThrough = mode { return true }
        return false
    }

    /// Whether bytes pass without being decoded.
    var isOpaque: Bool {
        if case .opaque = mode { return true }
        return false
    }

    /// No item is looked at until ``release()``. One of which a part has gone out goes on, though the direction is held.
    var isWaiting: Bool { (isHeld || isDelayed) && isStoring }

    // MARK: Bytes in

    /// Counts bytes that have arrived; whether they are the first.
    mutating func count(_ bytes: Int) -> Bool {
        defer { received += UInt64(bytes) }
        return received == 0
    }

    /// Takes the bytes of one read, which have been counted.
    mutating func take(_ bytes: Span<UInt8>) -> Disposition {
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

    /// Puts the next event into `event`; false when more bytes are needed.
    @inline(__always)
    mutating func next(into event: inout StreamEvent) -> Bool { decoder.next(into: &event) }

    /// What is left when no more bytes will come; nil where nothing is.
    mutating func finish() -> StreamEvent? { decoder.finish() }

    // MARK: Bytes out

    /// Lets the last event's item go out, as far as it has not.
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

    /// Lets the last event's item go no further.
    mutating func skip(_ event: StreamEvent) {
        let end = event.position + event.length
        forwarded = max(forwarded, end)
        // Of an item beyond the limit the fragments are not its end.
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

    /// Holds the direction with the last event's item, which has not passed, until ``release()``.
    mutating func keep() {
        hold()
        keepsItem = isHeld
    }

    /// Puts other bytes in the place of what is stored.
    mutating func setBuffered(_ bytes: [UInt8]?) { buffered = bytes }

    mutating func takeBuffered() -> [UInt8]? {
        defer { buffered = nil }
        return buffered
    }

    /// Takes what belongs to no event yet and has not gone out, to go out now; nil where that is nothing.
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

    /// Lets items wait that are stored, until ``release()``. Bytes that pass as they come cannot wait: they have gone.
    mutating func hold() { if !isCutThrough, !isOpaque { isHeld = true } }

    /// Goes on with items that wait.
    mutating func release() {
        isHeld = false
        keepsItem = false
        hasInput = true
    }

    /// Lets the last event's item wait, until ``endDelay()``.
    mutating func delay() { isDelayed = true }

    /// The item is no longer waited for.
    mutating func endDelay() {
        isDelayed = false
        hasInput = true
    }

    /// Lets bytes pass as they come, at once; what waits is taken by ``takeRest()``.
    mutating func enterCutThrough() {
        mode = .cutThrough
        isHeld = false
    }

    /// Stores items from the next boundary on.
    mutating func leaveCutThrough() {
        guard isCutThrough else { return }
        mode = waiting == 0 && decoder.isBetweenItems ? .store : .draining
    }

    /// Lets the item that is coming go on as it comes, though items are stored.
    mutating func drain() { mode = .draining }

    /// Ceases to decode; what waits is taken by ``takeRest()``.
    mutating func turnOpaque(_ why: Opacity) {
        mode = .opaque(why, from: decoder.position)
        isHeld = false
        isDelayed = false
    }

    /// Gives up the decoder of bytes that are not decoded, with what it has kept.
    mutating func dropIdleDecoder() {
        if isOpaque, waiting > 0 { decoder = StreamDecoder() }
    }

    /// Begins anew: what comes from here on is what TLS carried.
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
    /// By the raw value of the direction.
    private(set) var both: InlineArray<2, DirectionRelay>

    init(limits: StreamLimits, outline: ItemOutline?) {
        both = [
            DirectionRelay(.send, limits: limits, outline: outline),
            DirectionRelay(.recv, limits: limits, outline: outline),
        ]
    }

    // One place to yield from, so that these are inlined: otherwise every use allocates a frame and moves a whole pipe.
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
        let bytes = both[Int(direction.rawValue)].decoder.placeOfBytes
        return _overrideLifetime(bytes.span, borrowing: self)
    }

    /// The bytes of the direction that belong to no event yet.
    @_lifetime(borrow self)
    @inline(__always)
    func pending(_ direction: Direction) -> Span<UInt8> {
        let bytes = both[Int(direction.rawValue)].decoder.placeOfPending
        return _overrideLifetime(bytes.span, borrowing: self)
    }
}

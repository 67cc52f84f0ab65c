internal import Synchronization
internal import TapRecord
import XMPPCore

/// One direction of a session: its decoder, how far its bytes have been passed on, and by which rule.
struct DirectionRelay: ~Copyable {
    /// How bytes pass.
    enum Mode: Equatable {
        /// An item is passed on when it is complete and has been looked at.
        case store
        /// Bytes are passed on as they come, and looked at after.
        case cutThrough
        /// Bytes are passed on and not decoded.
        case opaque(Opacity)
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

    /// Has a pipe handed over by its address: to read one field the compiler would otherwise load them all.
    private let anchor = Atomic<Bool>(false)
    let direction: Direction
    var mode = Mode.store
    var decoder: StreamDecoder
    /// Offset in the leg up to which bytes have been passed on.
    var forwarded: UInt64 = 0
    /// Bytes that have arrived.
    var received: UInt64 = 0
    /// Offset in the leg from which on bytes were not decoded.
    var opaqueFrom: UInt64?
    /// Runs over bytes that are told without being shown.
    var digest: (any Digest)?
    /// No item is looked at until the session says so: what arrives waits.
    var isHeld = false
    /// The item kept back, where it is held at one.
    var held: [UInt8]?
    /// The decoder may have another event.
    var hasInput = false
    /// The stream's end tag has passed.
    var hasClosedStream = false
    /// TLS has begun, and a new stream in it is due.
    var mayRestart = false
    /// A stream has begun anew that nothing called for; told once.
    var hasRestartedUncalled = false
    /// Something was read that others may read differently; told once.
    var hasDifference = false
    /// No more bytes will come on the leg; told once.
    var end: LegEnd?
    /// The end has been passed on.
    var hasPassedEnd = false

    init(_ direction: Direction, limits: StreamLimits, outline: ItemOutline?) {
        self.direction = direction
        decoder = StreamDecoder(limits: limits, outline: outline)
    }

    /// Bytes that have arrived and wait.
    var waiting: Int { decoder.pendingCount }

    /// Whether the peer that the bytes come from is gone: what has not passed will not be missed.
    var isGone: Bool {
        switch end {
        case .reset, .failed: true
        case .finished, nil: false
        }
    }

    /// Whether bytes pass without being decoded.
    var isOpaque: Bool {
        if case .opaque = mode { return true }
        return false
    }
}

/// The two directions of a session.
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
    func bytes(_ direction: Direction) -> Span<UInt8> { both[Int(direction.rawValue)].decoder.bytes }

    /// The bytes of the direction that belong to no event yet.
    @_lifetime(borrow self)
    func pending(_ direction: Direction) -> Span<UInt8> { both[Int(direction.rawValue)].decoder.pending }
}

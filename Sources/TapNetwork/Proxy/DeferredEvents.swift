internal import NIOCore
internal import TapCore
internal import TapRecord

/// Reads and closes of a session's connections that the session has not handled yet, in order.
///
/// The reader limits their bytes: ``OpeningReader/limit`` while the client has not named its domain, and later the data
/// that a channel had already read when reading stopped. After ``separateReads`` entries, consecutive reads of a leg
/// are joined, so that a client that sends single bytes needs no more memory than another. Removing the first entry
/// takes constant time.
struct DeferredEvents {
    /// Number of entries up to which each read stays separate.
    static let separateReads = 64

    private var events: [SessionDriver.Event] = []
    /// Index of the first entry that is still queued.
    private var next = 0

    var isEmpty: Bool { next == events.count }

    var count: Int { events.count - next }

    mutating func append(_ event: SessionDriver.Event) {
        guard count >= Self.separateReads, case .received(let leg, let more, let moreRecords) = event,
            case .received(leg, _, _)? = events.last
        else { return events.append(event) }
        // Remove the entry from the array first: otherwise its buffer is shared, and each write copies it.
        guard case .received(_, var buffer, let records)? = events.popLast() else { return }
        let joined = Self.joined(records, moreRecords, after: buffer.readableBytes)
        buffer.writeImmutableBuffer(more)
        events.append(.received(leg, buffer, records: joined))
    }

    /// Returns the offsets at which TLS records begin in the bytes of two reads, the second of which begins at `count`.
    private static func joined(_ first: [Int]?, _ second: [Int]?, after count: Int) -> [Int]? {
        guard let first, let second else { return nil }
        return first + [count] + second.map { $0 + count }
    }

    mutating func takeFirst() -> SessionDriver.Event? {
        guard !isEmpty else { return nil }
        let event = events[next]
        events[next] = .ended(.client, .finished)
        next += 1
        if isEmpty { removeAll() }
        return event
    }

    mutating func removeAll() { self = DeferredEvents() }

    /// Removes all reads of a leg, and returns them as one buffer.
    mutating func takeReads(of leg: Leg) -> ByteBuffer {
        var joined = ByteBuffer()
        events = events[next...].filter { event in
            guard case .received(leg, let buffer, _) = event else { return true }
            joined.writeImmutableBuffer(buffer)
            return false
        }
        next = 0
        return joined
    }

    /// Joins all reads of a leg into one, and moves it to the front.
    mutating func join(_ leg: Leg) {
        let joined = takeReads(of: leg)
        if joined.readableBytes > 0 { events.insert(.received(leg, joined), at: 0) }
    }
}

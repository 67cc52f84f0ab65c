package import TapRecord
internal import XMPPCore

/// Statistics of records: counts and sizes by kind, round trips, errors.
package struct RecordStatistics: Sendable {
    /// The kind of an item. The raw value appears in JSON.
    package enum ItemKind: String, Sendable, CaseIterable {
        case message
        case messageError = "message error"
        case presence
        case presenceError = "presence error"
        case iqGet = "iq get"
        case iqSet = "iq set"
        case iqResult = "iq result"
        case iqError = "iq error"
        /// An iq of another type.
        case iq
        /// Another top-level element: features, SASL, TLS, stream management.
        case nonza
        /// An XML declaration, a stream header or a closing stream tag.
        case stream
        /// A keepalive.
        case whitespace
        /// Bytes that were not decoded.
        case undecoded

        /// Whether the item is a message, a presence or an iq.
        package var isStanza: Bool {
            switch self {
            case .nonza, .stream, .whitespace, .undecoded: false
            default: true
            }
        }
    }

    /// Items of one kind.
    package struct Figures: Sendable, Hashable {
        /// Number of items from the client.
        package fileprivate(set) var sent: UInt64 = 0
        /// Number of items from the server.
        package fileprivate(set) var received: UInt64 = 0
        /// Bytes on the wire in both directions.
        package fileprivate(set) var bytes: UInt64 = 0
        /// Size of the largest item in bytes.
        package fileprivate(set) var largest: UInt64 = 0
    }

    /// Number of records of all kinds.
    package private(set) var records: UInt64 = 0
    /// The time of the earliest record; nil if there are none.
    package private(set) var first: Timestamp?
    /// The time of the latest record; nil if there are none.
    package private(set) var last: Timestamp?
    /// Round trips of iq requests.
    package private(set) var roundTrips = RoundTrips()
    /// Number of errors by condition, or by xmpptap's code.
    package private(set) var errors: [String: UInt64] = [:]
    private var figures = [Figures](repeating: Figures(), count: ItemKind.allCases.count)
    /// Maximum number of distinct conditions; further ones are counted together as ``others``.
    private static let maximumConditions = 1000
    private static let others = "(others)"

    /// Creates empty statistics.
    package init() {}

    /// Number of stanzas of all kinds.
    package var stanzas: UInt64 {
        zip(ItemKind.allCases, figures).reduce(0) { $1.0.isStanza ? $0 + $1.1.sent + $1.1.received : $0 }
    }

    /// The figures of all kinds with at least one item.
    package var kinds: [(kind: ItemKind, figures: Figures)] {
        zip(ItemKind.allCases, figures).filter { $1.sent + $1.received > 0 }.map { ($0, $1) }
    }

    /// Adds a record.
    package mutating func add(_ line: RecordLine) { add(line.record, content: line.content.span) }

    /// Adds a record with its content.
    package mutating func add(_ record: Record, content: Span<UInt8>) {
        records += 1
        first = min(first ?? record.time, record.time)
        last = max(last ?? record.time, record.time)
        if record.isError {
            let name = record.condition ?? record.code ?? "error"
            let isKnown = errors[name] != nil || errors.count < Self.maximumConditions
            errors[isKnown ? name : Self.others, default: 0] += 1
        }
        guard let direction = record.direction, let kind = ItemKind(record, content),
            let place = ItemKind.allCases.firstIndex(of: kind)
        else {
            return
        }
        switch direction {
        case .send: figures[place].sent += 1
        case .recv: figures[place].received += 1
        }
        figures[place].bytes &+= record.length
        figures[place].largest = max(figures[place].largest, record.length)
        if record.kind == .stanza, let time = record.roundTrip { roundTrips.add(time) }
    }
}

extension RecordStatistics.ItemKind {
    /// Creates the kind of a record's item; nil if the record does not describe an item.
    fileprivate init?(_ record: Record, _ content: Span<UInt8>) {
        func isType(_ type: StaticString) -> Bool { record.type.map { content.slice($0).equals(type) } ?? false }
        switch record.kind {
        case .stanza:
            let name = content.slice(record.name ?? .empty)
            if name.equals("message") {
                self = isType("error") ? .messageError : .message
            } else if name.equals("presence") {
                self = isType("error") ? .presenceError : .presence
            } else {
                self =
                    isType("get")
                    ? .iqGet : isType("set") ? .iqSet : isType("result") ? .iqResult : isType("error") ? .iqError : .iq
            }
        case .element: self = .nonza
        case .declaration, .streamOpen, .streamClose: self = .stream
        case .whitespace: self = .whitespace
        case .bytes: self = .undecoded
        case .session, .tls, .note, .error, .chunk, .frame: return nil
        }
    }
}

/// Round trips in buckets of at most 6 % width, so that memory does not grow with their number.
package struct RoundTrips: Sendable {
    /// Number of round trips.
    package private(set) var count: UInt64 = 0
    /// The shortest round trip in nanoseconds; 0 if there are none.
    package var shortest: Int64 { count == 0 ? 0 : least }
    /// The longest round trip in nanoseconds.
    package private(set) var longest: Int64 = 0
    private var least = Int64.max
    private var buckets: [UInt64] = []
    /// Number of buckets for each power of two.
    private static let parts = 16

    package init() {}

    package mutating func add(_ nanoseconds: Int64) {
        let time = max(0, nanoseconds)
        count += 1
        least = min(least, time)
        longest = max(longest, time)
        let place = Self.bucket(time)
        if place >= buckets.count { buckets += repeatElement(0, count: place + 1 - buckets.count) }
        buckets[place] += 1
    }

    /// Returns the time within which `share` per cent of the round trips completed, in nanoseconds; 0 if there are
    /// none.
    package func percentile(_ share: UInt64) -> Int64 {
        let rank = (count * share + 99) / 100
        var seen: UInt64 = 0
        for (place, found) in buckets.enumerated() {
            seen += found
            if seen >= rank, found > 0 { return min(longest, max(least, Self.end(place))) }
        }
        return longest
    }

    private static func bucket(_ time: Int64) -> Int {
        guard time >= parts else { return Int(time) }
        let power = 63 - time.leadingZeroBitCount
        return (power - 3) * parts + Int(time >> (power - 4)) - parts
    }

    /// Returns the largest time of a bucket.
    private static func end(_ bucket: Int) -> Int64 {
        guard bucket >= parts else { return Int64(bucket) }
        let shift = bucket / parts - 1
        return (Int64(bucket % parts + parts + 1) << shift) &- 1
    }
}

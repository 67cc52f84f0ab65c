public import TapRecord
internal import XMPPCore

/// What records are in figures: counts and sizes by kind, round trips, errors.
public struct RecordStatistics: Sendable {
    /// What an item is. The raw value stands in JSON.
    public enum ItemKind: String, Sendable, CaseIterable {
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
        /// Another element at the top level: features, SASL, TLS, stream management.
        case nonza
        /// A declaration, a stream header or a stream's end tag.
        case stream
        /// A keepalive.
        case whitespace
        /// Bytes that were not decoded.
        case undecoded

        /// Whether it is a message, a presence or an iq.
        public var isStanza: Bool {
            switch self {
            case .nonza, .stream, .whitespace, .undecoded: false
            default: true
            }
        }
    }

    /// Items of one kind.
    public struct Figures: Sendable, Hashable {
        /// Items from the client.
        public fileprivate(set) var sent: UInt64 = 0
        /// Items from the server.
        public fileprivate(set) var received: UInt64 = 0
        /// Their bytes on the wire, both directions.
        public fileprivate(set) var bytes: UInt64 = 0
        /// The bytes of the largest one.
        public fileprivate(set) var largest: UInt64 = 0
    }

    /// Records of every kind.
    public private(set) var records: UInt64 = 0
    /// The earliest and the latest record; nil where there are none.
    public private(set) var first: Timestamp?
    /// See ``first``.
    public private(set) var last: Timestamp?
    /// Round trips of iqs.
    public private(set) var roundTrips = RoundTrips()
    /// How often each error was found, by its condition, or this program's code for it.
    public private(set) var errors: [String: UInt64] = [:]
    private var figures = [Figures](repeating: Figures(), count: ItemKind.allCases.count)
    /// More conditions than there can be in good faith are counted together, as ``others``.
    private static let mostConditions = 1000
    private static let others = "(others)"

    /// Nothing yet.
    public init() {}

    /// Stanzas of every kind.
    public var stanzas: UInt64 {
        zip(ItemKind.allCases, figures).reduce(0) { $1.0.isStanza ? $0 + $1.1.sent + $1.1.received : $0 }
    }

    /// The figures of every kind of which there are items.
    public var kinds: [(kind: ItemKind, figures: Figures)] {
        zip(ItemKind.allCases, figures).filter { $1.sent + $1.received > 0 }.map { ($0, $1) }
    }

    /// Takes a record.
    public mutating func note(_ line: RecordLine) { note(line.record, content: line.content.span) }

    /// Takes a record whose texts are in `content`.
    public mutating func note(_ record: Record, content: Span<UInt8>) {
        records += 1
        first = min(first ?? record.time, record.time)
        last = max(last ?? record.time, record.time)
        if record.isError {
            let name = record.condition ?? record.code ?? "error"
            let isKnown = errors[name] != nil || errors.count < Self.mostConditions
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
    /// The kind of an item; nil where the record is of none.
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
        case .session, .tls, .note, .error, .chunk: return nil
        }
    }
}

/// Round trips in buckets that are 6 % wide at most, so that any number of them takes the same memory.
public struct RoundTrips: Sendable {
    /// How many.
    public private(set) var count: UInt64 = 0
    /// The shortest, in nanoseconds; 0 where there are none.
    public var shortest: Int64 { count == 0 ? 0 : least }
    /// The longest, in nanoseconds.
    public private(set) var longest: Int64 = 0
    private var least = Int64.max
    private var buckets: [UInt64] = []
    /// Each power of two is divided into so many buckets.
    private static let parts = 16

    mutating func add(_ nanoseconds: Int64) {
        let time = max(0, nanoseconds)
        count += 1
        least = min(least, time)
        longest = max(longest, time)
        let place = Self.bucket(time)
        if place >= buckets.count { buckets += repeatElement(0, count: place + 1 - buckets.count) }
        buckets[place] += 1
    }

    /// The time that so many of a hundred took at most, in nanoseconds; 0 where there are none.
    public func percentile(_ share: UInt64) -> Int64 {
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

    /// The largest time of a bucket.
    private static func end(_ bucket: Int) -> Int64 {
        guard bucket >= parts else { return Int64(bucket) }
        let shift = bucket / parts - 1
        return (Int64(bucket % parts + parts + 1) << shift) &- 1
    }
}

internal import TapDiagnosis
package import TapRecord
package import XMPPCore

/// The counters of a session besides those of ``SessionInfo``: they count rare events, so most sessions store none.
package struct SessionCounters: Sendable {
    /// An event that is counted.
    package enum Event: Sendable, Hashable {
        /// A stanza was not forwarded unchanged; with the `action` of its record.
        case acted(String, StanzaHead.Kind, Direction)
        /// A stanza was injected; for raw bytes, the kind is that of the first stanza in them.
        case injected(StanzaHead.Kind, Direction)
        /// A peer's bytes could not be parsed.
        case parseError(Leg, ScanFault.Code)
        /// A peer's bytes are not WebSocket frames.
        case frameError(Leg, WebSocketFault.Code)
        /// A peer reached a limit.
        case limitHit(Limit)
        /// A login ended whose channel binding forecast was `works`, `fails` or `depends`.
        case predicted(BindingForecast.Strategy, verdict: String)
        /// A session was resumed (XEP-0198 §5), or its resumption failed.
        case resumed(Bool)
        /// An acknowledgement was forwarded with a translated count.
        case translated
    }

    /// A limit of ``SessionOptions``, except the XML limits. The raw value is the name of the limit on the command
    /// line.
    package enum Limit: String, Sendable, CaseIterable {
        /// The size of an item in bytes, in an open session.
        case item
        /// The size of an item in bytes, before the session is open.
        case loginItem = "login-item"
        /// The number of bytes that wait in a direction. At the limit, the leg is not read.
        case waiting
        /// The time for the login.
        case login
        /// The time without data in either direction.
        case idle
    }

    /// The number of occurrences of each event.
    package private(set) var events: [Event: UInt64] = [:]
    /// The round-trip times of xmpptap's pings to the client.
    package private(set) var clientPings = DurationHistogram()
    /// The round-trip times of xmpptap's pings to the server.
    package private(set) var serverPings = DurationHistogram()
    /// The delays of stanzas that rules caused.
    package private(set) var delays = DurationHistogram()

    /// Creates counters that are all zero.
    package init() {}

    mutating func count(_ event: Event) { events[event, default: 0] += 1 }

    mutating func addPing(_ leg: Leg, _ time: Int64) {
        if leg == .client { clientPings.add(time) } else { serverPings.add(time) }
    }

    mutating func addDelay(_ time: Int64) { delays.add(time) }

    /// Adds the counts of another session.
    package mutating func add(_ other: SessionCounters) {
        events.merge(other.events, uniquingKeysWith: +)
        clientPings.add(other.clientPings)
        serverPings.add(other.serverPings)
        delays.add(other.delays)
    }
}

/// A histogram of durations.
package struct DurationHistogram: Sendable {
    /// The upper bounds of the buckets in nanoseconds, in ascending order: from 10 µs to one minute.
    package static let bounds: [Int64] =
        // With the types: the compiler would need seconds to find them.
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
        .flatMap { (decade: Int64) -> [Int64] in [decade, decade * 5 / 2, decade * 5] }
        + [10_000_000_000, 30_000_000_000, 60_000_000_000]

    /// The number of durations in each bucket. A bucket contains the durations above the previous bound, up to the
    /// bound with the same index; the last bucket contains those above all bounds. Empty without durations.
    package private(set) var counts: [UInt64] = []
    /// The sum of all durations, in nanoseconds.
    package private(set) var sum: Int64 = 0

    package init() {}

    /// Adds a duration in nanoseconds.
    package mutating func add(_ duration: Int64) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.bounds.count + 1) }
        counts[Self.bounds.firstIndex { duration <= $0 } ?? Self.bounds.count] += 1
        sum &+= duration
    }

    /// Adds the durations of another histogram.
    package mutating func add(_ other: DurationHistogram) {
        guard !other.counts.isEmpty else { return }
        if counts.isEmpty { counts = Array(repeating: 0, count: other.counts.count) }
        for index in other.counts.indices { counts[index] += other.counts[index] }
        sum &+= other.sum
    }
}

internal import TapDiagnosis
package import TapRecord
package import XMPPCore

/// Counters of a session besides ``SessionInfo``: rare events, so that most sessions store none.
package struct SessionCounters: Sendable {
    /// The events that are counted.
    package enum Event: Sendable, Hashable {
        /// A stanza was not forwarded unchanged; with the `action` of its record.
        case acted(String, StanzaHead.Kind, Direction)
        /// A stanza was injected; for raw bytes, the kind is that of the first stanza in them.
        case injected(StanzaHead.Kind, Direction)
        /// A peer's bytes could not be parsed.
        case parseError(Leg, ScanFault.Code)
        /// A peer reached a limit.
        case limitHit(Limit)
        /// A login ended for which the effect of channel binding had been predicted: `works`, `fails` or `depends`.
        case predicted(BindingForecast.Strategy, verdict: String)
        /// A session was resumed (XEP-0198 §5), or could not be.
        case resumed(Bool)
        /// An acknowledgement was forwarded with another count.
        case translated
    }

    /// A limit of ``SessionOptions`` other than XML limits; the raw value is its name on the command line.
    package enum Limit: String, Sendable, CaseIterable {
        /// The size of an item in bytes, once the session is open.
        case item
        /// The size of an item in bytes, before.
        case loginItem = "login-item"
        /// The bytes that wait in a direction: its leg is not read.
        case waiting
        /// The time for the login.
        case login
        /// The time without data.
        case idle
    }

    /// The number of occurrences of each event.
    package private(set) var events: [Event: UInt64] = [:]
    /// Round trips of xmpptap's pings of the client.
    package private(set) var clientPings = DurationHistogram()
    /// Round trips of xmpptap's pings of the server.
    package private(set) var serverPings = DurationHistogram()
    /// The delays of stanzas by rules.
    package private(set) var delays = DurationHistogram()

    /// Creates counters without events.
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
    /// The upper bounds in nanoseconds, in ascending order: from 10 µs to a minute.
    package static let bounds: [Int64] =
        // With the types: the compiler would need seconds to find them.
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
        .flatMap { (decade: Int64) -> [Int64] in [decade, decade * 5 / 2, decade * 5] }
        + [10_000_000_000, 30_000_000_000, 60_000_000_000]

    /// The number of durations in each bucket: above the previous bound, and at most the bound of the same index; the
    /// last bucket is above all bounds. Empty without durations.
    package private(set) var counts: [UInt64] = []
    /// The sum of all durations, in nanoseconds.
    package private(set) var sum: Int64 = 0

    /// Creates an empty histogram.
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

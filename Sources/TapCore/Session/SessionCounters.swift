internal import TapDiagnosis
public import TapRecord
public import XMPPCore

/// What a session counts beside ``SessionInfo``: what is rare, so that most sessions keep nothing.
public struct SessionCounters: Sendable {
    /// What is counted.
    public enum Event: Sendable, Hashable {
        /// A stanza did not pass as it came: what was done to it, as the `action` of its record.
        case acted(String, StanzaHead.Kind, Direction)
        /// A stanza was injected; of raw bytes the kind is that of the first stanza in them.
        case injected(StanzaHead.Kind, Direction)
        /// What a peer sent could not be parsed.
        case parseError(Leg, ScanFault.Code)
        /// A peer came up against a limit.
        case limitHit(Limit)
        /// A login ended for which the effect of channel binding had been predicted: `works`, `fails` or `depends`.
        case predicted(BindingForecast.Strategy, verdict: String)
        /// A session was resumed (XEP-0198 §5), or could not be.
        case resumed(Bool)
        /// An acknowledgement went on with another count.
        case translated
    }

    /// A limit of ``SessionOptions`` that is no fault of XML; the raw value is its name on the command line.
    public enum Limit: String, Sendable, CaseIterable {
        /// Bytes of an item, once the session is open.
        case item
        /// Bytes of an item before.
        case loginItem = "login-item"
        /// Bytes that wait in a direction: its leg is not read.
        case waiting
        /// Time for the login.
        case login
        /// Time without data.
        case idle
    }

    /// How often each has happened.
    public private(set) var events: [Event: UInt64] = [:]
    /// Round trips of xmpptap's pings of the client.
    public private(set) var clientPings = DurationHistogram()
    /// Round trips of xmpptap's pings of the server.
    public private(set) var serverPings = DurationHistogram()
    /// How long rules have let stanzas wait.
    public private(set) var delays = DurationHistogram()

    /// Nothing counted.
    public init() {}

    mutating func count(_ event: Event) { events[event, default: 0] += 1 }

    mutating func addPing(_ leg: Leg, _ time: Int64) {
        if leg == .client { clientPings.add(time) } else { serverPings.add(time) }
    }

    mutating func addDelay(_ time: Int64) { delays.add(time) }

    /// Adds what another session has counted.
    public mutating func add(_ other: SessionCounters) {
        events.merge(other.events, uniquingKeysWith: +)
        clientPings.add(other.clientPings)
        serverPings.add(other.serverPings)
        delays.add(other.delays)
    }
}

/// How many durations there were up to each of some bounds.
public struct DurationHistogram: Sendable {
    /// The upper bounds in nanoseconds, in ascending order: from 10 µs to a minute.
    public static let bounds: [Int64] =
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000].flatMap { [$0, $0 * 5 / 2, $0 * 5] }
        + [10_000_000_000, 30_000_000_000, 60_000_000_000]

    /// How many durations are above the bound before, and not above the bound of the same index; last those above all
    /// bounds. Empty where there was none.
    public private(set) var counts: [UInt64] = []
    /// The sum of all durations, in nanoseconds.
    public private(set) var sum: Int64 = 0

    /// No durations.
    public init() {}

    /// Adds a duration in nanoseconds.
    public mutating func add(_ duration: Int64) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.bounds.count + 1) }
        counts[Self.bounds.firstIndex { duration <= $0 } ?? Self.bounds.count] += 1
        sum &+= duration
    }

    /// Adds the durations of another one.
    public mutating func add(_ other: DurationHistogram) {
        guard !other.counts.isEmpty else { return }
        if counts.isEmpty { counts = Array(repeating: 0, count: other.counts.count) }
        for index in other.counts.indices { counts[index] += other.counts[index] }
        sum &+= other.sum
    }
}

/// Options of a replay.
package struct ReplayOptions: Sendable {
    /// When items are sent.
    package enum Pace: Sendable, Hashable {
        /// An item is sent as soon as all items that precede it in the recording have arrived.
        case causal
        /// Like `causal`, but an item is not sent before its recorded time divided by `speed`.
        case recorded(speed: Double)
    }

    /// When items are sent (default: ``Pace/causal``).
    package var pace = Pace.causal
    /// Time to wait for an answer, in nanoseconds (default: 10 s).
    package var wait: Int64 = 10_000_000_000
    /// Silence after which the replay stops waiting for items other than answers, in nanoseconds (default: 500 ms).
    package var quiet: Int64 = 500_000_000
    /// Size in bytes up to which consecutive items of a client are sent in one write (default: 0, each item
    /// separately).
    package var writeSize = 0
    /// Whether to send the items as the clients sent them, without the edits of the proxy (default: false).
    package var withoutEdits = false
    /// Values that replace the placeholders of redacted secrets, by placeholder, such as `[redacted:token#3]`.
    package var values: [String: String] = [:]

    /// Maximum wait for a server that is busy with other copies of the script, as a multiple of ``wait``.
    static let maximumWaits: Int64 = 6

    /// Creates options with the defaults.
    package init() {}
}

extension Replayer {
    /// Figures of a replay.
    package struct Progress: Sendable, Hashable {
        /// Number of items in the script, sent and expected.
        package var total = 0
        /// Number of items sent.
        package var sent = 0
        /// Number of items that arrived as recorded.
        package var matched = 0
        /// Latencies in nanoseconds by stanza kind: of answers to requests, and of messages and presence between played
        /// clients.
        package private(set) var latencies: [String: [Int64]] = [:]
        /// Latencies in nanoseconds, by the second of the replay's clock in which they ended.
        package private(set) var timeline: [Int64: [Int64]] = [:]

        /// Creates figures that are all 0.
        package init() {}

        /// Adds a latency and the time at which it ended, both in nanoseconds.
        mutating func record(_ latency: Int64, of kind: String, at now: Int64) {
            latencies[kind, default: []].append(latency)
            timeline[now / 1_000_000_000, default: []].append(latency)
        }
    }
}

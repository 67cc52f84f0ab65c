/// How a recording is played.
public struct ReplayOptions: Sendable {
    /// When items are sent.
    public enum Pace: Sendable, Hashable {
        /// As soon as all has arrived that had arrived before them in the recording.
        case causal
        /// So, but not before the time that had passed in the recording, divided by this.
        case recorded(speed: Double)
    }

    /// When items are sent; default as soon as possible.
    public var pace = Pace.causal
    /// Nanoseconds that an answer may take; default 10 seconds.
    public var wait: Int64 = 10_000_000_000
    /// Nanoseconds without an item after which other items than answers are no longer waited for; default 500 ms.
    public var quiet: Int64 = 500_000_000
    /// Items of a client that follow each other are sent as one until they have so many bytes; default 0, each by itself.
    public var writeSize = 0
    /// Leave out what the proxy did to the clients' items; default no.
    public var withoutEdits = false
    /// Values for placeholders, by the placeholder's text, such as `[redacted:token#3]`.
    public var values: [String: String] = [:]

    /// The defaults of each.
    public init() {}
}

extension Replayer {
    /// Figures of a replay.
    public struct Progress: Sendable, Hashable {
        /// Items of the script in all: sent and expected.
        public var total = 0
        /// Items that were sent.
        public var sent = 0
        /// Items that came as they were recorded.
        public var matched = 0
        /// Nanoseconds that answers took, by the kind of the request, and that messages and presence took to get to another client
        /// that is played.
        public var latencies: [String: [Int64]] = [:]

        /// Of one that has not begun.
        public init() {}
    }
}

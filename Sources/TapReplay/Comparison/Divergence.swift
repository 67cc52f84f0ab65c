public import TapRecord

/// Something that was not as recorded.
public struct Divergence: Sendable {
    /// What kind of cause it has; it decides whether a comparison fails. The raw value stands in reports and in `--fail-on`.
    public enum Class: String, Sendable, Hashable, CaseIterable {
        /// The other side did something else.
        case behaviour
        /// The other side has other data: a roster, an archive.
        case state
        /// Somebody who took part in the recording is not there.
        case peerAbsent = "peer-absent"
        /// The same, at another time or in another order that nothing depends on.
        case timing
        /// It depends on a value that the recording does not hold.
        case redacted
    }

    /// What was not as recorded. The raw value stands in reports.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// It did not come.
        case missing
        /// It was not recorded.
        case unexpected
        /// It means something else.
        case changed
        /// It came after what it came before.
        case reordered
        /// It came when it was no longer waited for.
        case late
        /// The answer took longer.
        case slower
        /// A value stands for two.
        case collision
        /// The session has no counterpart, or ended otherwise.
        case session
        /// It cannot be told.
        case undecided
    }

    /// An item of one side.
    public struct Item: Sendable {
        /// Number of the session.
        public var session: UInt64
        /// Number within its run; 0 where it has none.
        public var sequence: UInt64
        /// Nanoseconds since the run began.
        public var at: Int64
        /// Which way it went; nil of what has none.
        public var direction: Direction?
        /// The item as text.
        public var text: String

        /// Puts the parts together.
        public init(session: UInt64, sequence: UInt64, at: Int64, direction: Direction?, text: String) {
            self.session = session
            self.sequence = sequence
            self.at = at
            self.direction = direction
            self.text = text
        }
    }

    /// What kind of cause it has.
    public var divergenceClass: Class
    /// What was not as recorded.
    public var code: Code
    /// The recorded item; nil where there is none.
    public var recorded: Item?
    /// The live item; nil where there is none.
    public var live: Item?
    /// The places at which the items differ.
    public var differences: [ValueDifference]
    /// How many other divergences follow from this one: answers to a request that was not sent.
    public var consequences = 0
    /// More about it for people, a clause; empty where the code says it all.
    public var message: String

    /// Puts the parts together.
    public init(
        _ divergenceClass: Class,
        _ code: Code,
        recorded: Item? = nil,
        live: Item? = nil,
        differences: [ValueDifference] = [],
        message: String = ""
    ) {
        self.divergenceClass = divergenceClass
        self.code = code
        self.recorded = recorded
        self.live = live
        self.differences = differences
        self.message = message
    }
}

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
        /// The session has no counterpart, ended otherwise, or could not be opened.
        case session
        /// The recording lacks a value that decides.
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

    /// The step of a script at which something else was expected.
    public struct ScriptStep: Sendable, Hashable {
        /// The script's file.
        public var file: String
        /// The line of the step, from 1.
        public var line: Int
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
    /// How many other divergences follow from this one that are not listed: answers to a request that was not sent.
    public var consequences = 0
    /// Other divergences that follow from this one; none of them has any.
    public var followed: [Divergence] = []
    /// The client of the script whose session it is of; nil outside a replay.
    public var client: Int?
    /// More about it for people, a clause; empty where the code says it all.
    public var message: String
    /// The step of a script; nil in a recording.
    public var scriptStep: ScriptStep?

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

    /// Whether it, or what follows from it, is of one of some classes.
    public func isOf(_ classes: Set<Class>) -> Bool {
        classes.contains(divergenceClass) || followed.contains { classes.contains($0.divergenceClass) }
    }
}

extension Divergence {
    /// The step at which a script failed.
    ///
    /// - Parameter file: The script's file.
    public init(_ failure: ScriptPlay.Failure, file: String) {
        func item(_ text: String) -> Item { Item(session: 0, sequence: 0, at: 0, direction: .recv, text: text) }
        let code: Code =
            switch (failure.expected, failure.received) {
            case _ where failure.cause != .behaviour: .session
            case (.some, .some): .changed
            case (nil, .some): .unexpected
            case (.some, nil): .missing
            case (nil, nil): .session
            }
        let difference = failure.difference.map { difference in
            ValueDifference(
                path: difference.path,
                recorded: difference.expected,
                live: difference.received,
                reason: difference.expected == nil ? .unexpected : difference.received == nil ? .missing : .value
            )
        }
        self.init(
            .behaviour,
            code,
            recorded: failure.expected.map(item),
            live: failure.received.map(item),
            differences: difference.map { [$0] } ?? [],
            message: "\(failure.step): \(failure.reason)"
        )
        scriptStep = ScriptStep(file: file, line: failure.line)
    }
}

extension ReportRedactor {
    /// A divergence as it may be shown.
    public func disclosed(_ divergence: Divergence) -> Divergence {
        var divergence = divergence
        let recorded = divergence.recorded.flatMap { redacted($0.text) }
        let live = divergence.live.flatMap { redacted($0.text) }
        if let recorded { divergence.recorded?.text = recorded.text }
        if let live { divergence.live?.text = live.text }
        if recorded != nil || live != nil {
            divergence.differences = divergence.differences.map { difference in
                ValueDifference(
                    path: difference.path,
                    recorded: recorded?.value(difference.recorded) ?? difference.recorded,
                    live: live?.value(difference.live) ?? difference.live,
                    reason: difference.reason
                )
            }
        }
        divergence.message = redacted(message: divergence.message)
        divergence.followed = divergence.followed.map(disclosed)
        return divergence
    }
}

package import TapRecord

/// A difference between recording and live session.
package struct Divergence: Sendable {
    /// The kind of cause, which decides whether a comparison fails. The raw value appears in reports and in
    /// `--fail-on`.
    package enum Class: String, Sendable, Hashable, CaseIterable {
        /// The other side behaves differently.
        case behaviour
        /// The other side stores different data, such as a roster or an archive.
        case state
        /// A peer of the recording is not present.
        case peerAbsent = "peer-absent"
        /// The same item, at another time or in an unimportant order.
        case timing
        /// The result depends on a value that was redacted in the recording.
        case redacted
        /// An RFC, a XEP or a rule leaves the behaviour to the server.
        case optional
    }

    /// What differs. The raw value appears in reports.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        /// A recorded item did not arrive.
        case missing
        /// An item arrived that was not recorded.
        case unexpected
        /// An item has another meaning.
        case changed
        /// An item arrived after one that it preceded in the recording.
        case reordered
        /// An item arrived after the replay stopped waiting for it.
        case late
        /// An answer took longer.
        case slower
        /// A value corresponds to two different values of the other side.
        case collision
        /// A session has no counterpart, ended differently, or could not be opened.
        case session
        /// The recording lacks a value that is needed for the comparison.
        case undecided
        /// A recorded stanza of the server was not sent to a client, because the client had left.
        case unsent
    }

    /// An item of one side.
    package struct Item: Sendable {
        /// Number of the session.
        package var session: UInt64
        /// Number of the record within its run; 0 if there is none.
        package var sequence: UInt64
        /// Nanoseconds since the run began.
        package var at: Int64
        /// The direction of the item; nil if it has none.
        package var direction: Direction?
        /// The item as text.
        package var text: String

        package init(session: UInt64, sequence: UInt64, at: Int64, direction: Direction?, text: String) {
            self.session = session
            self.sequence = sequence
            self.at = at
            self.direction = direction
            self.text = text
        }
    }

    /// A place in a script: a step that failed, or a syntax error.
    package struct ScriptStep: Sendable, Hashable {
        /// The script's file.
        package var file: String
        /// The line of the step, from 1.
        package var line: Int
        /// The column of a syntax error, from 1; nil for a step that was played.
        package var column: Int?

        package init(file: String, line: Int, column: Int? = nil) {
            (self.file, self.line, self.column) = (file, line, column)
        }

        /// `FILE:LINE`, or `FILE:LINE:COLUMN`.
        var place: String { "\(file):\(line)\(column.map { ":\($0)" } ?? "")" }
    }

    /// The kind of cause.
    package var divergenceClass: Class
    /// What differs.
    package var code: Code
    /// The recorded item; nil if there is none.
    package var recorded: Item?
    /// The live item; nil if there is none.
    package var live: Item?
    /// The places at which the items differ.
    package var differences: [ValueDifference]
    /// Number of answers that are missing or unexpected because of this divergence. They are not listed.
    package var consequences = 0
    /// Divergences that follow from this one; their own lists are empty.
    package var followed: [Divergence] = []
    /// Index of the client in the replayed script; nil outside a replay.
    package var client: Int?
    /// The subject of the divergence; nil if it does not concern stanzas.
    package var subject: DivergenceSubject?
    /// The recorded time after which a live item without a recorded counterpart arrived, in nanoseconds since the run
    /// began, like ``Item/at``. Nil for other items, or if the time is unknown.
    package var after: Int64?
    /// The recorded time of the request that the items answer; nil for other items, or if it is unknown.
    package var asked: Int64?
    /// Human-readable details, as a clause; empty if the code says everything.
    package var message: String
    /// The failed step of a script; nil for recordings.
    package var scriptStep: ScriptStep?

    package init(
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

    /// The sort key within a session: the time in the recording, then the numbers of the items.
    var place: (Int64, UInt64, UInt64) {
        (recorded?.at ?? after ?? .max, recorded?.sequence ?? .max, live?.sequence ?? 0)
    }

    /// Returns whether this divergence, or one that follows from it, belongs to one of the classes.
    package func isOf(_ classes: Set<Class>) -> Bool {
        classes.contains(divergenceClass) || followed.contains { classes.contains($0.divergenceClass) }
    }
}

extension Divergence {
    /// Creates the divergence of a script that cannot be parsed.
    package init(_ fault: ScriptFault) {
        self.init(.behaviour, .session, message: fault.reason)
        scriptStep = ScriptStep(file: fault.file, line: fault.line, column: fault.column)
    }

    /// Creates the divergence of a script that cannot be played.
    ///
    /// - Parameters:
    ///   - file: The script's file.
    ///   - line: The line of the step that cannot be played, from 1.
    package init(unplayable reason: String, file: String, line: Int) {
        self.init(.behaviour, .session, message: reason)
        scriptStep = ScriptStep(file: file, line: line)
    }

    /// Creates the divergence of a failed script step.
    ///
    /// - Parameter file: The script's file.
    package init(_ failure: ScriptPlay.Failure, file: String) {
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
    /// Returns a divergence without secrets.
    package func disclosed(_ divergence: Divergence) -> Divergence {
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
        if let title = divergence.subject?.title { divergence.subject?.title = redacted(message: title) }
        divergence.followed = divergence.followed.map(disclosed)
        return divergence
    }
}

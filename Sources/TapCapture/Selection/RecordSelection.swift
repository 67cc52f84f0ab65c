package import TapRecord
package import TapRules

/// Selects records by session, time and filter.
package struct RecordSelection: Sendable {
    /// The selected sessions; empty selects all.
    package var sessions: Set<UInt64>
    /// The selected times; nil selects all.
    package var times: Range<Timestamp>?
    /// The filter; nil selects all.
    package var filter: RecordFilter?

    package init(sessions: Set<UInt64>, times: Range<Timestamp>? = nil, filter: RecordFilter? = nil) {
        self.sessions = sessions
        self.times = times
        self.filter = filter
    }

    /// Returns whether a record is selected.
    package func includes(_ line: borrowing RecordLine) -> Bool {
        (sessions.isEmpty || sessions.contains(line.record.session)) && times?.contains(line.record.time) ?? true
            && filter?.matches(line.record, content: line.content.span) ?? true
    }
}

/// The sessions and runs in the files, to report selected sessions that are missing.
package struct SessionsFound: Sendable {
    /// The numbers of the sessions.
    package private(set) var numbers: Set<UInt64> = []
    /// The words of the runs.
    package private(set) var runs: Set<String> = []
    private var last: UInt64 = 0

    package init() {}

    /// Adds the session of a record; 0 means that it belongs to no session.
    package mutating func add(session: UInt64) {
        // Optimisation: many consecutive records belong to the same session.
        guard session != last, session != 0 else { return }
        last = session
        numbers.insert(session)
    }

    /// Adds the run of a header.
    package mutating func add(run: String) { runs.insert(run) }
}

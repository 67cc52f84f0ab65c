package import TapRecord

/// The timelines of sessions, read from records: login steps, diagnosis and end.
///
/// Pass the headers and records in file order.
package struct SessionTimelines: Sendable {
    /// The timeline of a session.
    package struct Timeline: Sendable {
        /// The number of the session within its run.
        package let number: UInt64
        /// The number of the session's run among the files, from 1; 0 if the files have no header.
        package let run: Int
        /// The time of the session's first record, in nanoseconds since the run began.
        package let began: Int64
        /// The wall-clock time of the session's first record.
        package let time: Timestamp
        /// The last record with a ``TapRecord/Record/jid`` or ``TapRecord/Record/user``, or else the first record.
        package fileprivate(set) var owner: Record
        /// The records of the session's login steps (``TapRecord/LoginStep``), in order.
        package fileprivate(set) var steps: [Record] = []
        /// Whether the session became ready.
        package fileprivate(set) var isReady = false
        /// The number of the earlier session that this one resumed.
        package fileprivate(set) var resumes: String?
        /// The diagnosis of the failed login; nil if no record contains one.
        package fileprivate(set) var diagnosis: LoginDiagnosis?
        /// The record of the session's end; nil if the files do not contain it.
        package fileprivate(set) var end: Record?
    }

    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]

    /// The sessions in the order in which they first occur.
    package private(set) var all: [Timeline] = []

    /// Number of runs in the files.
    package var runCount: Int { runs.count }

    /// Creates timelines of the sessions with these numbers; an empty set selects all.
    package init(of wanted: Set<UInt64> = []) { self.wanted = wanted }

    /// Assigns the following records to the run of the header.
    package mutating func add(_ header: RecordHeader) { runs.add(header) }

    /// Adds a record.
    package mutating func add(_ record: Record) {
        guard record.session > 0, wanted.isEmpty || wanted.contains(record.session) else { return }
        let key = runs.session(of: record)
        let place = places[key, default: all.count]
        if place == all.count {
            places[key] = place
            all.append(
                Timeline(
                    number: record.session,
                    run: runs.current,
                    began: record.monotonic,
                    time: record.time,
                    owner: record
                )
            )
        }
        if record.jid != nil || record.user != nil { all[place].owner = record }
        switch record.code {
        case LoginStep.code: all[place].steps.append(record)
        case Record.Code.sessionReady:
            all[place].isReady = true
            all[place].resumes = record.details?[Record.Detail.resumes]?.text
        case Record.Code.loginFailed: all[place].diagnosis = LoginDiagnosis(record)
        case Record.Code.sessionEnded: all[place].end = record
        default: break
        }
    }
}

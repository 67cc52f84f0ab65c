public import TapRecord

/// What records tell of the way of each session: the steps until stanzas flowed, or until it failed and why, and its end.
///
/// Take a file's headers and records in order; most records say nothing of it.
public struct SessionTimelines: Sendable {
    /// One session of one run.
    public struct Timeline: Sendable {
        /// The number of the session within its run.
        public let number: UInt64
        /// The number of its run among those of the files, from 1; 0 where they have no header.
        public let run: Int
        /// Nanoseconds of the run at which it began; of a file that does not tell, when it is first mentioned.
        public let began: Int64
        /// The last record by which its user is known, or the first of all: ``TapRecord/Record/jid``,
        /// ``TapRecord/Record/user``, ``TapRecord/Record/remote`` and ``TapRecord/Record/domain`` say whose session it is.
        public fileprivate(set) var owner: Record
        /// The records of its steps (``TapRecord/LoginStep``), in their order.
        public fileprivate(set) var steps: [Record] = []
        /// Whether stanzas flowed.
        public fileprivate(set) var isReady = false
        /// The number of the session that it continues.
        public fileprivate(set) var resumes: String?
        /// Why it did not become ready, where that is known.
        public fileprivate(set) var diagnosis: LoginDiagnosis?
        /// The record of its end; nil where that is not in the files.
        public fileprivate(set) var end: Record?
    }

    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]

    /// The sessions in the order in which they are first mentioned.
    public private(set) var all: [Timeline] = []

    /// How many runs the files are of.
    public var runCount: Int { runs.count }

    /// The timelines of the sessions of these numbers; of none is of all.
    public init(of wanted: Set<UInt64> = []) { self.wanted = wanted }

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record.
    public mutating func note(_ record: Record) {
        guard record.session > 0, wanted.isEmpty || wanted.contains(record.session) else { return }
        let key = runs.session(of: record)
        let place = places[key, default: all.count]
        if place == all.count {
            places[key] = place
            all.append(Timeline(number: record.session, run: runs.current, began: record.monotonic, owner: record))
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

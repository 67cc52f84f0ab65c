public import TapRecord

/// The timeline of each session, read from records: its login steps, why the login failed, and how the session ended.
///
/// Takes the headers and records of files in their order.
public struct SessionTimelines: Sendable {
    /// One session of one run.
    public struct Timeline: Sendable {
        /// The number of the session within its run.
        public let number: UInt64
        /// The number of its run among those of the files, from 1; 0 where they have no header.
        public let run: Int
        /// Nanoseconds since the run began at the session's first record.
        public let began: Int64
        /// The last record with a ``TapRecord/Record/jid`` or ``TapRecord/Record/user``; while there is none, the first
        /// record.
        public fileprivate(set) var owner: Record
        /// The records of its steps (``TapRecord/LoginStep``), in their order.
        public fileprivate(set) var steps: [Record] = []
        /// Whether the session became ready.
        public fileprivate(set) var isReady = false
        /// The number of the session that it resumed.
        public fileprivate(set) var resumes: String?
        /// Why it did not become ready; nil where no record says so.
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

public import TapRecord

/// The sessions of files in figures: who, when, how long, how each ended, counts, the slowest iq.
///
/// Takes the headers and records of files in their order.
public struct SessionOverview: Sendable {
    /// One session of one run.
    public struct Session: Sendable {
        /// The number of the session within its run.
        public let number: UInt64
        /// The number of its run among those of the files, from 1; 0 where they have no header.
        public let run: Int
        /// The wall clock at its first record.
        public let began: Timestamp
        /// The bound JID, or what was known before: the user, the domain that the client asked for.
        public fileprivate(set) var jid: String?
        /// The client's address, `HOST:PORT`.
        public fileprivate(set) var remote: String?
        /// Nanoseconds from its first record to its end, or to its last record.
        public fileprivate(set) var duration: Int64 = 0
        /// How it ended: the ``Record/Detail/closeReason``; nil where that is not in the files.
        public fileprivate(set) var closeReason: String?
        /// Why its login failed: the ``Record/Detail/cause``; nil where it did not, or no record says so.
        public fileprivate(set) var loginFailure: String?
        /// Stanzas, and bytes of all items, from the client.
        public fileprivate(set) var sent = Count()
        /// The same from the server.
        public fileprivate(set) var received = Count()
        /// Stanza errors, stream errors, and what else went wrong.
        public fileprivate(set) var errors: UInt64 = 0
        /// The longest round trip of an iq.
        public fileprivate(set) var slowest: Answer?
        /// At least one of its records was chosen; see ``SessionOverview/note(_:isChosen:)``.
        fileprivate var isChosen = false
        fileprivate let start: Int64
        fileprivate var isBound = false
    }

    /// Stanzas and bytes of one direction.
    public struct Count: Sendable, Hashable {
        /// Messages, presence and iqs.
        public fileprivate(set) var stanzas: UInt64 = 0
        /// Bytes on the wire of all items, stanzas or not.
        public fileprivate(set) var bytes: UInt64 = 0
    }

    /// An answered iq.
    public struct Answer: Sendable {
        /// Nanoseconds between the request and the answer.
        public let roundTrip: Int64
        /// The `sequence` of the answer.
        public let sequence: UInt64
        /// What the answer says.
        public let summary: Prose?
    }

    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    private var sessions: [Session] = []

    /// The sessions with a chosen record, in the order in which they began.
    public var all: [Session] { sessions.filter(\.isChosen) }

    /// How many runs the files are of.
    public var runCount: Int { runs.count }

    /// No sessions yet.
    public init() {}

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record.
    ///
    /// - Parameter isChosen: Whether its session is to be among ``all``. The figures count every record.
    public mutating func note(_ line: RecordLine, isChosen: Bool) {
        let record = line.record
        guard record.session > 0 else { return }
        let key = runs.session(of: record)
        let place = places[key, default: sessions.count]
        if place == sessions.count {
            places[key] = place
            sessions.append(
                Session(number: record.session, run: runs.current, began: record.time, start: record.monotonic)
            )
        }
        sessions[place].note(record, isChosen: isChosen)
    }
}

extension SessionOverview.Session {
    fileprivate mutating func note(_ record: Record, isChosen: Bool) {
        if isChosen { self.isChosen = true }
        if closeReason == nil { duration = max(duration, record.monotonic &- start) }
        if let bound = record.jid {
            if !isBound || jid != bound { jid = bound }
            isBound = true
        } else if !isBound, let known = record.user ?? record.domain {
            let hasDomain = record.user == nil || known.utf8.contains(UInt8(ascii: "@"))
            jid = hasDomain ? known : record.domain.map { "\(known)@\($0)" } ?? known
        }
        if remote == nil { remote = record.remote }
        if record.isError { errors += 1 }
        switch record.code {
        case Record.Code.loginFailed: loginFailure = record.details?[Record.Detail.cause]?.text ?? record.condition
        case Record.Code.sessionEnded:
            closeReason = record.details?[Record.Detail.closeReason]?.text ?? record.code
            duration = record.roundTrip ?? duration
            return
        default: break
        }
        guard let direction = record.direction, record.kind.isStreamItem else { return }
        let stanzas: UInt64 = record.kind == .stanza ? 1 : 0
        switch direction {
        case .send:
            sent.stanzas += stanzas
            sent.bytes &+= record.length
        case .recv:
            received.stanzas += stanzas
            received.bytes &+= record.length
        }
        if record.kind == .stanza, let time = record.roundTrip, time > slowest?.roundTrip ?? -1 {
            slowest = SessionOverview.Answer(roundTrip: time, sequence: record.sequence, summary: record.summary)
        }
    }
}

extension Record {
    /// Whether it is of something that went wrong: a stanza, stream or SASL error, or a record of kind `error`. What is said of
    /// a session's end and of a failed login repeats one of those.
    var isError: Bool {
        switch kind {
        case .stanza, .element: condition != nil
        case .error: code != Code.loginFailed
        default: false
        }
    }
}

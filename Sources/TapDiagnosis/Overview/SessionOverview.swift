package import TapRecord

/// Figures of the sessions in files: account, time, duration, end, counts, slowest iq.
///
/// Pass the headers and records in file order.
package struct SessionOverview: Sendable {
    /// A session of a run.
    package struct Session: Sendable {
        /// The number of the session within its run.
        package let number: UInt64
        /// The number of the session's run among the files, from 1; 0 if the files have no header.
        package let run: Int
        /// The wall-clock time of the session's first record.
        package let began: Timestamp
        /// The bound JID; before that, the user or the requested domain.
        package fileprivate(set) var jid: String?
        /// The client's address, `HOST:PORT`.
        package fileprivate(set) var remote: String?
        /// Time from the session's first record to its end, or to its last record, in nanoseconds.
        package fileprivate(set) var duration: Int64 = 0
        /// The ``Record/Detail/closeReason``; nil if the end is not in the files.
        package fileprivate(set) var closeReason: String?
        /// The ``Record/Detail/cause`` of the failed login; nil if the login did not fail or no record contains the
        /// cause.
        package fileprivate(set) var loginFailure: String?
        /// Number of stanzas, and bytes of all items, from the client.
        package fileprivate(set) var sent = Count()
        /// Number of stanzas, and bytes of all items, from the server.
        package fileprivate(set) var received = Count()
        /// Number of stanza errors, stream errors and other errors.
        package fileprivate(set) var errors: UInt64 = 0
        /// The longest round trip of an iq.
        package fileprivate(set) var slowest: Answer?
        private let start: Int64
        private var isBound = false

        /// Creates the figures of a session without records.
        ///
        /// - Parameters:
        ///   - number: The number of the session.
        ///   - run: The number of its run.
        ///   - first: The first record, which must be added, too.
        package init(_ number: UInt64, of run: Int, first: borrowing Record) {
            self.number = number
            self.run = run
            began = first.time
            start = first.monotonic
        }
    }

    /// Stanzas and bytes of one direction.
    package struct Count: Sendable, Hashable {
        /// Number of messages, presence and iqs.
        package fileprivate(set) var stanzas: UInt64 = 0
        /// Bytes on the wire of all items, including those that are not stanzas.
        package fileprivate(set) var bytes: UInt64 = 0
    }

    /// An answered iq.
    package struct Answer: Sendable {
        /// Time between request and answer in nanoseconds.
        package let roundTrip: Int64
        /// The `sequence` of the answer.
        package let sequence: UInt64
        /// The summary of the answer.
        package let summary: Prose?
    }

    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    /// The sessions, and whether at least one of their records was chosen; see ``add(_:isChosen:)``.
    private var sessions: [(figures: Session, isChosen: Bool)] = []

    /// The sessions with a chosen record, in the order in which they began.
    package var all: [Session] { sessions.filter(\.isChosen).map(\.figures) }

    /// Number of runs in the files.
    package var runCount: Int { runs.count }

    package init() {}

    /// Assigns the following records to the run of the header.
    package mutating func add(_ header: RecordHeader) { runs.add(header) }

    /// Adds a record.
    ///
    /// - Parameter isChosen: Whether the session of the record is included in ``all``. The figures include every
    ///   record.
    package mutating func add(_ line: RecordLine, isChosen: Bool) {
        let record = line.record
        guard record.session > 0 else { return }
        let key = runs.session(of: record)
        let place = places[key, default: sessions.count]
        if place == sessions.count {
            places[key] = place
            sessions.append((Session(record.session, of: runs.current, first: record), false))
        }
        if isChosen { sessions[place].isChosen = true }
        sessions[place].figures.add(record)
    }
}

extension SessionOverview.Session {
    /// Adds a record of the session.
    package mutating func add(_ record: Record) {
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

extension SessionOverview.Session {
    /// Cuts texts to a number of bytes, so that the memory of many sessions is limited.
    package mutating func cutTexts(to limit: Int) {
        jid = jid?.cut(to: limit)
        remote = remote?.cut(to: limit)
        closeReason = closeReason?.cut(to: limit)
        loginFailure = loginFailure?.cut(to: limit)
        guard let slowest, let summary = slowest.summary, summary.byteCount > limit else { return }
        self.slowest = SessionOverview.Answer(
            roundTrip: slowest.roundTrip,
            sequence: slowest.sequence,
            summary: summary.cut(to: limit)
        )
    }
}

extension Record {
    /// Whether the record reports an error: a stanza, stream or SASL error, or a record of kind `error`. Records of
    /// failed logins are excluded, because they repeat such an error.
    var isError: Bool {
        switch kind {
        case .stanza, .element: condition != nil
        case .error: code != Code.loginFailed
        default: false
        }
    }
}

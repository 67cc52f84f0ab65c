package import TapRecord

/// A session in an audit store. Several records contribute to it: a field that is nil is not known yet.
package struct AuditSession: Sendable, Hashable {
    /// The run and the number of the session in it, which identify the session.
    package var run: String
    package var number: UInt64
    /// The bare address of the user: of a failed login, that which the client named, as far as it did.
    package var account: String?
    /// The client's address, `HOST:PORT`.
    package var client: String?
    package var began: Timestamp?
    package var ended: Timestamp?
    /// The code of the cause of a failed login; see ``LoginCause``.
    package var cause: String?
    /// The finding about a failed login, as a clause.
    package var finding: String?
    /// The code of the reason for the session's end.
    package var closeReason: String?
    /// The record that says so; nil if several were joined.
    package var source: RecordPlace?

    /// Creates a session of which nothing is known.
    package init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }

    /// Adds the fields of another record of the session.
    mutating func add(_ part: AuditSession) {
        account = part.account ?? account
        client = part.client ?? client
        began = part.began ?? began
        ended = part.ended ?? ended
        cause = part.cause ?? cause
        finding = part.finding ?? finding
        closeReason = part.closeReason ?? closeReason
        source = nil
    }
}

/// Joins what several records say of sessions, as a store does.
package struct SessionJoiner {
    private struct Place: Hashable {
        let run: String
        let number: UInt64
    }

    private var open: [Place: AuditSession] = [:]

    package init() {}

    /// Adds what a record says; returns the session if it has ended.
    package mutating func add(_ part: AuditSession) -> AuditSession? {
        let place = Place(run: part.run, number: part.number)
        var session = open[place] ?? part
        session.add(part)
        open[place] = session.ended == nil ? session : nil
        return session.ended == nil ? nil : session
    }

    /// The sessions that have not ended, in no particular order.
    package var rest: some Sequence<AuditSession> { open.values }
}

/// A row for an audit store.
package enum AuditEntry: Sendable, Hashable {
    case stanza(AuditRow)
    case session(AuditSession)
    case gap(StoreGap)
}

/// The place of a record in its run.
package struct RecordPlace: Sendable, Hashable {
    package var sequence: UInt64
    package var time: Timestamp

    package init(sequence: UInt64, time: Timestamp) { (self.sequence, self.time) = (sequence, time) }
}

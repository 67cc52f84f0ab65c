package import TapRecord

/// What an audit store keeps of a session. Several records contribute to it: a field that is nil is not known yet.
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

    /// Creates a session of which nothing is known.
    package init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }
}

/// A row for an audit store.
package enum AuditEntry: Sendable, Hashable {
    case stanza(AuditRow)
    case session(AuditSession)
}

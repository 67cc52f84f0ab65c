public import TapDiagnosis
public import TapRecord
public import XMPPCore

/// What a session is at one moment, for those who look at it from elsewhere. Addresses are shown as the log shows them.
public struct SessionSnapshot: Sendable {
    /// How far a session has come.
    public enum Phase: String, Sendable, Hashable, CaseIterable {
        /// Its server is looked for.
        case connecting
        /// The streams are open; nobody has begun to log in.
        case opening
        /// TLS is negotiated.
        case tls
        case authenticating
        /// Authenticated, and not bound to a resource.
        case binding
        /// Stanzas pass.
        case ready
        case closing
        /// Its bytes are not decoded, such as those of TLS passed through.
        case opaque
    }

    /// Number within the run.
    public let number: UInt64
    /// How far it has come.
    public let phase: Phase
    /// What is known of it. Its `jid` and `user` are redacted; `sent` and `received` include the sessions that it has resumed.
    public let info: SessionInfo
    /// The client's address, `HOST:PORT`.
    public let client: String?
    /// The server's address, `HOST:PORT`; set by the driver, which has the connection.
    public var server: String?
    /// Nanoseconds since it began.
    public let age: Int64
    /// Iq requests that have no answer yet, in both directions.
    public let pendingRequests: Int
    /// Stanzas of this program's own that have gone out.
    public let injected: UInt64
    /// Items that rules hold for a person.
    public let held: Int
    /// Whether acknowledgements of stream management are translated, because the ends count differently.
    public let rewrites: Bool
}

/// An iq request that has no answer yet.
public struct PendingRequest: Sendable, Hashable {
    /// Which way it went.
    public let direction: Direction
    /// The number of its record.
    public let sequence: UInt64
    /// Its id.
    public let id: String
    /// Its `to`; nil where it has none.
    public let to: String?
    /// What it asks for, in words, if known.
    public let summary: String?
    /// Nanoseconds since it passed.
    public let age: Int64
}

extension Session {
    /// What the session is at this moment.
    public func snapshot(at now: Run.Instant) -> SessionSnapshot {
        var shown = info
        shown.jid = info.jid.map { tools.redactor.disclose(address: $0) }
        shown.user = info.user.map { tools.redactor.disclose(user: $0, at: info.domain) }
        let counts = allCounts
        (shown.sent, shown.received) = (counts.sent, counts.received)
        return SessionSnapshot(
            number: number,
            phase: negotiation.phase,
            info: shown,
            client: remote,
            age: now.monotonic - info.began.monotonic,
            pendingRequests: requests.count,
            injected: injected,
            held: heldItems.count,
            rewrites: hasDiverged
        )
    }

    /// Whether this is a session of an account: of every resource of a bare JID.
    public func isOf(_ jid: JID) -> Bool {
        guard let own = info.jid else { return false }
        return Address(own).matches(Address(jid), in: jid.isFull ? .full : .bare)
    }

    /// What the session has seen of the account's roster, by address: `limit` contacts at most.
    public func contacts(limit: Int) -> [(contact: String, state: SubscriptionState)] {
        knownRoster.contacts.prefix(limit).map { (tools.redactor.disclose(address: $0.key), $0.value.state) }
    }

    /// Iq requests that have no answer yet, the oldest of each direction first: `limit` of a direction at most.
    public func pendingRequests(limit: Int, at now: Run.Instant) -> [PendingRequest] {
        requests.pending(.send, limit: limit, now.monotonic, tools.redactor)
            + requests.pending(.recv, limit: limit, now.monotonic, tools.redactor)
    }
}

extension Negotiation {
    fileprivate var phase: SessionSnapshot.Phase {
        switch self {
        case .awaitingServer: .connecting
        case .opening: .opening
        case .startingTLS: .tls
        case .authenticating: .authenticating
        case .restarting, .binding: .binding
        case .open: .ready
        case .closing, .refusing, .finished, .closed: .closing
        case .opaque: .opaque
        }
    }
}

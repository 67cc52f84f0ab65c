public import TapDiagnosis
public import TapRecord
import TapRules
public import XMPPCore

/// The state of a session at one moment, for observers outside it. Addresses are redacted as in the log.
public struct SessionSnapshot: Sendable {
    /// The phase of a session.
    public enum Phase: String, Sendable, Hashable, CaseIterable {
        /// Its server is being looked up or connected.
        case connecting
        /// The streams are open; the login has not begun.
        case opening
        /// TLS is being negotiated.
        case tls
        case authenticating
        /// Authenticated, but not bound to a resource.
        case binding
        /// Stanzas flow.
        case ready
        case closing
        /// Its bytes are not decoded, such as those of TLS passed through.
        case opaque
    }

    /// Number within the run.
    public let number: UInt64
    /// The phase.
    public let phase: Phase
    /// The facts of the session. Its `jid` and `user` are redacted; `sent` and `received` include the sessions that it
    /// has resumed.
    public let info: SessionInfo
    /// The client's address, `HOST:PORT`.
    public let client: String?
    /// The server's address, `HOST:PORT`; set by the driver, which owns the connection.
    public var server: String?
    /// The age in nanoseconds.
    public let age: Int64
    /// Unanswered iq requests, in both directions.
    public let pendingRequests: Int
    /// The number of injected stanzas that were sent.
    public let injected: UInt64
    /// The number of items that rules hold for the user.
    public let held: Int
    /// Whether acknowledgements of stream management are translated, because the ends count differently.
    public let rewrites: Bool
}

/// An unanswered iq request.
public struct PendingRequest: Sendable, Hashable {
    /// Its direction.
    public let direction: Direction
    /// The number of its record.
    public let sequence: UInt64
    /// Its id.
    public let id: String
    /// Its `to`; nil if it has none.
    public let to: String?
    /// A description of the request, if known.
    public let summary: String?
    /// Nanoseconds since it was forwarded.
    public let age: Int64
}

extension Session {
    /// Returns the current state of the session.
    public func snapshot(at now: Run.Instant) -> SessionSnapshot {
        var shown = info
        shown.jid = info.jid.map { context.tools.redactor.disclose(address: $0) }
        shown.user = info.user.map { context.tools.redactor.disclose(user: $0, at: info.domain) }
        let counts = resumption.allCounts(info)
        (shown.sent, shown.received) = (counts.sent, counts.received)
        return SessionSnapshot(
            number: number,
            phase: context.negotiation.phase,
            info: shown,
            client: context.remote,
            age: now.monotonic - info.began.monotonic,
            pendingRequests: requests.count,
            injected: injected,
            held: heldItems.count,
            rewrites: context.outlet.hasDiverged
        )
    }

    /// Whether this is a session of an account: a bare JID covers all its resources.
    public func isOf(_ jid: JID) -> Bool {
        guard let own = info.jid else { return false }
        return Address(own).matches(Address(jid), in: jid.isFull ? .full : .bare)
    }

    /// The known contacts of the account's roster: at most `limit`.
    public func contacts(limit: Int) -> [(contact: String, state: SubscriptionState)] {
        roster.known(context).contacts.prefix(limit).map {
            (context.tools.redactor.disclose(address: $0.key), $0.value.state)
        }
    }

    /// Unanswered iq requests, the oldest of each direction first: at most `limit` of each direction.
    public func pendingRequests(limit: Int, at now: Run.Instant) -> [PendingRequest] {
        requests.pending(.send, limit: limit, now.monotonic, context.tools.redactor)
            + requests.pending(.recv, limit: limit, now.monotonic, context.tools.redactor)
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

package import TapDiagnosis
package import TapRecord
import TapRules
package import XMPPCore

/// The state of a session at one moment, for observers outside it. Addresses are redacted as in the log.
package struct SessionSnapshot: Sendable {
    /// The phase of a session.
    package enum Phase: String, Sendable, Hashable, CaseIterable {
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
    package let number: UInt64
    /// The phase.
    package let phase: Phase
    /// The facts of the session. Its `jid` and `user` are redacted; `sent` and `received` include the sessions that it
    /// has resumed.
    package let info: SessionInfo
    /// The client's address, `HOST:PORT`.
    package let client: String?
    /// The server's address, `HOST:PORT`; set by the driver, which owns the connection.
    package var server: String?
    /// The age in nanoseconds.
    package let age: Int64
    /// Unanswered iq requests, in both directions.
    package let pendingRequests: Int
    /// The number of injected stanzas that were sent.
    package let injected: UInt64
    /// The number of items that rules hold for the user.
    package let held: Int
    /// Whether acknowledgements of stream management are translated, because the ends count differently.
    package let rewrites: Bool
}

/// An unanswered iq request.
package struct PendingRequest: Sendable, Hashable {
    /// Its direction.
    package let direction: Direction
    /// The number of its record.
    package let sequence: UInt64
    /// Its id.
    package let id: String
    /// Its `to`; nil if it has none.
    package let to: String?
    /// A description of the request, if known.
    package let summary: String?
    /// Nanoseconds since it was forwarded.
    package let age: Int64
}

extension Session {
    /// Returns the current state of the session.
    package func snapshot(at now: Run.Instant) -> SessionSnapshot {
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
    package func isOf(_ jid: JID) -> Bool {
        guard let own = info.jid else { return false }
        return Address(own).matches(Address(jid), in: jid.isFull ? .full : .bare)
    }

    /// The known contacts of the account's roster: at most `limit`.
    package func contacts(limit: Int) -> [(contact: String, state: SubscriptionState)] {
        roster.known(context).contacts.prefix(limit).map {
            (context.tools.redactor.disclose(address: $0.key), $0.value.state)
        }
    }

    /// Unanswered iq requests, the oldest of each direction first: at most `limit` of each direction.
    package func pendingRequests(limit: Int, at now: Run.Instant) -> [PendingRequest] {
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

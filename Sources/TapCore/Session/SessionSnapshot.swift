package import TapRecord
import TapRules
import XMPPCore

/// The state of a session at one moment, for display. Addresses are redacted as in the log.
package struct SessionSnapshot: Sendable {
    /// The phase of a session.
    package enum Phase: String, Sendable, Hashable, CaseIterable {
        /// The server is being looked up or connected.
        case connecting
        /// The streams are open; the login has not begun.
        case opening
        /// TLS is being negotiated.
        case tls
        case authenticating
        /// The client is authenticated, but has not bound a resource.
        case binding
        /// The session is open, and stanzas are relayed.
        case ready
        case closing
        /// The bytes are not decoded, for example because TLS is passed through.
        case opaque
    }

    /// The number of the session within the run.
    package let number: UInt64
    /// The phase.
    package let phase: Phase
    /// The facts about the session. `jid` and `user` are redacted; `sent` and `received` include the earlier sessions
    /// that it has resumed.
    package let info: SessionInfo
    /// The client's address, `HOST:PORT`.
    package let client: String?
    /// The server's address, `HOST:PORT`; set by the driver, which owns the connection.
    package var server: String?
    /// The time since the session began, in nanoseconds.
    package let age: Int64
    /// The number of unanswered iq requests, in both directions.
    package let pendingRequests: Int
    /// The number of injected stanzas that were sent.
    package let injected: UInt64
    /// The number of items that rules hold for the user.
    package let held: Int
    /// Whether acknowledgements of stream management are translated, because the stanza counts have diverged.
    package let rewrites: Bool
}

/// An unanswered iq request.
package struct PendingRequest: Sendable, Hashable {
    /// The direction of the request.
    package let direction: Direction
    /// The number of the request's record.
    package let sequence: UInt64
    /// The id of the request.
    package let id: String
    /// The `to` of the request; nil if it has none.
    package let to: String?
    /// A description of the request; nil if unknown.
    package let summary: String?
    /// The time since the request was forwarded, in nanoseconds.
    package let age: Int64
}

extension SessionSnapshot {
    init(
        _ context: borrowing SessionContext,
        _ counts: EarlierCounts,
        pending: Int,
        injected: UInt64,
        at now: Run.Instant
    ) {
        let redactor = context.tools.redactor
        var shown = context.info
        shown.jid = shown.jid.map { redactor.disclose(address: $0) }
        shown.user = shown.user.map { redactor.disclose(user: $0, at: context.info.domain) }
        (shown.sent, shown.received) = (counts.sent, counts.received)
        self.init(
            number: context.number,
            phase: context.negotiation.phase,
            info: shown,
            client: context.remote,
            age: now.monotonic - shown.began.monotonic,
            pendingRequests: pending,
            injected: injected,
            held: context.rules?.heldItems.count ?? 0,
            rewrites: context.outlet.hasDiverged
        )
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

package import TapDiagnosis
public import TapRecord
package import TapRules
public import XMPPCore

/// The action on a stream that cannot be parsed.
package enum UnparsablePolicy: String, Sendable, Hashable, CaseIterable {
    /// The rest of its direction is forwarded without being decoded.
    case relay
    /// Both streams are closed, the failing one with the applicable stream error (RFC 6120 §4.9.3). So that no
    /// undecoded bytes are forwarded, every item is forwarded whole, also in an open session.
    case close
}

/// How a session treats a stanza larger than the limit of an item.
package enum OversizePolicy: String, Sendable, Hashable, CaseIterable {
    /// It is relayed as it arrives. Rules are not evaluated for it.
    case relay
    /// The session ends with `policy-violation`. Every item is relayed whole, so that no part of it is forwarded.
    case refuse
}

/// How TLS begins on a leg on which xmpptap terminates it.
package enum LegTLS: String, Sendable, Hashable, CaseIterable {
    /// As on the other leg: by STARTTLS, from the first byte, or not at all, depending on the client and the server's
    /// offer.
    case auto
    /// Like ``auto``, but a session without TLS is refused.
    case required
    /// From the first byte (XEP-0368), independent of the other leg.
    case direct
    /// Never: the leg stays in clear, independent of the other leg.
    case off
}

/// The options of sessions: the same for all sessions of a listener.
public struct SessionOptions: Sendable {
    /// The least severe level that a sink needs, which may change while sessions run; records beyond it are not made.
    package var recordLevel: RecordLevel
    /// The policy for redacting records.
    package var redaction: RedactionPolicy
    /// Limits before authentication.
    package var unauthenticatedLimits: StreamLimits
    /// Limits after authentication.
    package var limits: StreamLimits
    /// Hold the server's `<proceed/>` until TLS is established on its leg: for a proxy that terminates TLS.
    package var holdsProceed = false
    /// How TLS begins on the client's leg, for a proxy that terminates TLS.
    package var clientTLS = LegTLS.auto
    /// The same on the server's leg.
    package var serverTLS = LegTLS.auto
    /// Remove channel binding from the server's features (``FeaturesEdit/withoutBinding``), to test clients without it.
    /// Default false.
    package var stripsBinding = false
    /// The bytes were decoded by the program that logged them: the streams continue as XML after `<proceed/>` and
    /// `<compressed/>`. Default false.
    package var isDecoded = false
    /// The bytes were captured outside xmpptap, from a client's log or packets: it is unknown whether a proxy was
    /// involved.
    package var isObserved = false
    /// The session reads a recording: it buffers nothing, and takes facts that the items do not show from the records;
    /// see ``SourceRunner``. Default false.
    package var isRecorded = false
    /// The client is xmpptap itself: only the server leg uses TLS, and both streams restart after its handshake.
    /// Requires ``holdsProceed``.
    package var isOwnClient = false
    /// The accounts whose logins xmpptap performs; nil for none.
    package var authenticator: (any Authenticator)?
    /// The action on a session with an unparsable stream. Default: it continues.
    package var onUnparsable = UnparsablePolicy.relay
    /// The action on a stanza larger than ``limits`` allow. Default: it is relayed. ``UnparsablePolicy/close`` implies
    /// ``OversizePolicy/refuse``.
    package var onOversize = OversizePolicy.relay
    /// The largest number of bytes that wait in a direction before its leg is no longer read. Default 256 KiB.
    package var waitingBytes = 256 << 10
    /// The largest number of bytes of injected stanzas that wait to be sent in a session. Default 4 MiB.
    package var injectedBytes = 4 << 20

    /// The rules for items: a session uses the current rules when it begins, and gets later ones by
    /// ``SessionInput/rules(_:)``. Default none.
    package var rules: LiveRules?

    /// The options for pinging silent clients. Default none.
    package var ping: PingOptions?

    /// Translate the counts of stream management for each peer. Default true; false is for tests of the effect without
    /// translation.
    package var translatesCounts = true

    /// Time limit in nanoseconds from the connection to an open session. The login inside passed-through TLS cannot be
    /// decoded: there, the server's ServerHello ends this limit, and for other undecodable bytes the server's answer.
    /// Default 60 s; nil for none.
    package var loginTime: Int64? = 60_000_000_000
    /// Time limit in nanoseconds without a byte in either direction. Default none: the system's keep-alive detects lost
    /// peers.
    package var idleTime: Int64?

    /// The texts of remedies for failed logins; nil omits them.
    package var advice: Advice?

    /// Whether every item is relayed whole, also in an open session without alterations.
    var storesAlways: Bool { onUnparsable == .close || onOversize == .refuse }

    /// The current value of ``recordLevel``.
    package var level: Level { recordLevel.current }

    /// Creates options with default values.
    public init(
        level: Level = .verbose,
        redaction: RedactionPolicy = .secrets,
        unauthenticatedLimits: StreamLimits = .unauthenticated,
        limits: StreamLimits = .authenticated
    ) {
        recordLevel = RecordLevel(level)
        self.redaction = redaction
        self.unauthenticatedLimits = unauthenticatedLimits
        self.limits = limits
    }
}

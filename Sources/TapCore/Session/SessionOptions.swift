public import TapDiagnosis
public import TapRecord
public import XMPPCore

/// What is done about a stream that cannot be parsed.
public enum UnparsablePolicy: String, Sendable, Hashable, CaseIterable {
    /// Its direction is passed on without being read from there on.
    case relay
    /// Both streams are closed, the failing one with the stream error it deserves (RFC 6120 §4.9.3). So that nothing
    /// passes that was not read, every item is passed on whole, also once the session is open.
    case close
}

/// How a session treats a stanza larger than the limit of an item.
public enum OversizePolicy: String, Sendable, Hashable, CaseIterable {
    /// It is relayed as it arrives. Rules are not evaluated for it.
    case relay
    /// The session ends with `policy-violation`. Every item is relayed whole, so that nothing of it passes.
    case refuse
}

/// How TLS begins on a leg where this program ends it.
public enum LegTLS: String, Sendable, Hashable, CaseIterable {
    /// As on the other leg: by STARTTLS, from the first byte, or not at all, as the client begins and the server offers.
    case auto
    /// As with ``auto``, and a session that goes on without is refused.
    case required
    /// From the first byte on (XEP-0368), whatever the other leg does.
    case direct
    /// Never: the leg stays in clear, whatever the other does.
    case off
}

/// How sessions are watched: the same for all sessions of a listener.
public struct SessionOptions: Sendable {
    /// The least severe level any sink wants, which may change while sessions run; records beyond it are not made.
    public var recordLevel: RecordLevel
    /// What is hidden from the sinks.
    public var redaction: RedactionPolicy
    /// Limits before authentication.
    public var unauthenticatedLimits: StreamLimits
    /// Limits after authentication.
    public var limits: StreamLimits
    /// Hold the server's `<proceed/>` until TLS is up on its leg: for a proxy that ends TLS itself.
    public var holdsProceed = false
    /// How TLS begins on the client's leg, for a proxy that ends TLS itself.
    public var clientTLS = LegTLS.auto
    /// The same on the server's leg.
    public var serverTLS = LegTLS.auto
    /// Take channel binding out of what the server offers (``FeaturesEdit/withoutBinding``): for a lab that wants to see
    /// what clients do without. Default false.
    public var stripsBinding = false
    /// The bytes were decoded by the program that logged them: the streams continue as XML behind `<proceed/>` and
    /// `<compressed/>`. Default false.
    public var isDecoded = false
    /// The bytes were seen where this program did not relay them, in a client's own log or in packets: whether a proxy stood
    /// between the two is not known.
    public var isObserved = false
    /// The session reads a recording: it buffers nothing, and takes from the records what the items do not show; see
    /// ``SourceRunner``. Default false.
    public var isRecorded = false
    /// The client is this program itself, so that there is no TLS but the server's leg's: behind it both streams begin
    /// anew. Goes with ``holdsProceed``.
    public var isOwnClient = false
    /// Ends the logins of clients whose accounts it has; nil ends none.
    public var authenticator: (any Authenticator)?
    /// What becomes of a session one of whose streams cannot be parsed. Default: it goes on.
    public var onUnparsable = UnparsablePolicy.relay
    /// What becomes of a stanza larger than ``limits`` allow. Default: it is relayed. ``UnparsablePolicy/close`` implies
    /// ``OversizePolicy/refuse``.
    public var onOversize = OversizePolicy.relay
    /// Bytes a direction may keep waiting before its leg is no longer read. Default 256 KiB.
    public var waitingBytes = 256 << 10
    /// Bytes of injected stanzas that a session may keep waiting until they can go out. Default 4 MiB.
    public var injectedBytes = 4 << 20

    /// What decides on items: a session asks the rules that are here when it begins, and learns of others by
    /// ``SessionInput/rules(_:)``. Default none.
    public var rules: LiveRules?

    /// Pings clients that are silent. Default none.
    public var ping: PingOptions?

    /// Give each peer the counts of stream management that it keeps itself. Default true; false is for tests that show what
    /// happens without.
    public var translatesCounts = true

    /// Nanoseconds from the connection to an open session. Of TLS passed through the login cannot be seen: the server's
    /// ServerHello ends this limit, and of other bytes that cannot be read the server's answer. Default 60 s; nil is none.
    public var loginTime: Int64? = 60_000_000_000
    /// Nanoseconds without a byte in either direction. Default none: the system's keep-alive notices peers that are gone.
    public var idleTime: Int64?

    /// The words for what to try where a login fails; nil leaves them out.
    public var advice: Advice?

    /// Whether every item is relayed whole, also in an open session that nothing alters.
    var storesAlways: Bool { onUnparsable == .close || onOversize == .refuse }

    /// ``recordLevel`` as it is now.
    public var level: Level { recordLevel.current }

    /// Options with the defaults of each, and another level.
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

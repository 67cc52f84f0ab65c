package import TapDiagnosis
public import TapRecord
package import TapRules
public import XMPPCore

/// How a session treats a stream that cannot be parsed.
package enum UnparsablePolicy: String, Sendable, Hashable, CaseIterable {
    /// The rest of the direction is forwarded without being decoded.
    case relay
    /// Both streams are closed, the malformed one with the stream error that applies (RFC 6120 §4.9.3). Every item is
    /// forwarded whole, even in an open session, so that no undecoded bytes are forwarded.
    case close
}

/// How a session treats a stanza that is larger than the limit for an item.
package enum OversizePolicy: String, Sendable, Hashable, CaseIterable {
    /// The stanza is relayed on arrival, without evaluating rules.
    case relay
    /// The session is closed with `policy-violation`. Every item is forwarded whole, so that no part of the stanza is
    /// forwarded.
    case refuse
}

/// How TLS begins on a leg where xmpptap terminates TLS.
package enum LegTLS: String, Sendable, Hashable, CaseIterable {
    /// As on the other leg: by STARTTLS, from the first byte, or not at all, depending on the client and on the
    /// server's offer.
    case auto
    /// As ``auto``, but a session without TLS is refused.
    case required
    /// From the first byte (XEP-0368), independently of the other leg.
    case direct
    /// Never: the leg stays in clear, independently of the other leg.
    case off
}

/// The options that all sessions of a listener share.
public struct SessionOptions: Sendable {
    /// The level of the most detailed sink, which may change while sessions run. More detailed records are not created.
    package var recordLevel: RecordLevel
    /// The policy for redacting records.
    package var redaction: RedactionPolicy
    /// The XML limits before authentication.
    package var unauthenticatedLimits: StreamLimits
    /// The XML limits after authentication.
    package var limits: StreamLimits
    /// How both directions are divided into items. With messages, the bytes that a session receives and forwards are
    /// WebSocket frames. Default ``StreamFraming/stream``.
    package var framing = StreamFraming.stream
    /// Whether the items are the elements in bodies of BOSH: messages without frames, one in each read. The session only
    /// observes; see ``observingBOSH``. Default false.
    package var isBOSH = false
    /// Whether bytes are counted and forwarded, but not decoded; see ``withoutDecoding``. Default false.
    package private(set) var isBlind = false
    /// Whether to hold the server's `<proceed/>` until TLS is established on the server leg, for a proxy that
    /// terminates TLS. Default false.
    package var holdsProceed = false
    /// How TLS begins on the client leg, if xmpptap terminates TLS.
    package var clientTLS = LegTLS.auto
    /// How TLS begins on the server leg, if xmpptap terminates TLS.
    package var serverTLS = LegTLS.auto
    /// Whether to remove channel binding from the server's features (``FeaturesEdit/withoutBinding``), to test clients
    /// without it. Default false.
    package var stripsBinding = false
    /// Whether the program that logged the bytes has decoded them, so that the streams continue as XML after
    /// `<proceed/>` and `<compressed/>`. Default false.
    package var isDecoded = false
    /// Whether the bytes were captured outside xmpptap, in a client's log or in packets, so that it is unknown whether
    /// a proxy was involved. Default false.
    package var isObserved = false
    /// Whether the session reads a recording. It then holds nothing, and takes the facts that the items do not show
    /// from the records; see ``SourceRunner``. Default false.
    package var isRecorded = false
    /// Whether the client is xmpptap itself. Then only the server leg uses TLS, and both streams restart after its
    /// handshake. Requires ``holdsProceed``. Default false.
    package var isOwnClient = false
    /// The accounts whose logins xmpptap performs itself; nil for none. Default nil.
    package var authenticator: (any Authenticator)?
    /// How to treat a stream that cannot be parsed. Default ``UnparsablePolicy/relay``.
    package var onUnparsable = UnparsablePolicy.relay
    /// How to treat a stanza larger than ``limits``. Default ``OversizePolicy/relay``. ``UnparsablePolicy/close``
    /// implies ``OversizePolicy/refuse``.
    package var onOversize = OversizePolicy.relay
    /// The largest number of bytes that may wait in a direction; beyond it, the leg is not read. Default 256 KiB.
    package var waitingBytes = 256 << 10
    /// The largest number of bytes of injected stanzas that may wait in a session. Default 4 MiB.
    package var injectedBytes = 4 << 20

    /// The rules for items. A session uses the current rules when it begins, and receives later ones by
    /// ``SessionInput/rules(_:)``. Default nil, for no rules.
    package var rules: LiveRules?

    /// The options for pinging silent clients. Default nil, for no pings.
    package var ping: PingOptions?

    /// Whether to translate the stanza counts of stream management for each peer. Default true; tests set false to show
    /// the effect without translation.
    package var translatesCounts = true

    /// The time limit in nanoseconds from the connection until the session is open. A login inside passed-through TLS
    /// cannot be decoded: there, the server's ServerHello ends the limit. For other undecodable bytes, the server's
    /// answer ends it. Default 60 s; nil for no limit.
    package var loginTime: Int64? = 60_000_000_000
    /// The time limit in nanoseconds without a byte in either direction. Default nil, for no limit: the system's
    /// keep-alive detects lost peers.
    package var idleTime: Int64?

    /// Returns the texts of remedies for failed logins; nil omits the texts.
    package var advice: Advice?

    /// The same options for a session that is relayed without decoding. Everything that needs to follow the login is off.
    package var withoutDecoding: SessionOptions {
        var options = self
        options.isBlind = true
        options.holdsProceed = false
        options.authenticator = nil
        options.rules = nil
        options.ping = nil
        options.loginTime = nil
        return options
    }

    /// The same options for a session of BOSH, which is decoded, but not relayed: nothing can be held, changed or
    /// injected, and no time limit applies.
    package var observingBOSH: SessionOptions {
        var options = withoutDecoding
        options.isBlind = false
        options.isBOSH = true
        options.isObserved = true
        options.framing = .messages
        options.clientTLS = .auto
        options.serverTLS = .auto
        options.onUnparsable = .relay
        options.onOversize = .relay
        options.translatesCounts = false
        // The limit of the body applies.
        options.unauthenticatedLimits = options.limits
        options.idleTime = nil
        return options
    }

    /// Whether messages arrive in the frames of WebSockets.
    var hasFrames: Bool { !isRecorded && !isBOSH }

    /// Whether every item is forwarded whole, even in an open session without rules that alter items.
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

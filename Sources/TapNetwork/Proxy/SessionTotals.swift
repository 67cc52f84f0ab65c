public import TapCore
public import TapRecord
import XMPPCore

/// What the sessions of a proxy have counted, added up.
public struct SessionTotals: Sendable {
    /// A direction and a kind of stanza.
    public struct Stanzas: Sendable, Hashable {
        /// Which way they went.
        public var direction: Direction
        /// `iq`, `message` or `presence`.
        public var kind: String
    }

    /// A login's mechanism and how it went.
    public struct Login: Sendable, Hashable {
        /// The mechanism's name; `other` for one that is none of ``SessionTotals/mechanisms``: clients choose names freely.
        public var mechanism: String
        /// `success`, `failure` or `none`.
        public var outcome: String
    }

    /// A leg and the version of TLS on it.
    public struct TLS: Sendable, Hashable {
        /// The leg.
        public var leg: Leg
        /// As ``ClientHello/name(ofVersion:)`` has it.
        public var version: String
    }

    static let mechanisms: Set<String> = [
        "PLAIN", "EXTERNAL", "ANONYMOUS", "DIGEST-MD5", "CRAM-MD5", "LOGIN", "OAUTHBEARER", "X-OAUTH2", "GSSAPI",
        "SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-512-PLUS",
        "HT-SHA-256-NONE", "HT-SHA-256-EXPR", "HT-SHA-256-ENDP", "HT-SHA-256-UNIQ",
    ]

    /// Sessions that have ended, by the reason.
    public private(set) var ended: [CloseReason: UInt64] = [:]
    /// Stanzas that have passed.
    public private(set) var stanzas: [Stanzas: UInt64] = [:]
    /// Logins.
    public private(set) var logins: [Login: UInt64] = [:]
    /// Legs on which TLS was terminated.
    public private(set) var tls: [TLS: UInt64] = [:]
    /// Stanzas of this program's own that have gone out.
    public private(set) var injected: UInt64 = 0

    /// Nothing counted.
    public init() {}

    /// Adds a session that has not ended.
    mutating func add(open info: borrowing SessionInfo, injected: UInt64) {
        self.injected += injected
        for (direction, counts) in [(Direction.send, info.sent), (.recv, info.received)] {
            for (kind, count) in [("iq", counts.iq), ("message", counts.message), ("presence", counts.presence)] {
                stanzas[Stanzas(direction: direction, kind: kind), default: 0] += count
            }
        }
        if let mechanism = info.mechanism {
            let name = Self.mechanisms.contains(mechanism) ? mechanism : "other"
            let outcome: String? =
                switch info.authentication {
                // Of a session that lives it is not over.
                case .none: info.ending == nil ? nil : "none"
                case .succeeded: "success"
                case .failed: "failure"
                }
            if let outcome { logins[Login(mechanism: name, outcome: outcome), default: 0] += 1 }
        }
        for (leg, version) in [(Leg.client, info.clientTLS), (.server, info.serverTLS)] {
            guard let version else { continue }
            tls[TLS(leg: leg, version: ClientHello.name(ofVersion: version)), default: 0] += 1
        }
    }

    /// Adds a session that has ended.
    mutating func add(_ info: borrowing SessionInfo, injected: UInt64) {
        add(open: info, injected: injected)
        ended[info.effectiveCloseReason ?? .undecoded, default: 0] += 1
    }

    /// Adds what others have counted.
    mutating func add(_ other: SessionTotals) {
        ended.merge(other.ended, uniquingKeysWith: +)
        stanzas.merge(other.stanzas, uniquingKeysWith: +)
        logins.merge(other.logins, uniquingKeysWith: +)
        tls.merge(other.tls, uniquingKeysWith: +)
        injected += other.injected
    }
}

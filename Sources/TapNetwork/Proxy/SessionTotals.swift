package import TapCore
package import TapRecord

/// The summed counters of a proxy's sessions.
package struct SessionTotals: Sendable {
    /// A direction and a kind of stanza.
    package struct Stanzas: Sendable, Hashable {
        /// The direction of the stanzas.
        package var direction: Direction
        /// `iq`, `message` or `presence`.
        package var kind: String
    }

    /// The mechanism and the outcome of a login.
    package struct Login: Sendable, Hashable {
        /// The mechanism's name; `other` if it is not in ``SessionTotals/mechanisms``, because clients choose names
        /// freely.
        package var mechanism: String
        /// The flag of channel binding in the client's SCRAM message: `n`, `y` or `p`; `none` for other mechanisms.
        package var flag: String
        /// `success`, `failure`, or `none` if the session ended before the outcome.
        package var outcome: String
    }

    /// A leg, its TLS version, and the outcome of the handshake.
    package struct TLS: Sendable, Hashable {
        /// The leg.
        package var leg: Leg
        /// The TLS version, as named by ``ClientHello/name(ofVersion:)``; `none` if none was negotiated.
        package var version: String
        /// `success` or `failure`.
        package var result: String
    }

    static let mechanisms: Set<String> = [
        "PLAIN", "EXTERNAL", "ANONYMOUS", "DIGEST-MD5", "CRAM-MD5", "LOGIN", "OAUTHBEARER", "X-OAUTH2", "GSSAPI",
        "SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-512-PLUS",
        "HT-SHA-256-NONE", "HT-SHA-256-EXPR", "HT-SHA-256-ENDP", "HT-SHA-256-UNIQ",
    ]

    /// Number of ended sessions, by close reason.
    package private(set) var ended: [CloseReason: UInt64] = [:]
    /// Number of stanzas, by direction and kind.
    package private(set) var stanzas: [Stanzas: UInt64] = [:]
    /// Number of logins, by mechanism and outcome.
    package private(set) var logins: [Login: UInt64] = [:]
    /// Number of TLS handshakes, by leg, version and outcome.
    package private(set) var tls: [TLS: UInt64] = [:]
    /// Number of bytes written to clients.
    package private(set) var bytesToClients: UInt64 = 0
    /// Number of bytes written to servers.
    package private(set) var bytesToServers: UInt64 = 0
    /// The other counters of the sessions.
    package private(set) var counters = SessionCounters()
    /// Durations from read to write of bytes forwarded in cut-through.
    package private(set) var relayLatency = DurationHistogram()
    /// Number of open sessions, by relay mode.
    package private(set) var open: [RelayMode: UInt64] = [:]
    /// Differences between the stream-management counts of client and server, summed over all open sessions.
    package private(set) var divergence: UInt64 = 0

    /// Creates totals at zero.
    package init() {}

    /// Adds the counters of an open session.
    mutating func add(open driver: SessionDriver) {
        add(driver)
        open[driver.session.relayMode, default: 0] += 1
        divergence += driver.session.divergence
    }

    /// Adds the counters of an ended session.
    mutating func add(ended driver: SessionDriver) {
        add(driver)
        ended[driver.session.info.effectiveCloseReason ?? .undecoded, default: 0] += 1
    }

    /// Adds relay latencies of a loop.
    mutating func add(relayLatency: DurationHistogram) { self.relayLatency.add(relayLatency) }

    private mutating func add(_ driver: SessionDriver) {
        counters.add(driver.session.counters)
        bytesToClients += driver.client.written
        bytesToServers += driver.server.written
        add(driver.session.info)
    }

    private mutating func add(_ info: borrowing SessionInfo) {
        for (direction, counts) in [(Direction.send, info.sent), (.recv, info.received)] {
            for (kind, count) in [("iq", counts.iq), ("message", counts.message), ("presence", counts.presence)] {
                stanzas[Stanzas(direction: direction, kind: kind), default: 0] += count
            }
        }
        if let mechanism = info.mechanism {
            let name = Self.mechanisms.contains(mechanism) ? mechanism : "other"
            let outcome: String? =
                switch info.authentication {
                // The login of an open session may still be in progress.
                case .none: info.ending == nil ? nil : "none"
                case .succeeded: "success"
                case .failed: "failure"
                }
            if let outcome {
                logins[Login(mechanism: name, flag: info.bindingFlag ?? "none", outcome: outcome), default: 0] += 1
            }
        }
        for (leg, version) in [(Leg.client, info.clientTLS), (.server, info.serverTLS)] {
            guard let version else { continue }
            tls[TLS(leg: leg, version: ClientHello.name(ofVersion: version), result: "success"), default: 0] += 1
        }
        if case .tls(let leg, _)? = info.ending, (leg == .client ? info.clientTLS : info.serverTLS) == nil {
            tls[TLS(leg: leg, version: "none", result: "failure"), default: 0] += 1
        }
    }

    /// Adds other totals.
    mutating func add(_ other: SessionTotals) {
        ended.merge(other.ended, uniquingKeysWith: +)
        stanzas.merge(other.stanzas, uniquingKeysWith: +)
        logins.merge(other.logins, uniquingKeysWith: +)
        tls.merge(other.tls, uniquingKeysWith: +)
        bytesToClients += other.bytesToClients
        bytesToServers += other.bytesToServers
        counters.add(other.counters)
        relayLatency.add(other.relayLatency)
        open.merge(other.open, uniquingKeysWith: +)
        divergence += other.divergence
    }
}

internal import Synchronization
package import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// A prediction of how channel binding affects a login through a proxy, before the login ends.
///
/// A SCRAM login can be bound to its TLS connection (RFC 5802 §6, RFC 9266), and the server can sign the list of
/// mechanisms (XEP-0474) and the TLS version (XEP-0515). A proxy that intercepts TLS has two connections: whether the
/// login succeeds depends on the features that both sides use and on the proxy's strategy.
package struct BindingForecast: Sendable, Hashable {
    /// How the proxy treats TLS and SASL.
    package enum Strategy: String, Sendable, Hashable, CaseIterable {
        /// TLS is passed through.
        case passthrough
        /// TLS is intercepted with a certificate that the proxy issues.
        case minted
        /// TLS is intercepted with the server's own certificate and key.
        case serverCertificate = "server-certificate"
        /// The server uses the proxy's certificate for channel binding.
        case cooperating
        /// The proxy performs the login itself on both legs.
        case accounts
        /// The proxy removes mechanisms with channel binding from the offer.
        case strip
        /// TLS on the server leg only.
        case clear = "client-in-clear"
    }

    /// The client's gs2 flag (RFC 5801 §4).
    package enum Flag: Sendable, Hashable {
        /// `n`: the client does not support channel binding.
        case none
        /// `y`: the client supports channel binding, but was not offered it.
        case unsupportedByServer
        /// `p`: the client uses this type.
        case bound(String)
    }

    /// The properties of a login that channel binding depends on.
    package struct Login: Sendable, Hashable {
        /// The mechanism that the client chose.
        package var mechanism: String
        /// The gs2 flag; nil if the mechanism has none, or before the client's first message.
        package var flag: Flag?
        /// The mechanisms that the server offers, as received.
        package var offered: [String] = []
        /// The server's channel binding types (XEP-0440), as received; nil if it sends no list.
        package var bindings: [String]?
        /// Whether the proxy offers the client fewer channel binding types than the server does.
        package var isListReduced = false
        /// Whether the server signs the mechanisms (XEP-0474, `h`) and the client checks the signature.
        package var signsMechanisms = false
        /// Whether the server signs the TLS version (XEP-0515, `t`) and the client checks the signature.
        package var signsTLSVersion = false
        /// The TLS version on the client leg, as in the protocol (0x0304 is TLS 1.3); nil without TLS.
        package var clientTLS: UInt16?
        /// The TLS version on the server leg; nil without TLS.
        package var serverTLS: UInt16?
        /// Whether the certificates of both legs are the same, or have the same hash.
        package var hasSameCertificate = true
    }

    /// How the proxy terminates TLS.
    package struct Legs: Sendable, Hashable {
        /// How the proxy treats TLS and SASL.
        package var strategy: Strategy
        /// The TLS version on the client leg, as in the protocol; nil without TLS.
        package var clientTLS: UInt16?
        /// The TLS version on the server leg.
        package var serverTLS: UInt16
        /// Whether the certificates of both legs are the same, or have the same hash.
        package var hasSameCertificate = true
    }

    /// The outcome of a login.
    package enum Outcome: Sendable, Hashable {
        /// Channel binding is no obstacle.
        case works
        /// The standard requires one side to refuse the login. Some servers accept it nevertheless (``isRisk``).
        case fails(LoginCause)
        /// The outcome depends on this condition, which xmpptap cannot know.
        case depends(String)

        /// The name of the case: `works`, `fails` or `depends`.
        var name: String {
            switch self {
            case .works: "works"
            case .fails: "fails"
            case .depends: "depends"
            }
        }
    }

    /// The outcome, if both sides follow the standard.
    package let outcome: Outcome
    /// The reason for the outcome, as a human-readable clause.
    package let reason: String
    /// How the proxy treats TLS and SASL.
    package let strategy: Strategy

    /// The cause of the failure; nil if the login does not have to fail.
    package var cause: LoginCause? {
        guard case .fails(let cause) = outcome else { return nil }
        return cause
    }

    /// Whether some servers accept the login although the standard requires them to refuse it: for the flag `y`,
    /// ejabberd 23.01 accepts and Prosody 0.12 refuses. A wrong binding or signature always fails if the server
    /// compares it.
    package var isRisk: Bool { cause == .bindingDenied }

    /// Creates the forecast of a login under a strategy.
    package init(_ login: Login, _ strategy: Strategy) {
        self.strategy = strategy
        (outcome, reason) = Self.judge(login, strategy)
    }

    private typealias Judgement = (Outcome, String)

    private static func judge(_ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .passthrough { return (.works, "TLS is end to end") }
        let mechanism = SASLMechanism(login.mechanism)
        switch mechanism {
        case .external: return external(strategy)
        case .hashedToken: return token(login, strategy)
        case .plain, .oauth:
            guard strategy == .strip else { return (.works, "\(login.mechanism) has no channel binding") }
            return (
                .works,
                "\(login.mechanism) has no channel binding; a client that remembers a stronger mechanism may refuse it"
            )
        case .scram: return scram(login, strategy)
        case .anonymous, .digestMD5, .other: return (.works, "\(login.mechanism) has no channel binding")
        }
    }

    // MARK: SCRAM

    private static func scram(_ login: Login, _ strategy: Strategy) -> Judgement {
        // xmpptap signs the list and version that it sends itself, and each leg has a separate channel binding.
        if strategy == .accounts { return (.works, "xmpptap performs the login itself on each leg") }
        if login.signsTLSVersion, let client = login.clientTLS, let server = login.serverTLS, client != server {
            return (
                .fails(.tlsVersionAltered),
                "the server signs \(ClientHello.name(ofVersion: server)), but the client uses "
                    + ClientHello.name(ofVersion: client)
            )
        }
        if login.signsMechanisms, strategy == .strip || login.isListReduced {
            return (
                .fails(.mechanismsAltered),
                "the server signs its list of mechanisms, and the client receives a shorter one"
            )
        }
        switch login.flag {
        case .none?: return (.works, "the client does not use channel binding")
        case .unsupportedByServer: return denied(login, strategy)
        case .bound(let type): return bound(type, login, strategy)
        case nil: return undecided(login, strategy)
        }
    }

    private static func denied(_ login: Login, _ strategy: Strategy) -> Judgement {
        guard login.serverBinds else { return (.works, "neither the server nor the client uses channel binding") }
        return (
            .fails(.bindingDenied),
            strategy == .strip
                ? "the -PLUS mechanisms are removed, and the client says that there are none (gs2 flag y)"
                : "the client says that the server offers no channel binding (gs2 flag y), but it does"
        )
    }

    private static func bound(_ type: String, _ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .strip {
            return (
                .fails(.bindingDenied),
                "the -PLUS mechanisms are removed, and the client says that there are none (gs2 flag y)"
            )
        }
        if strategy == .clear {
            return (.fails(.bindingMismatch), "the client uses \(type), but it has no TLS connection to xmpptap")
        }
        guard type == "tls-server-end-point" else {
            return (.fails(.bindingMismatch), "\(type) differs between the two TLS connections")
        }
        switch strategy {
        case .cooperating: return (.works, "the server uses xmpptap's certificate for channel binding")
        case .serverCertificate where login.hasSameCertificate:
            return (.works, "\(type) is the same on both connections: they have the same certificate")
        case .serverCertificate, .minted, .passthrough, .accounts, .strip, .clear:
            return (
                .fails(.bindingMismatch), "\(type) depends on the server's certificate, and the client sees another one"
            )
        }
    }

    /// Returns the forecast before the client's first message.
    private static func undecided(_ login: Login, _ strategy: Strategy) -> Judgement {
        guard login.serverBinds else { return (.works, "the server offers no channel binding") }
        if strategy == .clear {
            return (.works, "the client has no TLS connection to xmpptap that it could bind to")
        }
        if let bindings = login.bindings, !bindings.contains(where: { Self.types.contains($0) }) {
            return (
                .depends("whether the client continues without channel binding"),
                "the server offers only unknown types (\(bindings.joined(separator: ", ")))"
            )
        }
        if strategy == .strip {
            return (
                .depends("whether the client supports channel binding: if so, it sends the gs2 flag y and is refused"),
                "the -PLUS mechanisms are removed from the offer"
            )
        }
        let works = strategy == .minted ? [] : ["tls-server-end-point"]
        if let bindings = login.bindings, bindings.allSatisfy({ works.contains($0) }), login.hasSameCertificate {
            return (.works, "tls-server-end-point works through xmpptap")
        }
        return (
            .depends("whether the client supports channel binding: if so, it is refused"),
            "the server offers channel binding, which \(strategy == .minted ? "cannot" : "may not") work through xmpptap"
        )
    }

    /// The standard channel binding types (RFC 5929, RFC 9266).
    private static let types: Set = ["tls-exporter", "tls-server-end-point", "tls-unique"]

    // MARK: Others

    private static func external(_ strategy: Strategy) -> Judgement {
        guard strategy != .accounts else {
            return (.works, "xmpptap uses its own client certificate")
        }
        return (
            .depends("whether xmpptap has the client's certificate and key"),
            "EXTERNAL needs the client's TLS certificate, which does not reach the server"
        )
    }

    /// Returns the forecast for a token (XEP-0484): the suffix of the mechanism's name states the channel binding.
    private static func token(_ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .accounts { return (.depends("whether xmpptap issued the token itself"), login.mechanism) }
        switch login.mechanism.split(separator: "-").last {
        case "NONE": return (.works, "the token has no channel binding")
        case "ENDP" where strategy == .cooperating || strategy == .serverCertificate && login.hasSameCertificate:
            return (.works, "the token is bound to the certificate, which is the same on both legs")
        default:
            return (
                .fails(.bindingMismatch),
                "the token is bound to the client's TLS connection; the client discards it and uses its password"
            )
        }
    }
}

extension BindingForecast.Login {
    /// Whether the server offers channel binding.
    fileprivate var serverBinds: Bool { offered.contains { $0.hasSuffix("-PLUS") } }
}

/// Whether servers accept logins that the channel binding standards require them to refuse, as observed in all sessions
/// of a run.
///
/// Domains are stored as hashes with a random seed of this process. Bounded: the least recently used entries are
/// evicted first.
final class BindingObservations: Sendable {
    /// The largest number of stored pairs of domain and cause.
    static let capacity = 2048

    private let table = Mutex(LRUCache<Int, Bool>(capacity: BindingObservations.capacity))

    /// Stores whether a server of `domain` has accepted a login that must fail for this cause.
    func store(_ domain: String, _ cause: LoginCause, accepted: Bool) {
        let key = Self.key(domain, cause)
        table.withLock { table in
            table.update(key, default: accepted) { $0 = accepted }
        }
    }

    /// Whether a server of `domain` last accepted logins with these faults; those that are missing are unknown.
    func outcomes(_ domain: String) -> [LoginCause: Bool] {
        let keys = LoginCause.allCases.map { ($0, Self.key(domain, $0)) }
        return table.withLock { table in
            var outcomes: [LoginCause: Bool] = [:]
            for (cause, key) in keys { outcomes[cause] = table.peek(key) }
            return outcomes
        }
    }

    private static func key(_ domain: String, _ cause: LoginCause) -> Int {
        var hasher = Hasher()
        hasher.combine(Address(domain).comparableBare)
        hasher.combine(cause)
        return hasher.finalize()
    }
}

public import TapDiagnosis
internal import TapRecord

/// What channel binding will come to in a login through a proxy, before the login ends.
///
/// A login by SCRAM can be bound to the TLS connection that it runs in (RFC 5802 §6, RFC 9266), the server can sign the
/// list of mechanisms (XEP-0474) and the version of TLS (XEP-0515). A proxy that ends TLS has two connections: whether
/// the login can work follows from what both ends use and from what the proxy does about it.
public struct BindingForecast: Sendable, Hashable {
    /// What the proxy does.
    public enum Strategy: String, Sendable, Hashable, CaseIterable {
        /// TLS goes through it from end to end.
        case passthrough
        /// It ends TLS with a certificate of its own making.
        case minted
        /// It ends TLS with the server's own certificate and key.
        case serverCertificate = "server-certificate"
        /// The server knows the proxy's certificate and binds to that one.
        case cooperating
        /// It ends the authentication, too, on both sides.
        case accounts
        /// It takes the mechanisms with channel binding out of the offer.
        case strip
        /// It ends TLS towards the server, and the client has none.
        case clear = "client-in-clear"
    }

    /// What the client says of channel binding (RFC 5801 §4).
    public enum Flag: Sendable, Hashable {
        /// `n`: it has none.
        case none
        /// `y`: it has, and believes that the server has not.
        case unsupportedByServer
        /// `p`: it binds, by this type.
        case bound(String)
    }

    /// A login as far as it depends on channel binding.
    public struct Login: Sendable, Hashable {
        /// The mechanism that the client chose.
        public var mechanism: String
        /// Its flag; nil where the mechanism has none.
        public var flag: Flag?
        /// The mechanisms that the server offers, as it wrote them.
        public var offered: [String]
        /// The types of channel binding that the server names (XEP-0440), as it wrote them; nil where it names none.
        public var bindings: [String]?
        /// The proxy names fewer types to the client than the server does.
        public var isListReduced = false
        /// The server signs the mechanisms (XEP-0474, `h`) and the client checks.
        public var signsMechanisms = false
        /// The server signs the version of TLS (XEP-0515, `t`) and the client checks.
        public var signsTLSVersion = false
        /// The version of TLS on the client's leg, as in the protocol (0x0304 is TLS 1.3); nil where there is none.
        public var clientTLS: UInt16?
        /// The same on the server's leg.
        public var serverTLS: UInt16?
        /// Both certificates are the same, or the server's hash is that of the proxy's.
        public var hasSameCertificate = true

        /// A login by a mechanism, with a flag.
        public init(
            mechanism: String,
            flag: Flag? = nil,
            offered: [String] = [],
            bindings: [String]? = nil,
            clientTLS: UInt16? = nil,
            serverTLS: UInt16? = nil
        ) {
            self.mechanism = mechanism
            self.flag = flag
            self.offered = offered
            self.bindings = bindings
            self.clientTLS = clientTLS
            self.serverTLS = serverTLS
        }
    }

    /// How a proxy has ended TLS.
    public struct Legs: Sendable, Hashable {
        /// What it does about channel binding.
        public var strategy: Strategy
        /// The version of TLS on the client's leg, as in the protocol; nil where there is none.
        public var clientTLS: UInt16?
        /// The same on the server's leg.
        public var serverTLS: UInt16
        /// Both certificates are the same, or the server's hash is that of the proxy's.
        public var hasSameCertificate: Bool

        /// Legs of these properties.
        public init(_ strategy: Strategy, clientTLS: UInt16?, serverTLS: UInt16, hasSameCertificate: Bool = true) {
            self.strategy = strategy
            self.clientTLS = clientTLS
            self.serverTLS = serverTLS
            self.hasSameCertificate = hasSameCertificate
        }
    }

    /// What will come of it.
    public enum Outcome: Sendable, Hashable {
        /// Channel binding does not stand in the way.
        case works
        /// The standard has one end refuse it. Not every server does (``isRisk``).
        case fails(LoginCause)
        /// It depends on what nobody here can know; on what.
        case depends(String)
    }

    /// What will come of it, if both ends keep to the standard.
    public let outcome: Outcome
    /// Why, as a clause for people.
    public let words: String
    /// What the proxy does.
    public let strategy: Strategy

    /// Why it fails; nil where it need not.
    public var cause: LoginCause? {
        guard case .fails(let cause) = outcome else { return nil }
        return cause
    }

    /// Whether servers are known that let it pass, although the standard has them refuse it: of the flag `y`, ejabberd 23.01
    /// is one and Prosody 0.12 is not. A wrong binding or signature cannot pass where it is compared at all.
    public var isRisk: Bool { cause == .bindingDenied }

    /// The forecast of a login under a strategy.
    public init(_ login: Login, _ strategy: Strategy) {
        self.strategy = strategy
        (outcome, words) = Self.judge(login, strategy)
    }

    private typealias Judgement = (Outcome, String)

    private static func judge(_ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .passthrough { return (.works, "TLS goes from end to end") }
        let mechanism = SASLMechanism(login.mechanism)
        switch mechanism {
        case .external: return external(strategy)
        case .hashedToken: return token(login, strategy)
        case .plain, .oauth:
            guard strategy == .strip else { return (.works, "\(login.mechanism) is not bound to TLS") }
            return (.works, "\(login.mechanism) is not bound to TLS; a client that remembers a stronger one may refuse")
        case .scram: return scram(login, strategy)
        case .anonymous, .digestMD5, .other: return (.works, "\(login.mechanism) is not bound to TLS")
        }
    }

    // MARK: SCRAM

    private static func scram(_ login: Login, _ strategy: Strategy) -> Judgement {
        // The proxy signs its own list and version, and binds each leg by itself.
        if strategy == .accounts { return (.works, "xmpptap authenticates on each leg by itself") }
        if login.signsTLSVersion, let client = login.clientTLS, let server = login.serverTLS, client != server {
            return (
                .fails(.tlsVersionAltered),
                "the server signs \(ClientHello.name(ofVersion: server)), and the client has "
                    + ClientHello.name(ofVersion: client)
            )
        }
        if login.signsMechanisms, strategy == .strip || login.isListReduced {
            return (.fails(.mechanismsAltered), "the server signs what it offers, and the client is offered less")
        }
        switch login.flag {
        case .none?: return (.works, "the client does not bind its login to TLS")
        case .unsupportedByServer: return denied(login, strategy)
        case .bound(let type): return bound(type, login, strategy)
        case nil: return undecided(login, strategy)
        }
    }

    private static func denied(_ login: Login, _ strategy: Strategy) -> Judgement {
        guard login.serverBinds else { return (.works, "neither the server nor this login is bound to TLS") }
        return (
            .fails(.bindingDenied),
            strategy == .strip
                ? "the client does not see the server's -PLUS mechanisms and says so (gs2 flag y)"
                : "the client says that the server has no channel binding (gs2 flag y), and the server offers it"
        )
    }

    private static func bound(_ type: String, _ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .strip {
            return (.fails(.bindingDenied), "without -PLUS the client says that the server has none (gs2 flag y)")
        }
        if strategy == .clear {
            return (.fails(.bindingMismatch), "the client binds by \(type), and has no TLS connection here to bind to")
        }
        guard type == "tls-server-end-point" else {
            return (.fails(.bindingMismatch), "\(type) differs on the two connections that meet here")
        }
        switch strategy {
        case .cooperating: return (.works, "the server binds to the certificate of this proxy")
        case .serverCertificate where login.hasSameCertificate:
            return (.works, "\(type) is the same on both connections, which have one certificate")
        case .serverCertificate, .minted, .passthrough, .accounts, .strip, .clear:
            return (.fails(.bindingMismatch), "\(type) is of the server's certificate, and the client sees another")
        }
    }

    /// The client has not spoken yet.
    private static func undecided(_ login: Login, _ strategy: Strategy) -> Judgement {
        guard login.serverBinds else { return (.works, "the server offers no channel binding") }
        if strategy == .clear {
            return (.works, "the client has no TLS connection here that it could bind its login to")
        }
        if let bindings = login.bindings, !bindings.contains(where: { Self.types.contains($0) }) {
            return (
                .depends("whether the client goes on without channel binding"),
                "the server names only types that nobody here knows (\(bindings.joined(separator: ", ")))"
            )
        }
        if strategy == .strip {
            return (
                .depends("whether the client has channel binding: then it says y and is refused"),
                "the -PLUS mechanisms are taken out of the offer"
            )
        }
        let works = strategy == .minted ? [] : ["tls-server-end-point"]
        if let bindings = login.bindings, bindings.allSatisfy({ works.contains($0) }), login.hasSameCertificate {
            return (.works, "tls-server-end-point works through this proxy")
        }
        return (
            .depends("whether the client has channel binding: then it is refused"),
            "the server offers channel binding, which \(strategy == .minted ? "cannot" : "need not") work through this proxy"
        )
    }

    /// The types that are in use (RFC 5929, RFC 9266).
    private static let types: Set = ["tls-exporter", "tls-server-end-point", "tls-unique"]

    // MARK: Others

    private static func external(_ strategy: Strategy) -> Judgement {
        guard strategy != .accounts else {
            return (.works, "xmpptap shows the server a certificate of its own account")
        }
        return (
            .depends("whether xmpptap has the client's certificate and key (--upstream-certificate)"),
            "EXTERNAL is proved by the client's key in TLS, which does not reach the server"
        )
    }

    /// A token of XEP-0484: the end of the mechanism's name says how it is bound.
    private static func token(_ login: Login, _ strategy: Strategy) -> Judgement {
        if strategy == .accounts { return (.depends("whether xmpptap has minted the token itself"), login.mechanism) }
        switch login.mechanism.split(separator: "-").last {
        case "NONE": return (.works, "the token is not bound to TLS")
        case "ENDP" where strategy == .cooperating || strategy == .serverCertificate && login.hasSameCertificate:
            return (.works, "the token is bound to the certificate, which is the same on both connections")
        default:
            return (
                .fails(.bindingMismatch),
                "the token is bound to the client's connection; the client drops it and uses its password"
            )
        }
    }
}

extension BindingForecast.Login {
    /// Whether the server has channel binding.
    fileprivate var serverBinds: Bool { offered.contains { $0.hasSuffix("-PLUS") } }
}

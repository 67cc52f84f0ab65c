public import XMPPCore

/// The accounts whose logins a proxy ends by itself, and the exchanges that this takes: as a server towards their
/// clients, as a client towards their server. The core declares it and is handed one, as it is with ``Cryptography``.
public protocol Authenticator: Sendable {
    /// The mechanisms that it can do towards clients without their `-PLUS`, the strongest first: SCRAM's, and `PLAIN`.
    var mechanisms: [String] { get }

    /// Whether the proxy shows servers a certificate, by which it can log in with EXTERNAL (XEP-0178).
    var hasCertificate: Bool { get }

    /// Those by which an account, a bare address, can prove itself here; nil where it does not know the account.
    func mechanisms(of account: JID) -> [String]?

    /// Those by which it can log in to the server for an account, without their `-PLUS`, the strongest first.
    ///
    /// - Parameter learned: What the client's own login has given away.
    func means(of account: JID, knowing learned: LearnedSecret?) -> [String]

    /// The server's side, towards a client.
    ///
    /// - Parameters:
    ///   - domain: The domain of the accounts that may log in here.
    ///   - leg: What the client was offered, and the bindings of its connection.
    /// - Returns: Nil where it cannot do the mechanism, or the cryptographic library fails.
    func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)?

    /// The client's side, towards the server.
    ///
    /// - Parameters:
    ///   - binding: What is said of channel binding; a `-PLUS` mechanism binds.
    ///   - learned: What the client's own login has given away.
    /// - Returns: Nil where it does not know the account, or cannot do the mechanism.
    func clientExchange(
        _ mechanism: String,
        _ identity: SASLIdentity,
        domain: String,
        binding: BindingClaim,
        _ offer: LoginOffer,
        knowing learned: LearnedSecret?
    ) -> (any SASLExchange)?
}

/// One leg of a proxy as far as a login depends on it.
public struct LoginLeg: Sendable, Hashable {
    /// What is offered on it. On the client's leg by the proxy.
    public var offer: LoginOffer
    /// The bindings of its TLS connection, the best first; none without TLS.
    public var bindings: [ChannelBinding]

    /// A leg with these bindings.
    public init(offer: LoginOffer, bindings: [ChannelBinding] = []) {
        self.offer = offer
        self.bindings = bindings
    }
}

/// A leg's TLS connection, as the driver knows it.
public struct SecuredLeg: Sendable, Hashable {
    /// The version of TLS, as in the protocol.
    public var version: UInt16
    /// Its bindings, the best first: `tls-exporter`, `tls-unique`, `tls-server-end-point`, as far as they are defined on it.
    public var bindings: [ChannelBinding]

    /// A connection of these properties.
    public init(version: UInt16, bindings: [ChannelBinding]) {
        self.version = version
        self.bindings = bindings
    }
}

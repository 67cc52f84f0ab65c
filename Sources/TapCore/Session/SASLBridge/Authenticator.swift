package import XMPPCore

/// The accounts whose logins the proxy performs itself, and their SASL exchanges: as a server for the client, as a client
/// for the server. The core declares the protocol; the caller passes an implementation, as with ``Cryptography``.
package protocol Authenticator: Sendable {
    /// The mechanisms that it supports for clients, without `-PLUS`, the strongest first: SCRAM and `PLAIN`.
    var mechanisms: [String] { get }

    /// Whether the proxy has a client certificate for EXTERNAL (XEP-0178).
    var hasCertificate: Bool { get }

    /// The mechanisms with which an account, a bare JID, can authenticate to the proxy; nil for an unknown account.
    func mechanisms(of account: JID) -> [String]?

    /// The mechanisms with which the proxy can log in to the server for an account, without `-PLUS`, the strongest first.
    ///
    /// - Parameter learned: The secret that the client's own login revealed.
    func means(of account: JID, knowing learned: LearnedSecret?) -> [String]

    /// The server side of an exchange with a client.
    ///
    /// - Parameters:
    ///   - domain: The domain of the accounts that may log in.
    ///   - leg: The offer to the client, and its connection's channel bindings.
    /// - Returns: Nil if the mechanism is not supported, or the cryptographic library fails.
    func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)?

    /// The client side of an exchange with the server.
    ///
    /// - Parameters:
    ///   - binding: The channel binding to send; a `-PLUS` mechanism uses it.
    ///   - learned: The secret that the client's own login revealed.
    /// - Returns: Nil for an unknown account or an unsupported mechanism.
    func clientExchange(
        _ mechanism: String,
        _ identity: SASLIdentity,
        domain: String,
        binding: BindingClaim,
        _ offer: LoginOffer,
        knowing learned: LearnedSecret?
    ) -> (any SASLExchange)?
}

/// The properties of a leg that a login depends on.
package struct LoginLeg: Sendable, Hashable {
    /// The mechanisms offered on it; on the client leg, by the proxy.
    package var offer: LoginOffer
    /// The channel bindings of its TLS connection, the best first; empty without TLS.
    package var bindings: [ChannelBinding]

    /// A leg with these bindings.
    package init(offer: LoginOffer, bindings: [ChannelBinding] = []) {
        self.offer = offer
        self.bindings = bindings
    }
}

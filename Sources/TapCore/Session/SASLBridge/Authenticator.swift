package import XMPPCore

/// The accounts whose logins xmpptap performs itself, and their SASL exchanges: on the client leg as a server, on the
/// server leg as a client. The core declares only the protocol; the caller passes an implementation, as with
/// ``Cryptography``.
package protocol Authenticator: Sendable {
    /// The mechanisms that xmpptap supports for clients, without `-PLUS`, strongest first: SCRAM mechanisms and
    /// `PLAIN`.
    var mechanisms: [String] { get }

    /// Whether xmpptap has a client certificate for EXTERNAL (XEP-0178).
    var hasCertificate: Bool { get }

    /// Returns the mechanisms with which an account can authenticate to xmpptap; nil for an unknown account. `account`
    /// is a bare JID.
    func mechanisms(of account: JID) -> [String]?

    /// Returns the mechanisms with which xmpptap can log in to the server for an account, without `-PLUS`, strongest
    /// first.
    ///
    /// - Parameter learned: The secret that the client's own login revealed.
    func means(of account: JID, knowing learned: LearnedSecret?) -> [String]

    /// Creates the server side of an exchange with a client.
    ///
    /// - Parameters:
    ///   - domain: The domain of the accounts that may log in.
    ///   - leg: The offer to the client, and the channel bindings of its connection.
    /// - Returns: Nil if the mechanism is not supported, or the cryptographic library fails.
    func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)?

    /// Creates the client side of an exchange with the server.
    ///
    /// - Parameters:
    ///   - binding: The channel binding to send, which a `-PLUS` mechanism requires.
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
    /// The login offer on the leg; xmpptap makes the offer on the client leg.
    package var offer: LoginOffer
    /// The channel bindings of the leg's TLS connection, best first; empty without TLS.
    package var bindings: [ChannelBinding]

    /// Creates a description of a leg.
    package init(offer: LoginOffer, bindings: [ChannelBinding] = []) {
        self.offer = offer
        self.bindings = bindings
    }
}

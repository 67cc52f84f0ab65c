internal import TapCore
package import TapSecurity
internal import XMPPCore

/// Takes the place of the ``ServerDirectory`` for logins and everything behind them. Belongs to the server's event loop.
///
/// It sends by ``ServerDirectory/send(_:to:)``; outside of its methods, call ``ServerState/settle()`` afterwards.
protocol ServerResponder: AnyObject {
    /// The server begins.
    func attach(to directory: ServerDirectory, _ state: ServerState)
    /// The server's side of a mechanism of ``ServerSettings/mechanisms``; nil if the cryptographic library fails.
    func exchange(_ mechanism: String) -> (any SASLExchange)?
    /// The stream features for a client that has logged in.
    func features(of account: JID) -> [UInt8]
    /// A client was refused, or its stream ended with an error.
    func refused(_ refusal: ServerRefusal)
    /// Binds a connection to a resource and gives its full address.
    func bind(_ connection: ConnectionID, to account: JID, resource: String?) throws(StanzaError) -> JID
    /// The client knows its full address now.
    func opened(_ connection: ConnectionID)
    /// Takes a stanza whose `from` was checked, or another element.
    func handle(_ element: Element, from sender: ServerSender)
    /// Resumes a session that lost its connection (XEP-0198), and returns its full address and the answer; nil if it
    /// cannot.
    ///
    /// - Parameter request: The client's `<resume/>`.
    func resume(_ connection: ConnectionID, _ request: Element, of account: JID) -> (jid: JID, answer: [UInt8])?
    /// Enables stream management for a client that asks for it along with its login (XEP-0386).
    ///
    /// - Returns: The answer; nil if there is none.
    func enable(_ request: Element, for connection: ConnectionID) -> [UInt8]?
    /// The connection is gone.
    ///
    /// - Parameter isLost: The stream was not closed before.
    func unbind(_ connection: ConnectionID, isLost: Bool)
    /// The server shuts down, and all connections are gone.
    func stop()
}

/// The reason why a client's login or stream failed.
package enum ServerRefusal: Sendable, Hashable {
    /// The client ended TLS, or did not speak it; most often it does not trust the certificate.
    case tls(TLSFault)
    /// A login, with the condition of SASL.
    case login(condition: String)
    /// The stream ended with this error, whose text says more.
    case stream(condition: String, text: String?)
}

internal import TapCore
package import TapSecurity
internal import XMPPCore

/// Replaces the ``ServerDirectory`` for logins and everything after them. Used on the server's event loop only.
///
/// It sends with ``ServerDirectory/send(_:to:)``. If it does so outside the methods of this protocol, it has to call
/// ``ServerState/performPending()`` afterwards.
protocol ServerResponder: AnyObject {
    /// Called once when the server starts.
    func attach(to directory: ServerDirectory, _ state: ServerState)
    /// Returns the server's side of a mechanism in ``ServerSettings/mechanisms``; nil if the cryptographic library
    /// fails.
    func exchange(_ mechanism: String) -> (any SASLExchange)?
    /// Returns the stream features for a client that has logged in.
    func features(of account: JID) -> [UInt8]
    /// Called when a login is refused, or a stream is closed with an error.
    func refused(_ refusal: ServerRefusal)
    /// Binds a connection to a resource, and returns its full JID.
    func bind(_ connection: ConnectionID, to account: JID, resource: String?) throws(StanzaError) -> JID
    /// Called when the answer with the client's full JID has been sent.
    func opened(_ connection: ConnectionID)
    /// Handles a stanza whose `from` has been checked, or another element.
    func handle(_ element: Element, from sender: ServerSender)
    /// Resumes a session that lost its connection (XEP-0198), and returns its full JID and the answer; nil if it cannot
    /// be resumed.
    ///
    /// - Parameter request: The client's `<resume/>`.
    func resume(_ connection: ConnectionID, _ request: Element, of account: JID) -> (jid: JID, answer: [UInt8])?
    /// Enables stream management for a client that requests it during its SASL2 login (XEP-0386).
    ///
    /// - Returns: The answer; nil if stream management cannot be enabled.
    func enable(_ request: Element, for connection: ConnectionID) -> [UInt8]?
    /// Called when a connection has ended.
    ///
    /// - Parameter isLost: Whether the connection ended without closing its stream.
    func unbind(_ connection: ConnectionID, isLost: Bool)
    /// Called when the server shuts down and all streams are closed.
    func stop()
}

/// The reason why a client's login or stream failed.
package enum ServerRefusal: Sendable, Hashable {
    /// TLS failed; most often the client does not trust the certificate.
    case tls(TLSFault)
    /// The login failed, with this SASL condition.
    case login(condition: String)
    /// The stream was closed with this error and text.
    case stream(condition: String, text: String?)
    /// A request for a WebSocket was refused; with the reason, as a clause.
    case web(String)
}

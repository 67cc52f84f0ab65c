internal import TapCore
internal import XMPPCore

/// Takes the place of the ``ServerDirectory`` for logins and everything behind them. Belongs to the server's event loop.
///
/// What it sends goes through ``ServerDirectory/send(_:to:)``; outside of its methods ``ServerState/settle()`` follows.
protocol ServerResponder: AnyObject {
    /// The server begins.
    func attach(to directory: ServerDirectory, _ state: ServerState)
    /// The server's side of a mechanism of ``ServerSettings/mechanisms``; nil if the cryptographic library fails.
    func exchange(_ mechanism: String) -> (any SASLExchange)?
    /// The stream features for a client that has logged in.
    func features(of account: JID) -> [UInt8]
    /// Binds a connection to a resource and gives its full address.
    func bind(_ connection: ConnectionID, to account: JID, resource: String?) throws(StanzaError) -> JID
    /// The client knows its full address now.
    func opened(_ connection: ConnectionID)
    /// Takes a stanza whose `from` was checked, or another element.
    func handle(_ element: Element, from sender: ServerSender)
    /// Has a connection go on with a session that lost its own (XEP-0198), and gives its full address; nil if it cannot.
    ///
    /// - Parameter request: The client's `<resume/>`.
    func resume(_ connection: ConnectionID, _ request: Element, of account: JID) -> JID?
    /// The connection is gone.
    ///
    /// - Parameter isLost: The stream was not closed before.
    func unbind(_ connection: ConnectionID, isLost: Bool)
    /// The server goes down, and all connections are gone.
    func stop()
}

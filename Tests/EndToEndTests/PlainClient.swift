import Foundation
import TapTestKit

/// A client that does only what the test tells it to do.
struct PlainClient {
    let socket: PlainSocket
    let account: Account

    /// Logs in with SASL PLAIN without TLS, binds a resource, requests the roster, and sends available presence.
    ///
    /// - Parameter resource: The requested resource; nil lets the server choose.
    init(_ account: Account, _ tap: Tap, resource: String? = nil) async throws {
        try await self.init(account, port: tap.port, resource: resource)
    }

    /// Logs in at a port on 127.0.0.1; see ``init(_:_:resource:)``.
    init(_ account: Account, port: UInt16, resource: String? = nil) async throws {
        self.account = account
        socket = try PlainSocket(port: port)
        try await socket.openStream(to: account.domain)
        let secret = Data("\0\(account.user)\0\(account.password)".utf8).base64EncodedString()
        try await socket.write("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>")
        try await socket.read(until: "<success")
        // After the restart, the features offer resource binding.
        try await socket.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
                + "to='\(account.domain)' version='1.0'>"
        )
        try await socket.read(until: "urn:ietf:params:xml:ns:xmpp-bind")
        let wish = resource.map { "<resource>\($0)</resource>" } ?? ""
        try await socket.write(
            "<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\(wish)</bind></iq>"
        )
        try await socket.read(until: "</jid>")
        try await socket.write("<iq type='get' id='roster'><query xmlns='jabber:iq:roster'/></iq>")
        try await socket.read(until: "jabber:iq:roster")
        try await socket.write("<presence/>")
    }

    func presence(_ type: String, to other: Account) async throws {
        try await socket.write("<presence type='\(type)' to='\(other.jid)'/>")
    }

    /// Waits for a presence of the given type from a contact.
    func expect(_ type: String) async throws { try await socket.read(until: "type='\(type)'") }

    func leave() async throws {
        try await socket.write("</stream:stream>")
        try await socket.read()
    }
}

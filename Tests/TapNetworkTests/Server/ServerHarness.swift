import TapRecord
import TapSecurity
import Testing
import XMPPCore

@testable import TapNetwork

/// The core of the built-in server, with clients that send XML text; without sockets.
final class ServerHarness {
    private var core: ServerCore
    private var received: [ConnectionID: String] = [:]
    private(set) var closed: Set<ConnectionID> = []

    static let header = """
        <?xml version='1.0'?><stream:stream xmlns='jabber:client' \
        xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>
        """

    init(_ change: (inout ServerSettings) -> Void = { _ in }) throws {
        var settings = ServerSettings(
            accounts: [.init(name: "romeo", password: "wherefore"), .init(name: "juliet", password: "balcony")],
            softwareVersion: "1"
        )
        change(&settings)
        core = try ServerCore(settings: settings, cryptography: OpenSSLCryptography())
    }

    /// A client of the server.
    struct Client {
        let harness: ServerHarness
        let connection: ConnectionID

        /// Sends XML; returns the data that the client has received since the last call.
        @discardableResult
        func send(_ xml: String) -> String {
            harness.perform(harness.core.receive(Array(xml.utf8).span, from: connection))
            return heard
        }

        /// The data that the client has received since the last call.
        var heard: String { harness.received.removeValue(forKey: connection) ?? "" }

        var isClosed: Bool { harness.closed.contains(connection) }

        /// Loses the connection.
        func drop() { harness.perform(harness.core.disconnected(connection)) }
    }

    func connect() -> Client { Client(harness: self, connection: core.connect()) }

    func shutDown() { perform(core.shutDown()) }

    /// Logs in a client with PLAIN and binds a resource; earlier output is discarded.
    func login(_ name: String, _ password: String? = nil, resource: String, online: Bool = true) -> Client {
        let password = password ?? (name == "romeo" ? "wherefore" : "balcony")
        let client = connect()
        client.send(Self.header)
        let message = Base64.encode(Array("\0\(name)\0\(password)".utf8))
        #expect(
            client.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(message)</auth>")
                == "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
        )
        client.send(Self.header)
        let answer = client.send(
            """
            <iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
            <resource>\(resource)</resource></bind></iq>
            """
        )
        #expect(answer.contains("<jid>\(name)@localhost/\(resource)</jid>"))
        if online { client.send("<presence/>") }
        return client
    }

    private func perform(_ commands: [ServerCommand]) {
        for command in commands {
            switch command {
            case .write(let connection, let bytes):
                #expect(!closed.contains(connection), "written to after it was closed")
                received[connection, default: ""] += String(decoding: bytes, as: UTF8.self)
            case .startTLS: break
            case .close(let connection): #expect(closed.insert(connection).inserted, "closed twice")
            case .terminate: Issue.record("a driver never sees this")
            }
        }
    }
}

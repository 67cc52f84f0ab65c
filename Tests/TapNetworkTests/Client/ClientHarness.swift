import TapCore
import TapRecord
import TapSecurity
import XMPPCore

@testable import TapNetwork

/// A ``ClientSession`` without a socket; collects its output and its events.
final class ClientHarness {
    private var session: ClientSession
    /// Data sent since the last call.
    private var sent = ""
    private(set) var offered: StreamFeatures?
    private(set) var bound: String?
    private(set) var fault: ClientFault?
    private(set) var wantsTLS = false
    private(set) var isAuthenticated = false
    private(set) var hasEnded = false

    static let header =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        + "id='1' from='example.org' version='1.0'>"
    static let startTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
    static let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
    static let cryptography = OpenSSLCryptography()

    init(_ security: ClientSession.Security, channel: ClientChannel = ClientChannel()) throws {
        session = ClientSession(
            account: try JID(parsing: "juliet@example.org"),
            resource: "balcony",
            security: security,
            cryptography: Self.cryptography,
            parser: StanzaParser()
        )
        session.start(channel)
        drain()
    }

    static func features(_ content: String) -> String { "<stream:features>\(content)</stream:features>" }

    static func mechanisms(_ names: String...) -> String {
        "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
            + names.map { "<mechanism>\($0)</mechanism>" }.joined() + "</mechanisms>"
    }

    static func mechanisms2(_ names: String..., inline: String = "") -> String {
        "<authentication xmlns='urn:xmpp:sasl:2'>" + names.map { "<mechanism>\($0)</mechanism>" }.joined()
            + (inline.isEmpty ? "" : "<inline>\(inline)</inline>") + "</authentication>"
    }

    static func bindings(_ types: String...) -> String {
        "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>"
            + types.map { "<channel-binding type='\($0)'/>" }.joined() + "</sasl-channel-binding>"
    }

    /// The properties of a TLS 1.3 connection, with a channel binding of each type.
    static var secure: ClientChannel {
        var channel = ClientChannel()
        channel.tlsVersion = 0x0304
        channel.bindings = [
            ChannelBinding(type: "tls-exporter", data: [1, 2, 3]),
            ChannelBinding(type: "tls-server-end-point", data: [4, 5, 6]),
        ]
        return channel
    }

    /// Passes data from the server to the client; returns the client's answer.
    @discardableResult
    func hear(_ xml: String) -> String {
        session.receive(Array(xml.utf8).span)
        return drain()
    }

    @discardableResult
    func secured(_ channel: ClientChannel = ClientHarness.secure) -> String {
        session.secured(channel)
        return drain()
    }

    /// Logs in with the strongest offered mechanism; returns the client's first message.
    @discardableResult
    func login(password: String = "wherefore") -> String {
        guard let offered, let choice = LoginChoice.strongest(of: offered, on: session.channel) else {
            return "nothing"
        }
        session.authenticate(choice, password: password, nonce: "client")
        return drain()
    }

    @discardableResult
    func expire() -> String {
        session.expired()
        return drain()
    }

    @discardableResult
    func lose() -> String {
        session.disconnected("the connection is gone")
        return drain()
    }

    @discardableResult
    func close() -> String {
        session.close()
        return drain()
    }

    @discardableResult
    private func drain() -> String {
        while let action = session.next() {
            switch action {
            case .send(let bytes): sent += String(decoding: bytes, as: UTF8.self)
            case .beginTLS: wantsTLS = true
            case .offered(let features): offered = features
            case .authenticated: isAuthenticated = true
            case .bound(let jid, _): bound = jid.description
            case .failed(let fault): self.fault = fault
            case .ended: hasEnded = true
            case .announced, .element, .resumed, .registered: break
            }
        }
        defer { sent = "" }
        return sent
    }

    // MARK: The server's side of SASL

    /// Creates the server's side of a SCRAM login, for juliet's password.
    static func server(
        _ mechanism: SCRAMMechanism,
        bindings: [ChannelBinding] = [],
        password: String = "wherefore"
    ) throws -> SCRAMServer {
        let kept = try SCRAMCredentials(
            mechanism.algorithm,
            password: password,
            salt: Array("0123456789abcdef".utf8),
            cryptography: cryptography
        )
        return SCRAMServer(
            mechanism,
            settings: .init(nonce: "server", channelBindings: bindings, decoyKey: [1]) { $0 == "juliet" ? kept : nil },
            cryptography: cryptography
        )
    }

    /// Returns the decoded base64 text of an element in the client's output.
    static func message(in xml: String, _ element: String) -> [UInt8] {
        guard let start = xml.firstRange(of: "<\(element)"),
            let open = xml[start.upperBound...].firstIndex(of: ">"),
            let end = xml[open...].firstIndex(of: "<")
        else { return [] }
        return Base64.decode(String(xml[xml.index(after: open)..<end])) ?? []
    }
}

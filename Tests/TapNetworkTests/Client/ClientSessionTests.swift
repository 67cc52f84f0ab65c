import TapCore
import TapRecord
import TapSecurity
import Testing
import XMPPCore

@testable import TapNetwork

/// Tests the client of demo and probe with the answers of various servers.
@Suite struct ClientSessionTests {
    private typealias Client = ClientHarness

    private static let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
    private static let sasl2 = "xmlns='urn:xmpp:sasl:2'"

    private func challenge(_ server: inout SCRAMServer, _ message: [UInt8], more: String = "") -> String {
        guard case .send(let bytes) = server.step(message) else { return "" }
        return Base64.encode(bytes + Array(more.utf8))
    }

    private func success(_ server: inout SCRAMServer, _ message: [UInt8]) -> String {
        guard case .done(let bytes?) = server.step(message) else { return "" }
        return Base64.encode(bytes)
    }

    @Test func `A client negotiates STARTTLS, logs in with channel binding, and binds a resource`() throws {
        let client = try Client(.startTLS(isRequired: true))
        #expect(client.hear(Client.header + Client.features(Client.startTLS)).contains("<starttls"))
        client.hear("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        #expect(client.wantsTLS && client.offered == nil)
        #expect(client.secured().contains("to='example.org'"))
        let offer =
            Client.mechanisms("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS")
            + Client.bindings("tls-server-end-point", "tls-exporter")
        client.hear(Client.header + Client.features(offer))
        let begin = client.login()
        #expect(begin.contains("mechanism='SCRAM-SHA-256-PLUS'"))
        var server = try Client.server(
            SCRAMMechanism(.sha256, isPlus: true),
            bindings: Client.secure.bindings
        )
        let first = Client.message(in: begin, "auth")
        #expect(String(decoding: first, as: UTF8.self).hasPrefix("p=tls-exporter,,n=juliet,r="))
        let final = client.hear("<challenge \(Self.sasl)>\(challenge(&server, first))</challenge>")
        let proof = Client.message(in: final, "response")
        let restart = client.hear("<success \(Self.sasl)>\(success(&server, proof))</success>")
        #expect(client.isAuthenticated && restart.contains("<stream:stream "))
        let bind = client.hear(Client.header + Client.features(Client.bind))
        #expect(bind.contains("<resource>balcony</resource>"))
        client.hear(
            "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>juliet@example.org/balcony</jid></bind></iq>"
        )
        #expect(client.bound == "juliet@example.org/balcony")
        #expect(client.close() == "</stream:stream>")
        client.hear("</stream:stream>")
        #expect(client.hasEnded && client.fault == nil)
    }

    @Test(arguments: [true, false]) func `A client prefers SASL2, and binds inline if offered`(isInline: Bool)
        throws
    {
        let client = try Client(.direct, channel: Client.secure)
        let inline = isInline ? "<bind xmlns='urn:xmpp:bind:0'/>" : ""
        client.hear(
            Client.header
                + Client.features(
                    Client.mechanisms("SCRAM-SHA-512") + Client.mechanisms2("SCRAM-SHA-1", inline: inline)
                )
        )
        let begin = client.login()
        #expect(begin.hasPrefix("<authenticate xmlns='urn:xmpp:sasl:2' mechanism='SCRAM-SHA-1'>"))
        #expect(begin.contains("<bind xmlns='urn:xmpp:bind:0'>") == isInline)
        var server = try Client.server(SCRAMMechanism(.sha1))
        let first = Client.message(in: begin, "initial-response")
        let final = client.hear("<challenge \(Self.sasl2)>\(challenge(&server, first))</challenge>")
        let proof = Client.message(in: final, "response")
        let bound = isInline ? "<bound xmlns='urn:xmpp:bind:0'/>" : ""
        let jid = isInline ? "juliet@example.org/xmpptap.1" : "juliet@example.org"
        let next = client.hear(
            "<success \(Self.sasl2)><additional-data>\(success(&server, proof))</additional-data>"
                + "<authorization-identifier>\(jid)</authorization-identifier>\(bound)</success>"
                + Client.features(Client.bind)
        )
        #expect(!next.contains("<stream:stream"))
        if isInline {
            #expect(client.bound == jid)
        } else {
            #expect(next.contains("<resource>balcony</resource>"))
        }
    }

    @Test func `A refused login is reported with its condition and text`() throws {
        let client = try Client(.direct, channel: Client.secure)
        client.hear(Client.header + Client.features(Client.mechanisms("PLAIN")))
        #expect(client.login().contains("mechanism='PLAIN'"))
        let rest = client.hear(
            "<failure \(Self.sasl)><not-authorized/><text xml:lang='en'>Go away</text></failure>"
        )
        #expect(rest == "</stream:stream>")
        let fault = try #require(client.fault)
        #expect(fault.step == .login && fault.code == .refused("not-authorized"))
        #expect(fault.reason == "the server answered not-authorized: Go away")
    }

    @Test func `If the mechanisms differ from the signed list, the client aborts before it sends a proof`() throws {
        let client = try Client(.direct, channel: Client.secure)
        client.hear(Client.header + Client.features(Client.mechanisms("SCRAM-SHA-1")))
        var server = try Client.server(SCRAMMechanism(.sha1))
        let first = Client.message(in: client.login(), "auth")
        let rest = client.hear(
            "<challenge \(Self.sasl)>\(challenge(&server, first, more: ",h=AAAA"))</challenge>"
        )
        #expect(rest == "<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></stream:stream>")
        #expect(client.fault?.code == .altered && !client.isAuthenticated)
    }

    @Test func `A login fails if the server sends no SCRAM signature`() throws {
        let client = try Client(.direct, channel: Client.secure)
        client.hear(Client.header + Client.features(Client.mechanisms("SCRAM-SHA-1")))
        var server = try Client.server(SCRAMMechanism(.sha1))
        let first = Client.message(in: client.login(), "auth")
        client.hear("<challenge \(Self.sasl)>\(challenge(&server, first))</challenge>")
        client.hear("<success \(Self.sasl)/>")
        #expect(client.fault?.code == .unproven && !client.isAuthenticated)
    }

    @Test func `Without STARTTLS, a client fails if it requires TLS, and otherwise sends no password`() throws {
        let strict = try Client(.startTLS(isRequired: true))
        strict.hear(Client.header + Client.features(Client.mechanisms("PLAIN")))
        #expect(strict.fault?.reason == "the server does not offer TLS")
        let lenient = try Client(.startTLS(isRequired: false))
        lenient.hear(Client.header + Client.features(Client.mechanisms("PLAIN")))
        #expect(lenient.offered?.mechanisms == ["PLAIN"])
        // The password must not be sent without TLS.
        #expect(lenient.login() == "nothing")
    }

    @Test func `Stream errors, timeouts and lost connections are reported as faults`() throws {
        let refused = try Client(.direct, channel: Client.secure)
        refused.hear(
            Client.header
                + "<stream:error><host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        )
        #expect(refused.fault?.code == .refused("host-unknown") && refused.fault?.step == .stream)
        let silent = try Client(.direct, channel: Client.secure)
        #expect(silent.expire() == "</stream:stream>")
        #expect(silent.fault?.code == .silent)
        let slow = try Client(.direct, channel: Client.secure)
        slow.hear(Client.header + "<stream:features>")
        #expect(slow.expire() == "</stream:stream>")
        #expect(slow.fault?.code == .incomplete)
        #expect(slow.fault?.reason == "no complete answer in time: 17 bytes of it arrived")
        let gone = try Client(.direct, channel: Client.secure)
        #expect(gone.lose().isEmpty)
        #expect(gone.fault?.code == .broken && gone.fault?.reason == "the connection is gone")
        // If the client requested the end, the way in which it happens is not a fault.
        for end in [Client.expire, Client.lose] {
            let leaving = try Client(.direct, channel: Client.secure)
            leaving.close()
            #expect(end(leaving)().isEmpty)
            #expect(leaving.hasEnded && leaving.fault == nil)
        }
    }

    @Test func `Bytes that are not a stream and unexpected stream headers are faults`() throws {
        for bytes in ["HTTP/1.1 400 Bad Request\r\n\r\n", Client.header + Client.header] {
            let client = try Client(.direct, channel: Client.secure)
            client.hear(bytes)
            #expect(client.fault?.code == .broken, "\(bytes)")
        }
    }
}

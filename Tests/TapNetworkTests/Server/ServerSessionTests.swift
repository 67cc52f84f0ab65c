import TapCore
import TapRecord
import TapSecurity
import Testing

@testable import TapNetwork

/// Tests the server's side of a stream, from the header to the end, without sockets.
@Suite struct ServerSessionTests {
    private let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"

    @Test func `a complete login succeeds step by step`() throws {
        let client = try ServerHarness().connect()
        let opening = client.send(ServerHarness.header)
        #expect(opening.hasPrefix("<?xml version='1.0'?><stream:stream xmlns='jabber:client' "))
        #expect(opening.contains(" from='localhost' version='1.0' xml:lang='en'>"))
        #expect(
            opening.hasSuffix(
                """
                <stream:features><mechanisms xmlns='\(sasl)'><mechanism>SCRAM-SHA-256</mechanism>\
                <mechanism>SCRAM-SHA-1</mechanism><mechanism>PLAIN</mechanism></mechanisms>\
                <register xmlns='http://jabber.org/features/iq-register'/></stream:features>
                """
            )
        )
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        #expect(
            client.send("<auth xmlns='\(sasl)' mechanism='PLAIN'>\(message)</auth>") == "<success xmlns='\(sasl)'/>"
        )
        #expect(
            client.send(ServerHarness.header).hasSuffix(
                """
                <stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\
                <session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session></stream:features>
                """
            )
        )
        #expect(
            client.send("<iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>").hasPrefix(
                """
                <iq type='result' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>romeo@localhost/
                """
            )
        )
        #expect(
            client.send("<iq type='set' id='2'><session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>")
                .hasPrefix("<iq type='result' id='2' to='romeo@localhost/")
        )
        #expect(client.send("</stream:stream>") == "</stream:stream>")
        #expect(client.isClosed)
    }

    @Test(arguments: ["SCRAM-SHA-1", "SCRAM-SHA-256"])
    func `a client logs in with SCRAM`(name: String) throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        var exchange = SCRAMClient(
            try #require(SCRAMMechanism(name: name)),
            identity: .init(authentication: "juliet"),
            secret: .password("balcony"),
            nonce: "abc",
            cryptography: OpenSSLCryptography()
        )
        guard case .send(let first) = exchange.step(nil) else {
            Issue.record("nothing to send")
            return
        }
        let challenge = client.send("<auth xmlns='\(sasl)' mechanism='\(name)'>\(Base64.encode(first))</auth>")
        guard case .send(let final) = exchange.step(payload(challenge, "challenge")) else {
            Issue.record("nothing to send")
            return
        }
        let success = client.send("<response xmlns='\(sasl)'>\(Base64.encode(final))</response>")
        #expect(exchange.step(payload(success, "success")) == .done(nil))
    }

    @Test func `SCRAM gives all spellings of an account's name the same salt`() throws {
        let harness = try ServerHarness()
        func answer(_ name: String) throws -> [Substring] {
            let client = harness.connect()
            client.send(ServerHarness.header)
            let first = Base64.encode(Array("n,,n=\(name),r=abcdefgh".utf8))
            let challenge = client.send("<auth xmlns='\(sasl)' mechanism='SCRAM-SHA-256'>\(first)</auth>")
            let bytes = try #require(payload(challenge, "challenge"))
            return String(decoding: bytes, as: UTF8.self).split(separator: ",").dropFirst().map { $0 }
        }
        for name in ["juliet", "nobody"] {
            let usual = try answer(name)
            #expect(usual.count == 2)
            for spelling in [name.uppercased(), name.prefix(1).uppercased() + name.dropFirst()] {
                #expect(try answer(spelling) == usual)
            }
        }
        #expect(try answer("nobody") != answer("noone"))
    }

    private func payload(_ xml: String, _ name: String) -> [UInt8]? {
        guard xml.hasPrefix("<\(name) xmlns='\(sasl)'>"), xml.hasSuffix("</\(name)>") else { return nil }
        return Base64.decode(String(xml.dropFirst("<\(name) xmlns='\(sasl)'>".count).dropLast("</\(name)>".count)))
    }

    @Test(arguments: [
        ("<auth xmlns='NAMESPACE' mechanism='PLAIN'>AHJvbWVvAHdyb25n</auth>", "not-authorized"),
        ("<auth xmlns='NAMESPACE' mechanism='PLAIN'>?</auth>", "incorrect-encoding"),
        ("<auth xmlns='NAMESPACE' mechanism='PLAIN'>=</auth>", "malformed-request"),
        ("<auth xmlns='NAMESPACE' mechanism='X-NONE'/>", "invalid-mechanism"),
        ("<auth xmlns='NAMESPACE'/>", "invalid-mechanism"),
        ("<auth xmlns='NAMESPACE' mechanism='SCRAM-SHA-256-PLUS'/>", "invalid-mechanism"),
        ("<response xmlns='NAMESPACE'>AA==</response>", "malformed-request"),
        ("<abort xmlns='NAMESPACE'/>", "aborted"),
        // The message is "juliet@localhost" NUL "romeo" NUL "wherefore".
        (
            "<auth xmlns='NAMESPACE' mechanism='PLAIN'>anVsaWV0QGxvY2FsaG9zdAByb21lbwB3aGVyZWZvcmU=</auth>",
            "invalid-authzid"
        ),
    ])
    func `a failed login is answered with its condition, and can be repeated`(xml: String, condition: String) throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        let answer = client.send(xml.replacing("NAMESPACE", with: sasl))
        #expect(answer.hasPrefix("<failure xmlns='\(sasl)'><\(condition)/>"))
        let message = Base64.encode(Array("romeo@localhost\0romeo\0wherefore".utf8))
        let again = client.send("<auth xmlns='\(sasl)' mechanism='PLAIN'>\(message)</auth>")
        #expect(again == "<success xmlns='\(sasl)'/>")
    }

    @Test func `without an initial response, the server sends an empty challenge`() throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        #expect(
            client.send("<auth xmlns='\(sasl)' mechanism='PLAIN'/>") == "<challenge xmlns='\(sasl)'/>"
        )
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        #expect(client.send("<response xmlns='\(sasl)'>\(message)</response>") == "<success xmlns='\(sasl)'/>")
    }

    @Test func `the third failed login ends the stream`() throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        for _ in 0..<2 { #expect(!client.send("<abort xmlns='\(sasl)'/>").contains("stream:error")) }
        let last = client.send("<abort xmlns='\(sasl)'/>")
        #expect(last.hasPrefix("<failure"))
        #expect(last.contains("<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"))
        #expect(last.hasSuffix("</stream:error></stream:stream>"))
        #expect(client.isClosed)
        #expect(client.send("<abort xmlns='\(sasl)'/>") == "")
    }

    @Test(arguments: [
        ("HEADER to='elsewhere' version='1.0'>", "host-unknown"),
        ("HEADER version='1.0'>", "improper-addressing"),
        ("HEADER to='localhost'>", "unsupported-version"),
        ("HEADER to='localhost' version='0.9'>", "unsupported-version"),
        (
            "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' to='localhost'>",
            "invalid-namespace"
        ),
        (
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://example.org/' to='localhost'>",
            "invalid-namespace"
        ),
        ("HEADER to='localhost' version='1.0'><iq type='get' id='1'/>", "not-authorized"),
        ("HEADER to='localhost' version='1.0'><message/>", "not-authorized"),
        ("HEADER to='localhost' version='1.0'>HEADER to='localhost' version='1.0'>", "bad-format"),
        ("HEADER to='localhost' version='1.0'><!-- -->", "restricted-xml"),
        ("HEADER to='localhost' version='1.0'><a></b>", "not-well-formed"),
        ("HEADER to='localhost' version='1.0'><a:b/>", "bad-namespace-prefix"),
        ("HEADER to='localhost' version='1.0'>text", "bad-format"),
        ("GET / HTTP/1.1\r\n", "not-well-formed"),
        ("\u{16}\u{3}\u{1}", "not-well-formed"),
        (
            "HEADER to='localhost' version='1.0'><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            "unsupported-feature"
        ),
    ])
    func `an invalid stream is closed with the fitting stream error`(xml: String, condition: String) throws {
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
        let client = try ServerHarness().connect()
        let answer = client.send(xml.replacing("HEADER", with: header))
        #expect(answer.hasPrefix("<?xml version='1.0'?><stream:stream "))
        #expect(answer.contains("<stream:error><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"))
        #expect(answer.hasSuffix("</stream:stream>"))
        #expect(client.isClosed)
    }

    @Test func `an item beyond the limit is refused early, and the limit is higher after login`() throws {
        let harness = try ServerHarness()
        let stranger = harness.connect()
        stranger.send(ServerHarness.header)
        let padding = String(repeating: "x", count: 80_000)
        #expect(stranger.send("<message><body>\(padding)").contains("<policy-violation"))
        let romeo = harness.login("romeo", resource: "r")
        #expect(romeo.send("<message to='romeo@localhost'><body>\(padding)</body></message>").contains(padding))
    }

    @Test(arguments: ["<message/>", "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>", "<presence/>"])
    func `a stanza before resource binding is refused`(stanza: String) throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        client.send("<auth xmlns='\(sasl)' mechanism='PLAIN'>\(message)</auth>")
        client.send(ServerHarness.header)
        #expect(client.send(stanza).contains("<stream:error><not-authorized"))
    }

    @Test(arguments: [("a/b", true), ("\u{7f}", false), (String(repeating: "r", count: 1024), false)])
    func `the requested resource is bound, or refused if it is invalid`(resource: String, isTaken: Bool) throws {
        let client = try ServerHarness().connect()
        client.send(ServerHarness.header)
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        client.send("<auth xmlns='\(sasl)' mechanism='PLAIN'>\(message)</auth>")
        client.send(ServerHarness.header)
        let answer = client.send(
            "<iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>\(resource)</resource></bind></iq>"
        )
        #expect(answer.contains("romeo@localhost/\(resource)</jid>") == isTaken)
        #expect(answer.contains("<error type='modify'><bad-request") == !isTaken)
    }

    @Test func `a client that binds a resource in use replaces the old one with a conflict`() throws {
        let harness = try ServerHarness()
        let old = harness.login("romeo", resource: "orchard")
        let new = harness.login("romeo", resource: "orchard")
        #expect(old.heard.contains("<stream:error><conflict"))
        #expect(old.isClosed && !new.isClosed)
        #expect(new.send("<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>").contains("type='result'"))
        old.drop()
        #expect(new.send("<message to='romeo@localhost/orchard'/>").contains("<message"))
    }

    @Test func `a stanza with the from of another account ends the stream`() throws {
        let harness = try ServerHarness()
        let romeo = harness.login("romeo", resource: "r")
        #expect(!romeo.send("<message from='romeo@localhost' to='romeo@localhost'/>").contains("stream:error"))
        #expect(!romeo.send("<message from='Romeo@localhost/r' to='romeo@localhost'/>").contains("stream:error"))
        #expect(romeo.send("<message from='juliet@localhost'/>").contains("<stream:error><invalid-from"))
    }

    @Test func `an element that is not a stanza ends an open session`() throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        #expect(romeo.send("<enable xmlns='urn:xmpp:sm:3'/>").contains("<stream:error><unsupported-stanza-type"))
    }

    @Test func `at shutdown, each client gets a stream error`() throws {
        let harness = try ServerHarness()
        let (romeo, stranger) = (harness.login("romeo", resource: "r"), harness.connect())
        harness.shutDown()
        for client in [romeo, stranger] {
            #expect(client.heard.contains("<stream:error><system-shutdown"))
            #expect(client.isClosed)
        }
    }

    @Test func `the answers do not depend on how the input is split`() throws {
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        let script = """
            \(ServerHarness.header)<auth xmlns='\(sasl)' mechanism='PLAIN'>\(message)</auth>\
            \(ServerHarness.header)<iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
            <resource>r</resource></bind></iq><presence/> <message to='romeo@localhost'><body>🙂</body></message></stream:stream>
            """
        func story(_ pieces: [String]) throws -> String {
            let client = try ServerHarness().connect()
            return pieces.map { client.send($0) }.joined().replacing(#/ id='[0-9a-f]{16}'/#, with: "")
        }
        let whole = try story([script])
        #expect(whole.contains("🙂") && whole.hasSuffix("</stream:stream>"))
        #expect(try story(script.unicodeScalars.map { String($0) }) == whole)
    }

    @Test func `clear data after <starttls/> is discarded, and TLS is not offered again`() throws {
        let server = try ServerHarness { $0.offersStartTLS = true }
        let client = server.connect()
        #expect(client.send(ServerHarness.header).contains("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"))
        let message = Base64.encode(Array("\0romeo\0wherefore".utf8))
        let answer = client.send(
            "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
                + "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(message)</auth>"
        )
        #expect(answer == "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        let inside = client.send(ServerHarness.header)
        #expect(inside.contains("<mechanisms") && !inside.contains("starttls"))
        #expect(client.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>").contains("unsupported-feature"))
        #expect(client.isClosed)
    }
}

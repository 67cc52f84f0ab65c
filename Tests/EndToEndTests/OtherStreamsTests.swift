import Foundation
import TapTestKit
import Testing

/// Tests of streams other than those of today's clients, with real servers: a component, two servers with each other, a
/// client that logs in without SASL (XEP-0078), and a client that registers an account.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
)
struct OtherStreamsTests {
    private func explain(_ tap: Tap) async throws -> String {
        let binary = try await XMPPTapBinary.run(["explain", tap.capture])
        #expect(binary.ending == .exited(0), "\(binary.error)")
        return binary.output
    }

    /// Checks that none of the proxy's files contains one of these texts.
    private func checkNothing(of secrets: String..., in tap: Tap) {
        for path in [tap.json, tap.text, tap.story, tap.capture] {
            let text = Tap.read(path)
            #expect(!text.isEmpty)
            for secret in secrets { #expect(!text.contains(secret), "\(secret) stands in \(path)") }
        }
    }

    /// Runs a component that connects to the server through the proxy.
    private func runComponent(_ tap: Tap, secret: String) throws -> ToolProcess {
        try ToolProcess(
            "/usr/bin/python3",
            [
                URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "../TapTestKit/Clients/slixmpp_component.py").standardized.path,
                "--domain", "echo.localhost", "--secret", secret, "--port", "\(tap.ports[1])",
            ]
        )
    }

    @Test(
        "A component's handshake is logged, and one with a wrong secret is refused",
        .enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing")
    )
    func component() async throws {
        let port = try FreePort.next()
        let server = try await ProsodyServer(
            settings: "component_ports = { \(port) }; component_interfaces = { \"127.0.0.1\" }",
            host: "Component \"echo.localhost\"\ncomponent_secret = \"sesame-open-1704\""
        )
        let tap = try await Tap(upstream: server.port, port)
        let wrong = try runComponent(tap, secret: "sesame-shut-1704")
        #expect(try await wrong.ending() == .exited(1))
        let echo = try runComponent(tap, secret: "sesame-open-1704")
        _ = try await echo.line(of: .standardOutput) { $0.contains("ready") }
        let juliet = try await PlainClient(.juliet, tap, resource: "balcony")
        try await juliet.socket.write(
            "<message to='fool@echo.localhost' type='chat' id='e1'><body>Anon!</body></message>"
        )
        try await juliet.socket.read(until: "<body>Anon!</body>")
        #expect(try await echo.ending() == .exited(0))
        try await juliet.leave()
        try await tap.stop()
        try await server.stop()

        let story = Tap.read(tap.story)
        for words in [
            "of a component", "SEND handshake component sent its handshake (hash of stream ID and secret); ",
            "RECV handshake success, server accepted the handshake; ",
            "ready as echo.localhost: component accepted",
            "RECV message chat juliet@localhost/balcony → fool@echo.localhost",
            "error [1] RECV error closes the stream, handshake, failure; ",
        ] { #expect(story.contains(words), "no \(words) in\n\(story)") }
        let told = try await explain(tap)
        #expect(told.contains(/handshake +[^ ].* ok\n/), "\(told)")
        #expect(told.contains(/handshake .*failed, not-authorized/), "\(told)")
        checkNothing(of: "sesame-open-1704", in: tap)
        let shakes = try tap.records().filter { $0.name == "handshake" && $0.direction == "send" }
        #expect(shakes.count == 2)
        #expect(shakes.allSatisfy { $0.xml?.contains("[redacted:handshake#") == true })
    }

    @Test func `Two servers verify their domains by dialback and relay a message`() async throws {
        // A domain that is an IP address needs no name server.
        let network = "127.\(Int.random(in: 64...126)).\(Int.random(in: 1...254))"
        let users = [1, 2].map { Account("u\($0)", domain: "\(network).\($0)", password: "Verona-1597") }
        let ports = [try FreePort.next(), try FreePort.next()]
        var servers: [ProsodyServer] = []
        for (user, port) in zip(users, ports) {
            servers.append(
                try await ProsodyServer(serverPort: port, accounts: [user])
            )
        }
        let tap = try await Tap(
            listen: zip(users, ports).map { "\($0.domain):5269=127.0.0.1:\($1)" }
                + servers.map { "127.0.0.1:0=127.0.0.1:\($0.port)" }
        )
        var clients: [PlainClient] = []
        for (user, port) in zip(users, tap.ports[2...]) {
            clients.append(try await PlainClient(user, port: port, resource: "r"))
        }
        try await clients[0].socket.write("<message to='\(users[1].jid)/r' id='m1'><body>Ho!</body></message>")
        try await clients[1].socket.read(until: "<body>Ho!</body>")
        try await clients[1].socket.write(
            "<message to='\(users[0].jid)/r' id='m2'><body>Who is there?</body></message>"
        )
        try await clients[0].socket.read(until: "<body>Who is there?</body>")
        for client in clients { try await client.leave() }
        try await tap.stop()
        for server in servers { try await server.stop() }

        let story = Tap.read(tap.story)
        for words in [
            "of a server", "dialback key for its domain", "requests verification of a dialback key",
            "the dialback key is valid", "dialback succeeded: the domain is verified",
            "ready as \(users[0].domain): dialback succeeded",
            "ready as \(users[1].domain): dialback succeeded",
            "SEND message \(users[0].jid)/r → \(users[1].jid)/r id=m1 body 3 B",
        ] { #expect(story.contains(words), "no \(words) in\n\(story)") }
        try Documentation.check(.dialback, sessionsOf: story)
        let told = try await explain(tap)
        #expect(told.contains(/dialback +[^ ].* ok \(from/), "\(told)")
        #expect(told.contains(/dialback-verify +[^ ].* ok \(from/), "\(told)")
        let keys = try tap.records().filter { $0.payload == nil && ($0.name == "result" || $0.name == "verify") }
        #expect(keys.count { $0.type == nil } >= 4)
        #expect(keys.filter { $0.type == nil }.allSatisfy { $0.xml?.contains("[redacted:dialback-key#") == true })
        try tap.records().checkNoByteIsMissing()
    }

    @Test func `Legacy authentication works, and a wrong password is refused`() async throws {
        let server = try await ProsodyServer(host: "modules_enabled = { \"legacyauth\" }")
        let tap = try await Tap(upstream: server.port)
        for (password, answer) in [("Wrong-1597", "type='error'"), (Account.juliet.password, "id='a2' type='result'")] {
            let socket = try PlainSocket(port: tap.port)
            try await socket.write(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost'>"
            )
            try await socket.read(until: "id='")
            try await socket.write(
                "<iq type='get' id='a1' to='localhost'><query xmlns='jabber:iq:auth'><username>juliet</username>"
                    + "</query></iq>"
            )
            try await socket.read(until: "jabber:iq:auth")
            try await socket.write(
                "<iq type='set' id='a2' to='localhost'><query xmlns='jabber:iq:auth'><username>juliet</username>"
                    + "<password>\(password)</password><resource>globe</resource></query></iq>"
            )
            try await socket.read(until: answer.hasPrefix("id=") ? "id='a2'" : answer)
            try await socket.write("</stream:stream>")
            try await socket.read()
        }
        try await tap.stop()
        try await server.stop()
        let story = Tap.read(tap.story)
        #expect(story.contains("before version 1.0"), "\(story)")
        #expect(story.contains("ready as juliet@localhost/globe: logged in by legacy authentication"), "\(story)")
        #expect(story.contains(/error \[1 ~juliet\] RECV iq error .*not-authorized/), "\(story)")
        let told = try await explain(tap)
        #expect(told.contains(/legacy-auth .*failed, not-authorized.*method password/), "\(told)")
        #expect(told.contains(/legacy-auth .*ok \(phase login; method password/), "\(told)")
        checkNothing(of: Account.juliet.password, "Wrong-1597", in: tap)
    }

    @Test func `A client registers an account in-band, and a taken name is refused with conflict`() async throws {
        let server = try await ProsodyServer(
            host: "modules_enabled = { \"register_ibr\" }\nallow_registration = true"
        )
        let tap = try await Tap(upstream: server.port)
        for answer in ["type='result'", "<conflict "] {
            let socket = try PlainSocket(port: tap.port)
            try await socket.openStream()
            try await socket.write("<iq type='get' id='r1'><query xmlns='jabber:iq:register'/></iq>")
            try await socket.read(until: "<instructions>")
            try await socket.write(
                "<iq type='set' id='r2'><query xmlns='jabber:iq:register'><username>nurse</username>"
                    + "<password>Angelica-1597</password></query></iq>"
            )
            try await socket.read(until: "id='r2'")
            try await socket.read(until: answer)
            try await socket.write("</stream:stream>")
            try await socket.read()
        }
        _ = try await PlainClient(Account("nurse", password: "Angelica-1597"), tap).leave()
        try await tap.stop()
        try await server.stop()
        let story = Tap.read(tap.story)
        #expect(story.contains("ok: registers, or changes the password: nurse"), "\(story)")
        let told = try await explain(tap)
        #expect(told.contains(/register .*ok \(phase form/), "\(told)")
        #expect(told.contains(/register .*ok \(phase submit/), "\(told)")
        #expect(told.contains(/register .*failed, conflict.* \(phase submit/), "\(told)")
        checkNothing(of: "Angelica-1597", in: tap)
    }

    @Test func `A login with SASL2 and Bind2 is recorded`() async throws {
        let listener = try RawListener()
        let tap = try await Tap(upstream: listener.port)
        // The proxy checks at startup whether the server accepts connections.
        try await listener.accept().close()
        let client = try RawConnection(port: tap.port)
        let server = try await listener.accept()
        let stream =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0' "
        // The client knows the features from an earlier session, and sends the authentication with the stream header
        // (XEP-0388 §2.1).
        try await client.write(
            stream + "to='example.org'><authenticate xmlns='urn:xmpp:sasl:2' mechanism='SCRAM-SHA-1'>"
                + "<initial-response>\(Self.messages[0])</initial-response><user-agent id='d4565fa7-4d72-4749'>"
                + "<software>Balcony</software><device>Juliet's looking-glass</device></user-agent>"
                + "<bind xmlns='urn:xmpp:bind:0'><tag>balcony</tag></bind></authenticate>"
        )
        try await server.read(through: "</authenticate>")
        try await server.write(
            stream + "from='example.org' id='s1'><stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>"
                + "SCRAM-SHA-1</mechanism><inline><bind xmlns='urn:xmpp:bind:0'/></inline></authentication>"
                + "</stream:features><challenge xmlns='urn:xmpp:sasl:2'>\(Self.messages[1])</challenge>"
        )
        try await client.read(through: "</challenge>")
        try await client.write("<response xmlns='urn:xmpp:sasl:2'>\(Self.messages[2])</response>")
        try await server.read(through: "</response>")
        try await server.write(
            "<success xmlns='urn:xmpp:sasl:2'><additional-data>\(Self.messages[3])</additional-data>"
                + "<authorization-identifier>juliet@example.org/balcony.1</authorization-identifier>"
                + "<bound xmlns='urn:xmpp:bind:0'/></success><stream:features/>"
        )
        try await client.read(through: "<stream:features/>")
        try await client.write("<presence/></stream:stream>")
        try await server.read(through: "</stream:stream>")
        try await server.write("</stream:stream>")
        try await client.read(through: "</stream:stream>")
        client.close()
        server.close()
        try await tap.stop()

        let story = Tap.read(tap.story)
        for words in [
            "SEND authenticate SCRAM-SHA-1, ", ", software Balcony, inline bind; ",
            "RECV success SCRAM-SHA-1, ", ", authorization identifier juliet@example.org/balcony.1, ",
            "ready as juliet@example.org/balcony.1: bound",
        ] { #expect(story.contains(words), "no \(words) in\n\(story)") }
        let told = try await explain(tap)
        #expect(told.contains(/sasl2 .*ok \(phase challenge; mechanism SCRAM-SHA-1\)/), "\(told)")
        #expect(told.contains(/bind2 .*ok\n/), "\(told)")
        for secret in Self.messages + ["d4565fa7-4d72-4749", "looking-glass"] { checkNothing(of: secret, in: tap) }
    }

    /// The messages of a SCRAM-SHA-1 login (RFC 5802 §5).
    private static let messages = [
        "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ].map { Data($0.utf8).base64EncodedString() }
}

import Foundation
import TapRecord
import TapTestKit
import Testing

/// WebSocket (RFC 7395) through the proxy, with Prosody and with Strophe, the library of web clients.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap not built"),
    .enabled(if: TestProgram.areInstalled(.prosody, .strophe, .openssl), "Prosody, Strophe or openssl is missing")
)
struct WebSocketTests {
    private static func handshake(_ port: UInt16, path: String = "/xmpp-websocket") -> String {
        "GET \(path)?token=s3cr3t HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Protocol: xmpp\r\nCookie: id=c00kie\r\n\r\n"
    }

    private static func answer(_ port: UInt16, _ request: String) async throws -> String {
        let connection = try RawConnection(port: port)
        try await connection.write(request)
        let (bytes, _) = try await connection.read(within: .seconds(20)) { bytes in
            String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Strophe logs in and chats; a stanza is dropped, one injected; the capture gives the same story again")
    func chats() async throws {
        let server = try await WebSocketScene()
        let folder = try TemporaryFolder()
        let rules = try folder.write("KIND: message\nINSPECT: body#~=secret\nDROP.\n", to: "quiet.pfw")
        let control = folder.path(of: "control.sock")
        let tap = try await Tap(
            listen: [],
            arguments: [
                "--listen-ws", "127.0.0.1:0", "--upstream", server.url, "--rules", rules, "--control", control,
            ]
        )
        let port = try await tap.binary.port()
        let client = try WebSocketScene.strophe(
            "ws://127.0.0.1:\(port)/xmpp-websocket",
            sending: "hello\na secret\nagain\n"
        )
        _ = try await client.line(of: .standardOutput, within: .seconds(60)) { $0 == "message again" }
        let injected = try await XMPPTapBinary.run([
            "inject", "--control", control, "--jid", Account.juliet.jid, "--to", "client", "--message", "end", "--peer",
            Account.romeo.jid,
        ])
        #expect(injected.ending == .exited(0), "\(injected.error)")
        #expect(try await client.ending() == .exited(0), "\(client.text(of: .standardError))")
        let said = client.lines(of: .standardOutput)
        #expect(said.contains("roster"))
        #expect(said.filter { $0.hasPrefix("message") } == ["message hello", "message again", "message end"])
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()

        let records = try tap.records()
        #expect(records.contains { $0.code == "websocket-opened" })
        #expect(records.contains { $0.kind == "stream-open" && $0.xml?.hasPrefix("<open ") == true })
        #expect(records.contains { $0.action == "dropped" && $0.xml?.contains("a secret") == true })
        #expect(records.contains { $0.origin == "tap" && $0.xml?.contains("xmlns='jabber:client'") == true })
        #expect(!records.contains { $0.level == "error" || $0.level == "warn" })
        let explained = try await XMPPTapBinary.run(["explain", tap.capture])
        #expect(explained.output.contains("ready after"))
        let same = try await XMPPTapBinary.run(["diff", tap.capture, tap.capture])
        #expect(same.output.contains("no differences"))
        try await server.prosody.stop()
    }

    @Test("TLS is ended on both legs with the authority that clients of --listen trust")
    func endsTLS() async throws {
        let certificate = try await TestCertificate()
        let server = try await WebSocketScene(certificate)
        let authority = try await InterceptAuthority()
        let tap = try await Tap(
            listen: [],
            arguments: authority.arguments + [
                "--listen-ws", "127.0.0.1:0", "--upstream", server.secureURL, "--upstream-ca", certificate.certificate,
            ]
        )
        let port = try await tap.binary.port()
        let trusted = try await XMPPTapBinary.run(["ca", "export"] + authority.arguments.suffix(2))
        let folder = try TemporaryFolder()
        let file = try folder.write(trusted.output, to: "ca.pem")
        let client = try WebSocketScene.strophe(
            "wss://localhost:\(port)/xmpp-websocket",
            trusting: file,
            sending: "end\n"
        )
        #expect(try await client.ending(within: .seconds(60)) == .exited(0), "\(client.text(of: .standardOutput))")
        #expect(client.lines(of: .standardOutput).contains("message end"))
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        let secured = try tap.records().filter { $0.code == "tls-opened" }
        #expect(secured.count == 2)
        try await server.prosody.stop()
    }

    @Test(
        "A handshake in any pieces succeeds, one that is cut anywhere harms no other session, and its secrets are not logged"
    )
    func readsHandshakes() async throws {
        let server = try await WebSocketScene()
        let tap = try await Tap(listen: [], arguments: ["--listen-ws", "127.0.0.1:0", "--upstream", server.url])
        let port = try await tap.binary.port()
        let request = Self.handshake(port)
        #expect(try await Self.answer(port, request).hasPrefix("HTTP/1.1 101 "))
        let connection = try RawConnection(port: port)
        for byte in request.utf8 { try await connection.write([byte]) }
        let (bytes, _) = try await connection.read(within: .seconds(20)) { $0.count > 12 }
        #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
        for length in stride(from: 0, to: request.utf8.count, by: 3) {
            let cut = try RawConnection(port: port)
            try await cut.write(Array(request.utf8.prefix(length)))
            cut.close()
        }
        for (change, by, status) in [
            ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8", 426), ("GET ", "POST ", 400),
            ("HTTP/1.1", "HTTP/1.0", 400), ("Connection: Upgrade", "Connection: close", 400),
            ("dGhlIHNhbXBsZSBub25jZQ==", "short", 400), ("Host: 127.0.0.1", "Host: evil.example", 421),
            ("Cookie:", "Origin: https://evil.example\r\nCookie:", 403),
            ("Cookie:", "Origin: http://127.0.0.1:\(port)\r\nCookie:", 101),
            ("Sec-WebSocket-Protocol: xmpp\r\n", "", 501),
            ("GET ", "G\u{1}T ", 400),
        ] {
            let answer = try await Self.answer(port, request.replacing(change, with: by))
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(by): \(answer.prefix(60))")
        }
        let early = try RawConnection(port: port)
        let frame = WebSocketConversation.frame(WebSocketConversation.open, from: .send)
        try await early.write(Array(request.utf8) + frame)
        try await early.read(through: "<open ")
        let tls = try await Self.answer(port, "\u{16}\u{3}\u{1}\0\u{5}hello\r\n\r\n")
        #expect(tls.isEmpty)
        #expect(try await Self.answer(port, request).hasPrefix("HTTP/1.1 101 "))
        try await tap.stop()
        let log = Tap.read(tap.json)
        #expect(!log.contains("s3cr3t") && !log.contains("c00kie"))
        #expect(
            log.contains("websocket-malformed") && log.contains("web-refused") && log.contains("websocket-refused")
                && log.contains("tls-off")
        )
        try await server.prosody.stop()
    }

    @Test("Other requests are relayed to the server and counted, BOSH is a session, and host-meta is answered")
    func relaysRequests() async throws {
        let server = try await WebSocketScene()
        let tap = try await Tap(
            listen: [],
            arguments: ["--listen-ws", "127.0.0.1:0/chat", "--upstream", server.url, "--host-meta"]
        )
        let port = try await tap.binary.port()
        let host = "Host: 127.0.0.1:\(port)\r\n"
        let page = try await Self.answer(port, "GET /xmpp-websocket HTTP/1.1\r\n\(host)\r\n")
        #expect(page.hasPrefix("HTTP/1.1 200 "))
        let body =
            "<body xmlns='http://jabber.org/protocol/httpbind' rid='1' to='localhost' wait='1' hold='1' ver='1.6'/>"
        let bosh = try await Self.answer(
            port,
            "POST /http-bind HTTP/1.1\r\n\(host)Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
        )
        #expect(bosh.hasPrefix("HTTP/1.1 200 "))
        let cut = "POST /http-bind HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n5\r\n<body\r\nWRONG\r\n"
        #expect(try await Self.answer(port, cut).hasPrefix("HTTP/1.1 400 "))
        let early = "GET /.well-known/host-meta HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\nWRONG\r\n"
        #expect(try await Self.answer(port, early).hasPrefix("HTTP/1.1 200 "))
        let meta = try await Self.answer(
            port,
            "GET /.well-known/host-meta.json HTTP/1.1\r\n\(host)Connection: close\r\n\r\n"
        )
        #expect(meta.contains("ws://127.0.0.1:\(port)/chat") && meta.contains("Access-Control-Allow-Origin: *"))
        #expect(try await Self.answer(port, Self.handshake(port)).hasPrefix("HTTP/1.1 404 "))
        #expect(try await Self.answer(port, Self.handshake(port, path: "/chat")).hasPrefix("HTTP/1.1 101 "))
        try await tap.stop()
        let records = try tap.records()
        #expect(records.filter { $0.code == "bosh-opened" }.count == 1)
        #expect(records.filter { $0.code == "http-request" }.count == 3)
        try await server.prosody.stop()
    }

    @Test("A PROXY header names the client of a web listener; a connection without one is closed")
    func readsProxyHeaders() async throws {
        let server = try await WebSocketScene()
        let tap = try await Tap(
            listen: [],
            arguments: [
                "--listen-ws", "127.0.0.1:0", "--upstream", server.url, "--proxy-protocol", "accept",
            ]
        )
        let port = try await tap.binary.port()
        let header = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 5280\r\n"
        #expect(try await Self.answer(port, header + Self.handshake(port)).hasPrefix("HTTP/1.1 101 "))
        let page = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        #expect(try await Self.answer(port, header + page).hasPrefix("HTTP/1.1 421 "))
        #expect(try await Self.answer(port, Self.handshake(port)).isEmpty)
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        let records = try tap.records()
        #expect(records.first { $0.code == "session-began" }?.remote == "192.0.2.1:40000")
        #expect(records.first { $0.code == "web-refused" }?.remote == "192.0.2.1:40000")
        #expect(records.contains { $0.code == "bad-proxy-header" })
        try await server.prosody.stop()
    }

    @Test("A server that cannot be reached gives HTTP 502 and the reason")
    func reportsUnreachableServers() async throws {
        let closed = try FreePort.next()
        let tap = try await Tap(
            listen: [],
            arguments: ["--listen-ws", "127.0.0.1:0", "--upstream", "ws://127.0.0.1:\(closed)"]
        )
        let port = try await tap.binary.port()
        #expect(try await Self.answer(port, Self.handshake(port)).hasPrefix("HTTP/1.1 502 "))
        #expect(try await Self.answer(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix("HTTP/1.1 502 "))
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        #expect(try tap.records().contains { $0.code == "server-unreachable" })
    }
}

import Foundation
import TapRecord
import TapTestKit
import Testing

/// `serve --listen-ws`, with Strophe and with the clients of `replay`.
@Suite(
    .serialized,
    .timeLimit(.minutes(5)),
    .enabled(
        if: TestProgram.areInstalled(.prosody, .slixmpp, .strophe, .openssl),
        "Prosody, slixmpp, Strophe or openssl is missing"
    )
)
struct WebSocketServeTests {
    private struct Scene {
        let folder: TemporaryFolder
        let capture: String
        let accounts: String
        /// The path of the authority's certificate.
        let trusted: String
        private let authority: [String]

        init() async throws {
            folder = try TemporaryFolder()
            capture = try await RecordedTalk.record("end", options: [], into: folder)
            authority = ["--ca-dir", folder.path(of: "ca")]
            _ = try await XMPPTapBinary.run(["ca", "create", "--domain", Account.juliet.domain] + authority)
            let exported = try await XMPPTapBinary.run(["ca", "export"] + authority)
            trusted = try folder.write(exported.output, to: "ca.pem")
            for account in [Account.juliet, .romeo] { try folder.write("\(account.password)\n", to: account.user) }
            accounts = try folder.write(
                [Account.juliet, .romeo].map { "\($0.jid) \($0.user)\n" }.joined(),
                to: "accounts"
            )
        }

        func serve(_ arguments: [String]) async throws -> (binary: XMPPTapBinary, port: UInt16) {
            let binary = try XMPPTapBinary(["serve", capture, "--fail-on", "none"] + authority + arguments)
            return (binary, try await binary.port())
        }
    }

    @Test("Strophe logs in and gets what the recorded client got, in clear text and with TLS")
    func servesStrophe() async throws {
        let scene = try await Scene()
        let (binary, port) = try await scene.serve(["--listen-ws", "127.0.0.1:0/ws"])
        for url in ["ws://127.0.0.1:\(port)/ws", "wss://localhost:\(port)/ws"] {
            let client = try WebSocketScene.strophe(url, trusting: scene.trusted, sending: "")
            #expect(
                try await client.ending(within: .seconds(60)) == .exited(0),
                "\(url): \(client.text(of: .standardOutput))\(client.text(of: .standardError))"
            )
            let said = client.lines(of: .standardOutput)
            #expect(said.contains("roster") && said.contains("message end"), "\(said)")
        }
        #expect(try await binary.process.terminate() == .exited(0))
        let said = binary.process.text(of: .standardOutput)
        #expect(said.contains("logged in and gets session") && said.contains("is gone"), "\(said)")
        #expect(!said.contains("lost its connection"), "\(said)")
    }

    @Test("A recording is replayed to its own server over ws and wss without differences, with SCRAM")
    func servesReplays() async throws {
        let scene = try await Scene()
        let (binary, port) = try await scene.serve(["--listen-ws", "127.0.0.1:0", "--accounts", scene.accounts])
        // The server plays each session separately: it does not copy ids from one to the other.
        let own = try scene.folder.write("\(Account.juliet.jid) \(Account.juliet.user)\n", to: "own")
        for url in ["ws://localhost:\(port)/any", "wss://localhost:\(port)/any"] {
            let (ending, output, error) = try await XMPPTapBinary.run([
                "replay", scene.capture, "--session", "1", "--to", url, "--accounts", own, "--upstream-ca",
                scene.trusted,
            ])
            #expect(ending == .exited(0), "\(url): \(output)\(error)")
        }
        #expect(try await binary.process.terminate() == .exited(0))
        #expect(!binary.process.text(of: .standardOutput).contains("not recorded"))
    }

    @Test("A recording of a WebSocket is replayed over TCP and WebSocket, and served to the same client")
    func playsRecordingsOfWebSockets() async throws {
        let server = try await WebSocketScene()
        let tap = try await Tap(listen: [], arguments: ["--listen-ws", "127.0.0.1:0", "--upstream", server.url])
        let lines = "hello\nend\n"
        let recorded = try WebSocketScene.strophe(
            "ws://127.0.0.1:\(try await tap.binary.port())/xmpp-websocket",
            sending: lines
        )
        #expect(try await recorded.ending(within: .seconds(60)) == .exited(0), "\(recorded.lines(of: .standardOutput))")
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        let folder = try TemporaryFolder()
        let capture = try folder.write(Tap.read(tap.capture), to: "web.xtap")
        try folder.write("\(Account.juliet.password)\n", to: "password")
        let accounts = try folder.write("\(Account.juliet.jid) password\n", to: "accounts")
        for address in [server.url, "localhost:\(server.prosody.port)"] {
            let (ending, output, error) = try await XMPPTapBinary.run([
                "replay", capture, "--to", address, "--accounts", accounts,
            ])
            #expect(ending == .exited(0), "\(address): \(output)\(error)")
        }
        try await server.prosody.stop()
        let binary = try XMPPTapBinary([
            "serve", capture, "--listen-ws", "127.0.0.1:0", "--ca-dir", folder.path(of: "ca"),
        ])
        let client = try WebSocketScene.strophe("ws://127.0.0.1:\(try await binary.port())/ws", sending: lines)
        #expect(try await client.ending(within: .seconds(60)) == .exited(0), "\(client.text(of: .standardOutput))")
        #expect(client.lines(of: .standardOutput).contains("message hello"))
        #expect(try await binary.process.terminate() == .exited(0), "\(binary.process.text(of: .standardOutput))")
    }

    private static func handshake(_ port: UInt16) -> String {
        "GET /ws?token=s3cr3t HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Protocol: xmpp\r\nCookie: id=c00kie\r\n\r\n"
    }

    private static func answer(_ port: UInt16, _ request: String, closing: Bool = false) async throws -> String {
        let connection = try RawConnection(port: port)
        try await connection.write(request)
        if closing { connection.finish() }
        let (bytes, _) = try await connection.read(within: .seconds(60)) { bytes in
            String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Other requests are refused with a status, malformed frames end the stream, and no secret is printed")
    func refusesRequests() async throws {
        let scene = try await Scene()
        let (binary, port) = try await scene.serve(["--listen-ws", "127.0.0.1:0/ws"])
        let request = Self.handshake(port)
        for (change, by, status) in [
            ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8", 426), ("GET ", "POST ", 400),
            ("HTTP/1.1", "HTTP/1.0", 400), ("Connection: Upgrade", "Connection: close", 400),
            ("dGhlIHNhbXBsZSBub25jZQ==", "short", 400), ("Host: 127.0.0.1", "Host: evil.example", 421),
            ("Cookie:", "Origin: https://evil.example\r\nCookie:", 403),
            ("Cookie:", "Origin: http://127.0.0.1:\(port)\r\nCookie:", 403),
            ("Sec-WebSocket-Protocol: xmpp\r\n", "", 501), ("GET ", "G\u{1}T ", 400),
            ("Upgrade: websocket\r\n", "", 426), ("/ws", "/other", 404),
            ("Upgrade: websocket\r\nConnection: Upgrade\r\n", "Transfer-Encoding: chunked\r\n", 426),
        ] {
            let answer = try await Self.answer(port, request.replacing(change, with: by))
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(by): \(answer.prefix(60))")
        }
        let ended = try await Self.answer(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", closing: true)
        #expect(ended.isEmpty || ended.hasPrefix("HTTP/1.1 404 "), "\(ended)")
        for length in 0..<request.utf8.count {
            let cut = try RawConnection(port: port)
            try await cut.write(Array(request.utf8.prefix(length)))
            cut.close()
        }
        for (frames, expected) in [
            (Self.frame("<a/><b/>"), "stream:error"), (Self.frame(" "), "stream:error"),
            (Self.frame("<stream:stream>"), "stream:error"), (Self.frame("<a"), "stream:error"),
            ([0x82, 0x84, 0, 0, 0, 0] + Array("<a/>".utf8), "\u{88}\u{2}"),
            (WebSocketConversation.frame("<a/>", from: .recv), "\u{88}\u{2}"),
            ([0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], "\u{88}\u{2}"),
            ([0x81, 0xFF, 0, 0, 0, 0, 0, 2, 0, 0, 1, 2, 3, 4], "\u{88}\u{2}"),
            ([0x89, 0x81, 0, 0, 0, 0, 0x70], "\u{8A}\u{1}p"),
        ] {
            let connection = try RawConnection(port: port)
            // The first frame may come with the request.
            try await connection.write(Array(request.utf8) + Self.frame(WebSocketConversation.open) + frames)
            let wanted = expected.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
            let (bytes, end) = try await connection.read(within: .seconds(60)) { $0.firstRange(of: wanted) != nil }
            #expect(end == .enough, "\(expected): \(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(try await Self.answer(port, request).hasPrefix("HTTP/1.1 101 "))
        #expect(try await binary.process.terminate() == .exited(0))
        let said = binary.process.text(of: .standardOutput) + binary.process.text(of: .standardError)
        #expect(!said.contains("s3cr3t") && !said.contains("c00kie"))
        #expect(said.contains("refused a request for a WebSocket: HTTP 403: pages of"))
    }

    private static func frame(_ text: String) -> [UInt8] {
        WebSocketConversation.frame(text.replacing("example.org", with: "localhost"), from: .send)
    }
}

import NIOCore
import NIOPosix
import TapCore
import TapRecord
import TapReplay
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

@testable import TapNetwork

/// The client of WebSockets, with servers that answer the handshake and send frames as a test wants.
@Suite(.timeLimit(.minutes(3)))
struct WebSocketClientTests {
    private static let answer =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n"

    /// Accepts a connection, and returns it with its request and the value of `Sec-WebSocket-Accept` for it.
    private static func accept(_ listener: RawListener) async throws -> (RawConnection, request: String, key: String) {
        let connection = try await listener.accept(within: .seconds(60))
        let request = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
        let name = "Sec-WebSocket-Key: "
        guard let start = request.firstRange(of: name) else { throw KitError("no key in: \(request)") }
        let key = try WebSocketHandshake.accept(key: String(request[start.upperBound...].prefix { !$0.isNewline })) {
            bytes throws in try OpenSSLCryptography().digest(.sha1, of: bytes)
        }
        return (connection, request, key)
    }

    private static func server(_ listener: RawListener, timeout: TimeAmount) throws -> LiveServer {
        try LiveServer(
            try ServerAddress("ws://127.0.0.1:\(listener.port)/chat?token=s3cr3t"),
            timeout: timeout,
            cryptography: OpenSSLCryptography()
        )
    }

    /// Lets a client log in, and returns the reason why its session ended.
    private static func end(
        timeout: TimeAmount = .seconds(60),
        _ serve: @escaping @Sendable (RawListener) async throws -> Void
    ) async throws -> String {
        let listener = try RawListener()
        let server = try server(listener, timeout: timeout)
        let account = LiveAccount(jid: try JID(parsing: Account.juliet.jid), password: Account.juliet.password)
        async let served: Void = serve(listener)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let reason = await withCheckedContinuation { (continuation: CheckedContinuation<String, Never>) in
            loop.execute {
                var client: LiveClient?
                client = LiveClient(account, at: server, parser: StanzaParser(), on: loop) { event in
                    guard case .ended(let end) = event else { return }
                    client = nil
                    continuation.resume(returning: end.reason)
                }
                client?.connect()
            }
        }
        try await served
        return reason
    }

    @Test("The request is that of RFC 7395, with the query of the URL and no Origin")
    func requests() async throws {
        let reason = try await Self.end { listener in
            let (connection, request, _) = try await Self.accept(listener)
            #expect(request.hasPrefix("GET /chat?token=s3cr3t HTTP/1.1\r\n"))
            #expect(request.contains("Host: 127.0.0.1:\(listener.port)\r\n"))
            #expect(request.contains("Sec-WebSocket-Protocol: xmpp\r\n"))
            #expect(request.contains("Sec-WebSocket-Version: 13\r\n"))
            #expect(!request.contains("Origin") && !request.contains("Sec-WebSocket-Extensions"))
            connection.close()
        }
        #expect(reason.contains("/chat: the server ended the handshake"), "\(reason)")
        #expect(!reason.contains("s3cr3t"))
    }

    @Test("An answer that is cut at any byte ends the handshake, and one in any pieces does not")
    func readsAnswers() async throws {
        let count = Self.answer.utf8.count - "ACCEPT".count + 28
        for length in 0..<count {
            let reason = try await Self.end { listener in
                let (connection, _, key) = try await Self.accept(listener)
                try await connection.write(Array(Self.answer.replacing("ACCEPT", with: key).utf8.prefix(length)))
                connection.finish()
                _ = try await connection.drain()
            }
            #expect(reason.contains("the server ended the handshake"), "\(length): \(reason)")
        }
        let whole = try await Self.end { listener in
            let (connection, _, key) = try await Self.accept(listener)
            for byte in Self.answer.replacing("ACCEPT", with: key).utf8 { try await connection.write([byte]) }
            try await connection.write(WebSocketConversation.frame("", .close, from: .recv))
            _ = try await connection.drain()
        }
        #expect(whole.contains("closed the WebSocket without a code"), "\(whole)")
    }

    @Test(
        "A refused or wrong handshake is reported with its status, cause and remedy",
        arguments: [
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP 404; check the path and the host of the URL"),
            ("HTTP/1.1 400 Bad Request\r\n\r\nclear text to TLS", "HTTP 400; a proxy"),
            ("HTTP/1.1 501 No\r\nContent-Length: 0\r\n\r\n", "HTTP 501; it may require the subprotocol"),
            ("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", "HTTP 502; a proxy in front"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP 200; the path of the URL is that of a page"),
            (
                "HTTP/1.1 302 Found\r\nLocation: https://a.example/x?token=s3cr3t\r\nContent-Length: 0\r\n\r\n",
                "redirects to https://a.example/x; use"
            ),
            (
                "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
                "HTTP 403; it may not accept the Origin"
            ),
            (Self.answer.replacing("ACCEPT", with: "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), "does not fit the key"),
            (Self.answer.replacing("Upgrade: websocket", with: "Upgrade: other"), "without the fields Upgrade"),
            (Self.answer.replacing("\r\n\r\n", with: "\r\nSec-WebSocket-Extensions: x\r\n\r\n"), "an extension"),
            (Self.answer.replacing("l: xmpp", with: "l: chat"), "another subprotocol than xmpp: check the path"),
            (Self.answer.replacing("Sec-WebSocket-Protocol: xmpp\r\n", with: ""), "did not select the subprotocol"),
            ("<stream:error/>", "its answer is not HTTP"),
            ("HTTP/9.9 101\r\n\r\n", "its answer is not HTTP"),
            ("\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{16}", "its answer is not HTTP"),
        ]
    )
    func refuses(answer: String, expected: String) async throws {
        let reason = try await Self.end { listener in
            let (connection, _, key) = try await Self.accept(listener)
            try await connection.write(answer.replacing("ACCEPT", with: key))
            // The end of the connection ends a body; it does not end an answer that opens the WebSocket.
            if !answer.contains(" 101 ") { connection.finish() }
            _ = try await connection.drain()
        }
        #expect(reason.hasPrefix("ws://127.0.0.1:") && reason.contains(expected), "\(reason)")
        #expect(!reason.contains("s3cr3t"))
    }

    @Test("A header without an end, a body without an end, and silence end the handshake")
    func limitsAnswers() async throws {
        let header = try await Self.end { listener in
            let (connection, _, _) = try await Self.accept(listener)
            try await connection.write("HTTP/1.1 101 Switching Protocols\r\n")
            let line = Array("X-Long: \(String(repeating: "x", count: 1000))\r\n".utf8)
            while try await connection.write(line, patience: .seconds(60)) == line.count {}
        }
        #expect(header.contains("longer than 80 KiB"), "\(header)")
        let body = try await Self.end(timeout: .seconds(1)) { listener in
            let (connection, _, _) = try await Self.accept(listener)
            try await connection.write("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n")
            let piece = Array("400\r\n\(String(repeating: "x", count: 1024))\r\n".utf8)
            while try await connection.write(piece, patience: .seconds(60)) == piece.count {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(body.contains("HTTP 404"), "\(body)")
        let silence = try await Self.end(timeout: .seconds(1)) { listener in
            let (connection, _, _) = try await Self.accept(listener)
            _ = try await connection.drain()
        }
        #expect(silence.contains("no answer to the request for a WebSocket within 1 s"), "\(silence)")
    }

    /// A frame with a header that a test has made.
    private static func frame(_ header: [UInt8], _ text: String = "") -> [UInt8] { header + Array(text.utf8) }

    @Test(
        "Frames and messages that are not allowed end the session with a reason and a close frame",
        arguments: [
            (frame([0x81, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0]), "2^63 bytes or more", 1002),
            (frame([0x81, 0x7F, 0, 0, 0, 1, 0, 0, 0, 0]), "a message longer than", 1009),
            (frame([0x81, 0x84, 1, 2, 3, 4, 0, 0, 0, 0]), "a frame of the server with a mask", 1002),
            (frame([0xC1, 1], "x"), "a reserved bit", 1002),
            (frame([0x83, 0]), "a reserved opcode", 1002),
            (frame([0x80, 0]), "no message is unfinished", 1002),
            (frame([0x09, 0]), "a fragmented control frame", 1002),
            (frame([0x82, 4], "<a/>"), "a binary message", 1003),
            (frame([0x81, 1, 0xFF]), "invalid UTF-8", 1007),
            (frame([0x81, 8], "<a/><b/>"), "malformed WebSocket message", 1000),
            (frame([0x81, 1], " "), "malformed WebSocket message", 1000),
            (frame([0x81, 3], "<a>"), "malformed WebSocket message", 1000),
            (frame([0x88, 2, 3, 0xE8]), "closed the WebSocket with code 1000 before the stream", 1000),
            (frame([0x88, 5, 3, 0xF0], "bye"), "with code 1008 (bye)", 1008),
        ]
    )
    func endsSessions(frames: [UInt8], expected: String, code: Int) async throws {
        let reason = try await Self.end { listener in
            let (connection, _, key) = try await Self.accept(listener)
            try await connection.write(Self.answer.replacing("ACCEPT", with: key))
            try await connection.write(
                WebSocketConversation.frame(WebSocketConversation.answer, from: .recv)
                    + WebSocketConversation.frame("ping", .ping, from: .recv) + frames
            )
            let (bytes, _) = try await connection.read(within: .seconds(60)) { _ in false }
            let sent = Self.decoded(bytes)
            #expect(sent.texts.first?.hasPrefix("<open ") == true, "\(sent)")
            #expect(sent.pongs == ["ping"] && sent.codes == [code], "\(sent)")
        }
        #expect(reason.contains(expected), "\(reason)")
    }

    @Test("Messages before a close frame are handled, even if they arrive with it")
    func readsLastMessages() async throws {
        let reason = try await Self.end { listener in
            let (connection, _, key) = try await Self.accept(listener)
            let features = "<stream:features xmlns:stream='http://etherx.jabber.org/streams'/>"
            try await connection.write(
                Array(Self.answer.replacing("ACCEPT", with: key).utf8)
                    + [WebSocketConversation.answer, features, WebSocketConversation.close].flatMap {
                        WebSocketConversation.frame($0, from: .recv)
                    }
                    + [0x88, 2, 3, 0xE8]
            )
            _ = try await connection.drain()
        }
        #expect(reason.contains("no mechanism"), "\(reason)")
    }

    @Test("A redirection is reported with its URL, without the query")
    func reportsRedirections() async throws {
        let reason = try await Self.end { listener in
            let (connection, _, key) = try await Self.accept(listener)
            let close =
                "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing' see-other-uri='wss://b.example/ws?a&amp;s3cr3t'/>"
            try await connection.write(
                Array(Self.answer.replacing("ACCEPT", with: key).utf8)
                    + WebSocketConversation.frame(WebSocketConversation.answer, from: .recv)
                    + WebSocketConversation.frame(close, from: .recv)
            )
            _ = try await connection.drain()
        }
        #expect(reason == "the server redirects to wss://b.example/ws; use that URL")
    }

    /// Returns what the frames of a client contain.
    private static func decoded(_ bytes: [UInt8]) -> (texts: [String], pongs: [String], codes: [Int]) {
        var decoder = WebSocketFrameDecoder(.client)
        var (texts, pongs, codes): ([String], [String], [Int]) = ([], [], [])
        var rest = bytes[...]
        var payload: [UInt8] = []
        while true {
            let window = Array(rest)
            switch decoder.next(window.span, into: &payload) {
            case .incomplete, .fault: return (texts, pongs, codes)
            case .header(let length): rest = rest.dropFirst(length)
            case .payload(let length, let ends):
                rest = rest.dropFirst(length)
                guard ends else { continue }
                texts.append(String(decoding: payload, as: UTF8.self))
                payload = []
            case .control(let length):
                rest = rest.dropFirst(length)
                if decoder.frame.opcode == .close { codes.append(Int(decoder.closeCode.rawValue)) }
                if decoder.frame.opcode == .pong {
                    var text: [UInt8] = []
                    text.append(decoder.controlPayload)
                    pongs.append(String(decoding: text, as: UTF8.self))
                }
            }
        }
    }

    @Test("Only TLS is accepted for other machines, and errors about URLs show no query")
    func checksAddresses() throws {
        #expect(try ServerAddress("localhost").description == "localhost:5222")
        #expect(try ServerAddress("wss://a.example/ws?x=s3cr3t").description == "wss://a.example/ws")
        #expect(try ServerAddress("ws://[::1]:80/ws").endpoint == Endpoint(host: "::1", port: 80))
        for (text, expected) in [
            ("ws://a.example/ws?x=s3cr3t", "write wss://"), ("http://a.example?s3cr3t", "neither with ws:// nor"),
            ("wss://u:s3cr3t@a.example", "a user name"), ("wss://a.example/#s3cr3t", "a fragment"),
        ] {
            let error = #expect(throws: EndpointError.self) { try ServerAddress(text) }
            #expect("\(error.map { "\($0)" } ?? "")".contains(expected))
            #expect("\(error.map { "\($0)" } ?? "")".contains("s3cr3t") == false, "\(text)")
        }
    }
}

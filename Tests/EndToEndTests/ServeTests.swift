import Foundation
import TapTestKit
import Testing

/// A recorded session that `xmpptap serve` plays to clients.
private struct ServeScene {
    let folder: TemporaryFolder
    let capture: String
    /// The path of the authority's certificate, which the clients trust.
    let trusted: String
    private let authority: [String]

    /// - Parameter capture: The path of the served capture; by default a conversation of juliet and romeo is recorded.
    init(_ capture: String? = nil) async throws {
        folder = try TemporaryFolder()
        if let capture {
            self.capture = capture
        } else {
            self.capture = try await RecordedTalk.record(ServeTests.text, into: folder)
        }
        authority = ["--ca-dir", folder.path(of: "ca")]
        let created = try await XMPPTapBinary.run(["ca", "create", "--domain", Account.juliet.domain] + authority)
        guard created.ending == .exited(0) else { throw KitError("no authority: \(created.error)") }
        let exported = try await XMPPTapBinary.run(["ca", "export"] + authority)
        trusted = try folder.write(exported.output, to: "ca.pem")
    }

    /// Starts `serve` with these arguments, and waits until it listens.
    func serve(_ arguments: [String]) async throws -> (binary: XMPPTapBinary, port: UInt16) {
        let binary = try XMPPTapBinary(
            ["serve", capture, "--listen", "127.0.0.1:0", "--session", "1", "--session", "2"] + authority + arguments
        )
        return (binary, try await binary.port())
    }

    /// Stops `serve`, and returns its output about the clients.
    ///
    /// - Parameter faults: A part of the expected last line about differences, with which the exit code is 1; nil if
    ///   there are none.
    func stop(_ binary: XMPPTapBinary, faults: String? = nil) async throws -> String {
        let ending = try await binary.process.terminate()
        let error = binary.process.text(of: .standardError)
        #expect(ending == .exited(faults == nil ? 0 : 1), "\(error)")
        if let faults { #expect(error.contains(faults), "\(error)") }
        return binary.process.text(of: .standardOutput)
    }
}

@Suite(
    .timeLimit(.minutes(4)),
    .serialized,
    .enabled(
        if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity, .openssl),
        "a server or clients are missing"
    )
) struct ServeTests {
    fileprivate static let text = "What light through yonder window breaks — ünïcode"

    @Test func `the recorded client logs in, gets its roster and message, and no difference is found`() async throws {
        let scene = try await ServeScene()
        let (binary, port) = try await scene.serve([])
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: port,
            startTLS: true,
            .init(receive: 1),
            options: ["--ca", scene.trusted, "--add", Account.romeo.jid, "--resume"]
        )
        let events = try await juliet.finish()
        #expect(events.contains { $0.event == "resumed" }, "\(events)")
        #expect(events.first { $0.event == "roster" }?.items == [Account.romeo.jid])
        #expect(events.first { $0.event == "received" }?.body == Self.text)
        let report = try await scene.stop(binary)
        let words = report.split(separator: "\n").map { $0.drop { $0 != " " }.dropFirst() }
        #expect(
            words == [
                "logged in and gets session 1", "lost its connection, and can resume its session",
                "resumed its session", "is gone",
            ]
        )
    }

    @Test func `a client with another account gets the same stanzas, and differences are reported`() async throws {
        let scene = try await ServeScene()
        let password = try scene.folder.write("secret-nurse\n", to: "nurse")
        chmod(password, 0o600)
        let accounts = try scene.folder.write("nurse@localhost nurse as=\(Account.juliet.jid)\n", to: "accounts")
        let (binary, port) = try await scene.serve(["--accounts", accounts, "--quiet", "500ms"])
        let nurse = try ScriptedClient(
            .profanity,
            as: Account("nurse", password: "secret-nurse"),
            port: port,
            startTLS: true,
            .init(receive: 1),
            options: ["--ca", scene.trusted]
        )
        // The client requests more than was recorded, so it does not finish and is killed.
        #expect(try await nurse.event("roster").items == [Account.romeo.jid])
        #expect(try await nurse.event("received").body == Self.text)
        try await nurse.kill()
        let report = try await scene.stop(binary, faults: " not recorded")
        #expect(report.contains("nurse@localhost/profanity logged in and gets session 1"))
        #expect(report.contains("which was not recorded: no recorded request is like it; answered service-unavailable"))
        // SCRAM detects the wrong password.
        let (other, second) = try await scene.serve(["--accounts", accounts])
        let stranger = try ScriptedClient(
            .slixmpp,
            as: Account("nurse", password: "wrong"),
            port: second,
            startTLS: true,
            options: ["--ca", scene.trusted]
        )
        await #expect(throws: KitError.self) { try await stranger.finish() }
        #expect(try await scene.stop(other).contains("a client could not log in: not-authorized"))
    }

    @Test func `with --chunks, serve splits a message within a character as recorded`()
        async throws
    {
        let folder = try TemporaryFolder()
        let request = "<iq id='a' type='get'><query xmlns='urn:example:a'/></iq>"
        func answer(_ id: String) -> String { "<iq id='\(id)' type='result'><query xmlns='urn:example:a'/></iq>" }
        let message = "<message from='romeo@localhost'><body>breaks — here</body></message>"
        let talk = """
            000 1 ready juliet@localhost/balcony
            010 1 send \(request)
            020 1 recv \(answer("a"))
            030 1 recv \(message)
            040 1 send </stream:stream>
            041 1 ended
            """
        let server = try ReplayPeer(
            answers: [("example:a'", answer("ID") + message.replacing("—", with: "SPLIT—"))]
        )
        let tap = try await Tap(upstream: server.port)
        let played = try folder.write(RecordedLog(talk).file, to: "played.xtap")
        let run = try await server.replay(played, in: folder, through: tap.port)
        #expect(run.ending == .exited(0), "\(run)")
        try await tap.stop()
        let scene = try await ServeScene(tap.capture)
        for (arguments, isBroken) in [(["--chunks"], true), ([], false)] {
            let (binary, port) = try await scene.serve(arguments + ["--quiet", "500ms"])
            let peer = try ServePeer(port: port, trusting: scene.trusted, sending: request, until: "</message>")
            // The client decodes the data of each read separately, as if no character were split.
            let text = try await peer.reads().map { String(decoding: $0, as: UTF8.self) }.joined()
            #expect(text.contains("\u{FFFD}") == isBroken && text.contains("</message>"), "\(text)")
            _ = try await scene.stop(binary)
        }
    }

    @Test func `a request that was not recorded is forwarded to a real server`() async throws {
        let scene = try await ServeScene()
        let password = try scene.folder.write("\(Account.juliet.password)\n", to: "juliet")
        chmod(password, 0o600)
        let accounts = try scene.folder.write("\(Account.juliet.jid) juliet\n", to: "accounts")
        let real = try await ProsodyServer()
        let (binary, port) = try await scene.serve([
            "--accounts", accounts, "--unmatched", "forward=127.0.0.1:\(real.port)",
        ])
        let peer = try ServePeer(
            port: port,
            trusting: scene.trusted,
            // The first request has no id with which it could be forwarded, so it is refused at once.
            sending: "<iq type='get' to='localhost'><query xmlns='jabber:iq:version'/></iq>"
                + "<iq type='get' id='v1' to='localhost'><query xmlns='jabber:iq:version'/></iq>",
            until: "</name>"
        )
        let answer = String(decoding: try await peer.reads().joined(), as: UTF8.self)
        #expect(answer.contains("id='v1'") && answer.contains("<name>Prosody</name>"), "\(answer)")
        #expect(answer.contains("<service-unavailable"), "\(answer)")
        let report = try await scene.stop(binary, faults: "2 stanzas of the server not sent")
        #expect(report.contains("; forwarded"))
        try await real.stop()
    }

    @Test func `malformed input ends only its own stream`() async throws {
        let scene = try await ServeScene()
        let (binary, port) = try await scene.serve([])
        for nonsense in [
            "GET / HTTP/1.1\r\n\r\n", "<a/>", "\u{1}\u{2}", "<stream:stream xmlns:stream='x'>", "<!DOCTYPE x>",
        ] {
            let connection = try RawConnection(port: port)
            _ = try await connection.write(nonsense)
            connection.finish()
            _ = try await connection.drain()
        }
        let clear = try RawConnection(port: port)
        _ = try await clear.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
        )
        let features = try await clear.read(through: "</stream:features>")
        #expect(features.contains("<required/>") && !features.contains("PLAIN"))
        _ = try await clear.write("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>")
        _ = try await clear.read(through: "<encryption-required/>")
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: port,
            startTLS: true,
            options: ["--ca", scene.trusted]
        )
        try await juliet.event("bound")
        try await juliet.kill()
        let told = try await scene.stop(binary, faults: "2 stanzas of the server not sent")
        for words in [
            "logged in and gets session 1", "a client could not log in: encryption-required",
            "a client's stream ended with ",
        ] { #expect(told.contains(words), "\(told)") }
    }

    @Test func `serve refuses an empty recording and an address that other machines reach`() async throws {
        let folder = try TemporaryFolder()
        let empty = try folder.write("", to: "empty.xtap")
        let missing = try await XMPPTapBinary.run(["serve", empty])
        #expect(missing.ending == .exited(3))
        let remote = try await XMPPTapBinary.run(["serve", empty, "--listen", "0.0.0.0:0"])
        #expect(remote.ending == .exited(2) && remote.error.contains("--allow-remote"))
    }
}

/// A client that prints each piece of data that it reads from TLS.
private struct ServePeer {
    private let process: ToolProcess

    /// Logs in as juliet with her password, sends an item, and reads until a text has arrived.
    init(port: UInt16, trusting authority: String, sending item: String, until text: String) throws {
        let secret = Data("\0\(Account.juliet.user)\0\(Account.juliet.password)".utf8).base64EncodedString()
        let script = """
            import socket, ssl, sys
            s = socket.create_connection(("127.0.0.1", \(port)), 20)
            head = b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
            def until(word):
                data = b""
                while word not in data:
                    piece = s.recv(65536)
                    if not piece: sys.exit("closed: %r" % data)
                    data += piece
            s.sendall(head); until(b"</stream:features>")
            s.sendall(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"); until(b"<proceed")
            s = ssl.create_default_context(cafile="\(authority)").wrap_socket(s, server_hostname="localhost")
            s.sendall(head); until(b"</stream:features>")
            s.sendall(b"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>"); until(b"<success")
            s.sendall(head); until(b"</stream:features>")
            s.sendall(b"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"); until(b"</iq>")
            s.sendall(b"\(item)")
            data = b""
            while b"\(text)" not in data:
                piece = s.recv(65536)
                if not piece: break
                data += piece
                print(piece.hex(), flush=True)
            """
        process = try ToolProcess("/usr/bin/python3", ["-c", script])
    }

    /// Returns the pieces in which the data arrived.
    func reads() async throws -> [[UInt8]] {
        guard try await process.ending(within: .seconds(60)) == .exited(0) else { throw process.failure("no session") }
        return process.lines(of: .standardOutput).map { line in
            stride(from: 0, to: line.utf8.count - 1, by: 2).compactMap { index in
                UInt8(line.dropFirst(index).prefix(2), radix: 16)
            }
        }
    }
}

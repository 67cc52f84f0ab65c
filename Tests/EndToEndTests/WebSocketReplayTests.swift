import Foundation
import TapTestKit
import Testing

/// `replay` and scripts with Prosody's WebSocket.
@Suite(
    .serialized,
    .timeLimit(.minutes(5)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody, slixmpp or openssl is missing")
)
struct WebSocketReplayTests {
    private struct Scene {
        let folder: TemporaryFolder
        let capture: String
        let accounts: String
        let certificate: TestCertificate

        init() async throws {
            folder = try TemporaryFolder()
            certificate = try await TestCertificate()
            capture = try await RecordedTalk.record("what light", into: folder)
            for account in [Account.juliet, .romeo] { try folder.write("\(account.password)\n", to: account.user) }
            accounts = try folder.write(
                [Account.juliet, .romeo].map { "\($0.jid) \($0.user)\n" }.joined(),
                to: "accounts"
            )
        }

        func replay(
            _ file: String? = nil,
            to url: String,
            _ arguments: [String] = []
        ) async throws -> (ending: ToolProcess.Ending, output: String, error: String) {
            try await XMPPTapBinary.run(
                ["replay", file ?? capture, "--to", url, "--accounts", accounts] + arguments
            )
        }
    }

    @Test("A recorded login and chat, with a resumed session, is replayed over ws and wss without differences")
    func replays() async throws {
        let scene = try await Scene()
        let trust = ["--upstream-ca", scene.certificate.certificate]
        for isSecure in [false, true] {
            let server = try await WebSocketScene(scene.certificate)
            let url = isSecure ? server.secureURL : server.url
            let (ending, output, error) = try await scene.replay(to: url, isSecure ? trust : [])
            #expect(ending == .exited(0), "\(url): \(output)\(error)\n\(server.prosody.log.suffix(3000))")
            #expect(output.contains("compared"), "\(output)")
            try await server.prosody.stop()
        }
    }

    @Test(
        "A script runs over TCP and over a WebSocket, and both captures have the same story, without the stream headers"
    )
    func runsScripts() async throws {
        let scene = try await Scene()
        let server = try await WebSocketScene()
        let script = try scene.folder.write(
            """
            [Client] Juliet
            \tjid: \(Account.juliet.jid)
            \tpassword: \(Account.juliet.password)
            -----
            Juliet connects

            Juliet sends:
            \t<iq type='get' id='v' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>

            Juliet receives:
            \t<iq type='result' id='v'/>

            Juliet sends:
            \t<presence/>

            Juliet receives:
            \t<presence/>

            Juliet sends:
            \t<message to='\(Account.juliet.jid)' type='chat' id='m'><body>what light</body></message>

            Juliet receives:
            \t<message type='chat' id='m'><body>what light</body></message>

            Juliet disconnects

            """,
            to: "ping.scs"
        )
        let stream = try await Tap(upstream: server.prosody.port)
        let web = try await Tap(listen: [], arguments: ["--listen-ws", "127.0.0.1:0", "--upstream", server.url])
        let url = "ws://127.0.0.1:\(try await web.binary.port())/xmpp-websocket"
        for (tap, address) in [(stream, "127.0.0.1:\(stream.port)"), (web, url)] {
            let (ending, output, error) = try await scene.replay(script, to: address)
            #expect(
                ending == .exited(0) && output.contains("1 of 1 scripts passed"),
                "\(output)\(error)\(Tap.read(tap.text))"
            )
            try await tap.wait(for: "session-ended", in: tap.json)
            try await tap.stop()
        }
        try await server.prosody.stop()

        let same = try await XMPPTapBinary.run(["diff", stream.capture, web.capture])
        #expect(same.ending == .exited(0) && same.output.contains("no differences"), "\(same.output)\(same.error)")
        /// The items within streams, with their summaries, and the steps of the login.
        func story(_ tap: Tap) throws -> [String] {
            try tap.records().filter { !["declaration", "stream-open", "stream-close"].contains($0.kind) }.compactMap {
                guard $0.isItem || $0.code == "login-step" else { return nil }
                return [
                    $0.kind, $0.direction, $0.name, $0.type, $0.payload, $0.id, $0.details?.step, $0.details?.outcome,
                ]
                .compactMap(\.self).joined(separator: " ")
            }
        }
        #expect(try story(stream) == story(web))
        #expect(try story(web).count > 15)
    }

    @Test("An untrusted certificate, a wrong path and a closed port are reported as such, without the query")
    func reportsRefusals() async throws {
        let scene = try await Scene()
        let server = try await WebSocketScene(scene.certificate)
        let untrusted = try await scene.replay(to: server.secureURL)
        #expect(untrusted.ending == .exited(5) && untrusted.error.contains("not trusted"), "\(untrusted)")
        let path = try await scene.replay(to: "ws://localhost:\(server.http)/nowhere?token=s3cr3t")
        #expect(path.ending == .exited(4) && path.error.contains("HTTP 404; check the path"), "\(path)")
        #expect(!path.error.contains("s3cr3t") && !path.output.contains("s3cr3t"), "\(path)")
        let clear = try await scene.replay(to: "ws://localhost:\(server.https)/xmpp-websocket")
        #expect(clear.ending == .exited(4), "\(clear)")
        let secure = try await scene.replay(to: "wss://localhost:\(server.http)/xmpp-websocket")
        #expect(secure.ending == .exited(4), "\(secure)")
        try await server.prosody.stop()
        let gone = try await scene.replay(to: server.url)
        #expect(gone.ending == .exited(4) && gone.error.contains("refused"), "\(gone)")
    }
}

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

    @Test("A script runs over a WebSocket")
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

            Juliet disconnects

            """,
            to: "ping.scs"
        )
        let (ending, output, error) = try await scene.replay(script, to: server.url)
        #expect(ending == .exited(0) && output.contains("1 of 1 scripts passed"), "\(output)\(error)")
        try await server.prosody.stop()
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

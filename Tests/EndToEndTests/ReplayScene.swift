import Foundation
import TapTestKit

/// A recorded conversation of juliet and romeo with slixmpp through the intercepting proxy to Prosody, for tests that
/// replay it with other servers.
struct ReplayScene {
    let folder: TemporaryFolder
    /// The path of the recording.
    let capture: String
    let certificate: TestCertificate
    private let accounts: String

    init() async throws {
        folder = try TemporaryFolder()
        certificate = try await TestCertificate()
        let scene = try await InterceptScene(certificate: certificate)
        func client(_ account: Account, _ script: ScriptedClient.Script, _ options: [String] = []) throws
            -> ScriptedClient
        {
            try ScriptedClient(
                .slixmpp,
                as: account,
                port: scene.tap.port,
                startTLS: true,
                script,
                options: ["--ca", scene.authority] + options
            )
        }
        // Juliet loses her connection and resumes her session, so sessions 1 and 2 are hers.
        let juliet = try client(.juliet, .init(ping: true, reply: "Wherefore art thou", receive: 2), ["--resume"])
        try await juliet.event("ready")
        let lines = [(to: Account.juliet, body: "But, soft!"), (to: Account.juliet, body: "what light <&> 🌹")]
        let romeo = try client(.romeo, .init(ping: true, send: lines, receive: 2), ["--add", Account.juliet.jid])
        try await romeo.finish()
        try await juliet.finish()
        try await scene.stop()
        capture = try folder.write(Tap.read(scene.tap.capture), to: "talk.xtap")
        for account in [Account.juliet, .romeo] { try folder.write("\(account.password)\n", to: account.user) }
        accounts = try folder.write(
            [Account.juliet, .romeo].map { "\($0.jid) \($0.user)\n" }.joined(),
            to: "accounts"
        )
    }

    /// Starts a new server without any data.
    func server(accounts: [Account] = [.juliet, .romeo], host: String = "") async throws -> ProsodyServer {
        try await ProsodyServer(encryption: .startTLS(certificate), accounts: accounts, host: host)
    }

    /// Replays the recording with a server.
    func replay(
        to port: UInt16,
        _ arguments: [String] = [],
        accounts own: String? = nil
    ) async throws -> (ending: ToolProcess.Ending, output: String, error: String) {
        try await XMPPTapBinary.run(
            [
                "replay", capture, "--to", "localhost:\(port)", "--accounts", own ?? accounts, "--upstream-ca",
                certificate.certificate,
            ]
                + arguments
        )
    }
}

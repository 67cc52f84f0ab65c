import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap record-test` with slixmpp and Prosody.
@Suite(
    .timeLimit(.minutes(4)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing")
) struct RecordTestTests {
    private let folder: TemporaryFolder
    private let certificate: TestCertificate
    private let server: ProsodyServer
    private let authority: InterceptAuthority

    init() async throws {
        folder = try TemporaryFolder()
        certificate = try await TestCertificate()
        server = try await ProsodyServer(encryption: .startTLS(certificate))
        authority = try await InterceptAuthority()
        for account in [Account.juliet, .romeo] {
            chmod(try folder.write("\(account.password)\n", to: account.user), 0o600)
        }
    }

    private var replayed: [String] {
        get throws {
            let rows = [Account.juliet, .romeo].map { "\($0.jid) \($0.user)\n" }
            return [
                "--to", "127.0.0.1:\(server.port)", "--accounts", try folder.write(rows.joined(), to: "accounts"),
                "--upstream-ca", certificate.certificate,
            ]
        }
    }

    private func record(_ name: String) throws -> XMPPTapBinary {
        let flags = ["--prepare", "--listen", "127.0.0.1:0"] + authority.arguments.suffix(2)
        return try XMPPTapBinary(["record-test", folder.path(of: name)] + replayed + flags)
    }

    @Test func `a recorded session that changes a roster becomes a repeatable test`() async throws {
        let recording = try record("talk")
        let port = try await recording.port()
        func client(_ account: Account, _ script: ScriptedClient.Script, _ options: [String] = []) throws
            -> ScriptedClient
        {
            let trust = ["--ca", authority.certificate]
            return try ScriptedClient(
                .slixmpp,
                as: account,
                port: port,
                startTLS: true,
                script,
                options: trust + options
            )
        }
        let juliet = try client(.juliet, .init(ping: true, receive: 1), ["--add", Account.romeo.jid])
        try await juliet.event("ready")
        try await client(.romeo, .init(send: [(to: .juliet, body: "But, soft!")])).finish()
        try await juliet.finish()
        recording.process.signal(SIGINT)
        let ending = try await recording.process.ending()
        let error = recording.process.text(of: .standardError)
        #expect(ending == .exited(0), "\(recording.process.text(of: .standardOutput))\(error)")
        #expect(error.contains("first replay: 2 sessions") && error.contains("third replay: 2 sessions"), "\(error)")
        #expect(error.contains("written: \(folder.path(of: "talk.xtap"))"), "\(error)")
        // The command in the CI step replays the recording, and it works here too.
        let capture = folder.path(of: "talk.xtap")
        let step = folder.read("talk.ci.yml")
        let words = [capture] + (try replayed) + ["--prepare", "--junit", folder.path(of: "talk.xml")]
        #expect(
            step.contains("- name: 'Replay \(capture)'\n  run: |\n    xmpptap replay \(words.joined(separator: " "))\n")
        )
        let again = try await XMPPTapBinary.run(["replay"] + words)
        #expect(again.ending == .exited(0), "\(again)")
        #expect(folder.read("talk.xml").contains("failures=\"0\""))
        // Existing files are not overwritten.
        let refused = try await XMPPTapBinary.run(["record-test", folder.path(of: "talk")] + (try replayed))
        #expect(refused.ending == .exited(2) && refused.error.contains("talk.xtap exists already"), "\(refused)")
        try await server.stop()
    }

    @Test func `if the replay cannot log in, the recording is kept, and a message says how to replay`() async throws {
        chmod(try folder.write("wrong\n", to: Account.juliet.user), 0o600)
        let recording = try record("kept")
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: try await recording.port(),
            startTLS: true,
            options: ["--ca", authority.certificate]
        )
        try await juliet.finish()
        recording.process.signal(SIGINT)
        #expect(try await recording.process.ending() == .exited(5))
        let error = recording.process.text(of: .standardError)
        let play = (["xmpptap", "replay", folder.path(of: "kept.xtap")] + (try replayed) + ["--prepare", "--update"])
        #expect(error.contains("kept.xtap is kept; play it with '\(play.joined(separator: " "))'"), "\(error)")
        #expect(error.contains("check its password file"), "\(error)")
        try await server.stop()
    }

    @Test func `a certificate that is not trusted is reported before the recording`() async throws {
        var flags = try replayed
        flags.removeLast(2)
        let refused = try await XMPPTapBinary.run(["record-test", folder.path(of: "untrusted")] + flags)
        #expect(refused.ending == .exited(1), "\(refused)")
        #expect(refused.error.contains("cannot verify the certificate of the server of localhost"), "\(refused)")
        #expect(refused.error.contains("accept the certificate with --pin "), "\(refused)")
        #expect(!FileManager.default.fileExists(atPath: folder.path(of: "untrusted.xtap")))
        // The passwords are not needed for that, and not sent.
        #expect(!refused.error.contains("listening"), "\(refused)")
        try await server.stop()
    }

    @Test func `a recording without a login is refused as a test, with advice`() async throws {
        let recording = try record("nothing")
        _ = try await recording.port()
        recording.process.signal(SIGINT)
        #expect(try await recording.process.ending() == .exited(3))
        let error = recording.process.text(of: .standardError)
        #expect(error.contains("no session with a completed login; see why with 'xmpptap explain "), "\(error)")
        try await server.stop()
    }
}

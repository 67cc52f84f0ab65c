import TapTestKit
import Testing

/// Tests of clients that do not trust the proxy's authority: the log prints the command that makes the client trust it.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(
        if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity, .goSendxmpp, .openssl),
        "a server or clients are missing"
    )
)
struct ClientTrustTests {
    /// Returns the text of the diagnosis of session `number`, and of its line on standard output.
    private func advice(_ scene: InterceptScene, session number: UInt64) async throws -> String {
        let deadline = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < deadline {
            let records = try scene.tap.records().filter { $0.session == number && $0.code == "login-failed" }
            if let diagnosis = records.first {
                let causes = ["authority-not-trusted", "certificate-not-accepted"]
                #expect(causes.contains(diagnosis.details?.cause ?? ""), "\(diagnosis.message ?? "")")
                return try #require(diagnosis.message)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw KitError("no diagnosis of session \(number): \(Tap.read(scene.tap.text))")
    }

    @Test func `the trust advice fits the client that refused the certificate`() async throws {
        let scene = try await InterceptScene()
        let (tap, other) = (scene.tap, scene.real.certificate)
        let file = scene.authority

        // The proxy recognises Go from the ClientHello alone.
        let go = try GoSendxmpp(as: .juliet, port: tap.port, trusting: other, send: "Ay me!", to: .romeo)
        await #expect(throws: KitError.self) { try await go.finish() }
        let goAdvice = try await advice(scene, session: 1)
        #expect(goAdvice.contains("to let this Go program trust"), "\(goAdvice)")
        #expect(goAdvice.contains("SSL_CERT_FILE=\(file) "), "\(goAdvice)")

        func scripted(_ program: ScriptedClient.Program, trusting file: String) throws -> ScriptedClient {
            try ScriptedClient(
                program,
                as: .juliet,
                port: tap.port,
                startTLS: true,
                options: ["--ca", file, "--timeout", "20"]
            )
        }
        let slixmpp = try scripted(.slixmpp, trusting: other)
        await #expect(throws: KitError.self) { try await slixmpp.finish() }
        let slixmppAdvice = try await advice(scene, session: 2)
        #expect(slixmppAdvice.contains("to let this OpenSSL program trust"), "\(slixmppAdvice)")
        #expect(slixmppAdvice.contains("in slixmpp set client.ca_certs"), "\(slixmppAdvice)")

        // The proxy recognises profanity by the capabilities from an earlier session.
        let before = try tap.records().compactMap(\.session).max() ?? 0
        try await scripted(.profanity, trusting: file).finish()
        let profanity = try scripted(.profanity, trusting: other)
        await #expect(throws: KitError.self) { try await profanity.finish() }
        let profanityAdvice = try await advice(scene, session: before + 2)
        #expect(profanityAdvice.contains("to let profanity (seen at this address) trust"), "\(profanityAdvice)")
        #expect(profanityAdvice.contains("SSL_CERT_FILE=\(file) profanity"), "\(profanityAdvice)")

        try await scene.stop()
        // The advice is also printed on standard output.
        let shown = tap.binary.process.lines(of: .standardOutput)
        #expect(shown.contains { $0.contains("SSL_CERT_FILE=\(file) profanity") }, "\(shown)")
    }
}

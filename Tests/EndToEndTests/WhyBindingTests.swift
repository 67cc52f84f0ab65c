import TapTestKit
import Testing

/// Tests of the diagnosis of failed logins with channel binding, with the gs2 flag y, or with signed login parameters.
@Suite(.timeLimit(.minutes(2)), .serialized, .enabled(if: BindingPeer.isInstalled, "aiosasl or pyOpenSSL is missing"))
struct WhyBindingTests {
    /// Runs one login of aiosasl, without channel binding, through a proxy to a scripted server.
    private func fail(
        _ mechanisms: [String],
        serverVersion: String = "1.3",
        client: [String],
        tap arguments: [String] = []
    ) async throws -> (parameters: BindingPeer.Parameters, tap: Tap) {
        let certificate = try await TestCertificate(isRSA: true)
        let own = try await InterceptAuthority()
        let port = try FreePort.next()
        let server = try await BindingPeer.serve(
            port: port,
            certificate: certificate.certificate,
            key: certificate.key,
            mechanisms: mechanisms,
            bindings: ["tls-exporter"],
            ["--version", serverVersion]
        )
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--upstream-ca", certificate.certificate] + arguments
        )
        let parameters = try await BindingPeer.logIn(
            port: tap.port,
            trusting: own.certificate,
            binding: "tls-exporter",
            client
        )
        try await tap.stop()
        try await server.stop()
        withExtendedLifetime((certificate, own)) {}
        return (parameters, tap)
    }

    private func check(_ tap: Tap, _ cause: String, _ rule: String, _ words: String) async throws {
        let diagnosis = try #require(try tap.records().first { $0.code == "login-failed" })
        let parameters = try #require(diagnosis.details)
        #expect(
            "\(parameters.step ?? "") \(parameters.cause ?? "") \(parameters.side ?? "")" == "sasl \(cause) xmpptap"
        )
        #expect(parameters.rule == rule && parameters.proxyIsCause == true, "\(parameters)")
        #expect(diagnosis.message?.contains(words) == true, "\(diagnosis.message ?? "")")
        let explained = try await XMPPTapBinary.run(["explain", tap.json])
        #expect(explained.ending == .exited(1) && explained.output.contains(words), "\(explained.output)")
    }

    @Test func `mechanisms that differ from the signed list are diagnosed as altered by xmpptap`() async throws {
        let (parameters, tap) = try await fail(
            ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"],
            client: ["--flag", "n", "--early"],
            tap: ["--channel-binding", "strip"]
        )
        #expect(parameters.error?.contains("h is not of what was offered") == true, "\(parameters)")
        try await check(tap, "mechanisms-altered", "XEP-0474", "relay the server's mechanisms unchanged")
    }

    @Test func `a TLS version that differs from the signed one is diagnosed as altered`() async throws {
        let (parameters, tap) = try await fail(
            ["SCRAM-SHA-256"],
            client: ["--flag", "n", "--early", "--version", "1.2"]
        )
        #expect(parameters.error?.contains("t is not the version") == true, "\(parameters)")
        try await check(tap, "tls-version-altered", "XEP-0515", "use the same TLS version")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing"))
    func `Prosody's refusal of gs2 flag y after --channel-binding strip is diagnosed`()
        async throws
    {
        let scene = try await InterceptScene(version: "1_2", arguments: ["--channel-binding", "strip"])
        let parameters = try await BindingPeer.logIn(
            port: scene.tap.port,
            trusting: scene.authority,
            binding: "tls-unique",
            ["--flag", "y"]
        )
        #expect(parameters.error != nil, "\(parameters)")
        try await scene.stop()
        let failure = try scene.tap.records().first { $0.code == "sasl-failure" }
        #expect(failure?.condition == "malformed-request", "\(failure?.condition ?? "none")")
        try await check(scene.tap, "channel-binding-denied", "RFC 5802 §6", "(gs2 flag y)")
    }
}

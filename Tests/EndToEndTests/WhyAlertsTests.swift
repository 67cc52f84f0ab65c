import TapTestKit
import Testing

/// Tests of the diagnosis of logins that failed because of a TLS alert or ALPN: in the log, and from `explain`.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.openssl.isInstalled, "openssl is missing")
)
struct WhyAlertsTests {
    // MARK: Alerts

    private func plain(
        _ name: String,
        serverArguments: [String] = [],
        clientArguments: [String] = ["--sni", "localhost"],
        clientTrusts: String? = nil,
        direct: Bool = true,
        _ wanted: WhyTLSScene.Verdict,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let certificate = try await TestCertificate()
        try await WhyTLSScene.fail(
            name,
            server: (certificate.certificate, certificate.key),
            trusting: certificate.certificate,
            serverArguments: serverArguments,
            clientArguments: clientArguments,
            clientTrusts: clientTrusts,
            direct: direct,
            wanted,
            sourceLocation: sourceLocation
        )
        withExtendedLifetime(certificate) {}
    }

    @Test(arguments: [false, true]) func `a client distrusting the authority is diagnosed`(direct: Bool) async throws {
        let other = try await TestCertificate()
        try await plain(
            "untrusting",
            clientTrusts: other.certificate,
            direct: direct,
            WhyTLSScene.Verdict(
                cause: "authority-not-trusted",
                side: "xmpptap",
                rule: "RFC 6120 §13.7.2",
                words: ["(alert unknown_ca)", "xmpptap ca export --domain localhost --ca-dir "]
            )
        )
    }

    @Test(arguments: [
        (
            UInt8(45), "clock-skew", "network", "RFC 5280 §4.1.2.5",
            ["(alert certificate_expired)", "set the clocks of both machines"]
        ),
        (
            80, "tls-alert-client", "client", "RFC 8446 §6",
            ["the client ", "(alert internal_error)", "check the client's log"]
        ),
    ]) func `a client's TLS alert is diagnosed`(
        alert: UInt8,
        cause: String,
        side: String,
        rule: String,
        words: [String]
    ) async throws {
        try await plain(
            "client's alert \(alert)",
            clientArguments: ["--sni", "localhost", "--max", "1.2", "--alert", "\(alert)"],
            WhyTLSScene.Verdict(cause: cause, side: side, rule: rule, words: words)
        )
    }

    @Test(arguments: [
        (
            UInt8(80), "tls-alert-server", "server", "RFC 8446 §6",
            ["the server ", "(alert internal_error)", "check the server's log"]
        ),
        (112, "tls-alert-server", "server", "RFC 8446 §6", ["(alert unrecognized_name)"]),
        (40, "tls-incompatible", "server", "RFC 8446 §4.1", ["(alert handshake_failure)", "--tls-min"]),
    ]) func `a server's TLS alert is diagnosed`(
        alert: UInt8,
        cause: String,
        side: String,
        rule: String,
        words: [String]
    ) async throws {
        for direct in [false, true] {
            try await plain(
                "server's alert \(alert)",
                serverArguments: ["--alert", "\(alert)"],
                direct: direct,
                WhyTLSScene.Verdict(cause: cause, side: side, rule: rule, words: words)
            )
        }
    }

    @Test func `a server or client with only an old TLS version is diagnosed`() async throws {
        let rule = "RFC 8446 §4.1"
        try await plain(
            "server of old",
            serverArguments: ["--max", "1.1"],
            WhyTLSScene.Verdict(cause: "tls-incompatible", side: "server", rule: rule, words: ["--tls-min"])
        )
        try await plain(
            "client of old",
            clientArguments: ["--sni", "localhost", "--max", "1.1"],
            WhyTLSScene.Verdict(cause: "tls-incompatible", side: "client", rule: rule, words: ["--tls-min"])
        )
    }

    // MARK: ALPN

    @Test func `a server that supports none of the offered ALPN protocols is diagnosed`() async throws {
        let certificate = try await TestCertificate()
        let own = try await InterceptAuthority()
        let port = try FreePort.next()
        let server = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificate, "-key", certificate.key,
                "-alpn", "http/1.1", "-quiet",
            ]
        )
        let end = ContinuousClock.now + .seconds(10)
        while !FreePort.accepts(port), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(20)) }
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--upstream-ca", certificate.certificate]
        )
        let parameters = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--sni", "localhost", "--alpn", "xmpp-client"]
        )
        #expect(parameters.error != nil)
        try await tap.stop()
        _ = try await server.terminate()
        try await WhyTLSScene.check(
            tap,
            WhyTLSScene.Verdict(
                cause: "alpn-mismatch",
                side: "server",
                rule: "RFC 7301 §3.2",
                words: ["(alert no_application_protocol)"]
            ),
            "ALPN of the server",
            sourceLocation: #_sourceLocation
        )
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing"))
    func `a client that offers no XMPP protocol by ALPN is diagnosed`() async throws {
        let own = try await InterceptAuthority()
        let server = try await ProsodyServer()
        let tap = try await Tap(
            upstream: server.port,
            arguments: own.arguments + ["--client-tls", "direct", "--server-tls", "off"]
        )
        let parameters = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--sni", "localhost", "--alpn", "h2"]
        )
        #expect(parameters.error?.contains("no application protocol") == true, "\(parameters)")
        try await tap.stop()
        try await server.stop()
        try await WhyTLSScene.check(
            tap,
            WhyTLSScene.Verdict(
                cause: "alpn-mismatch",
                side: "client",
                rule: "RFC 7301 §3.2",
                words: ["offers no supported ALPN protocol", "configure the client to offer xmpp-client"]
            ),
            "ALPN of the client",
            sourceLocation: #_sourceLocation
        )
    }

    // MARK: Servers among themselves

    @Test(
        "The receiving server's alert about the certificate of the initiating server is diagnosed",
        arguments: ["1_2", "1_3"]
    )
    func findsRefusedServer(version: String) async throws {
        let (first, second, other) = try await (
            TestCertificate(domain: "a.test"), TestCertificate(domain: "b.test"), TestCertificate(domain: "other.test")
        )
        let folder = try TemporaryFolder()
        let trusted = try folder.write(Tap.read(first.certificate) + Tap.read(second.certificate), to: "trusted.pem")
        let own = try await InterceptAuthority()
        let port = try FreePort.next()
        let server = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", second.certificate, "-key", second.key, "-Verify",
                "2", "-verify_return_error", "-CAfile", other.certificate, "-alpn", "xmpp-server", "-tls\(version)",
                "-quiet",
            ]
        )
        let end = ContinuousClock.now + .seconds(20)
        while !FreePort.accepts(port), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(20)) }
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--s2s", "--server-tls", "direct", "--upstream-ca", trusted]
        )
        let client = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_client", "-connect", "127.0.0.1:\(tap.port)", "-servername", "b.test", "-cert", first.certificate,
                "-key",
                first.key, "-alpn", "xmpp-server", "-quiet",
            ]
        )
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        _ = try await client.terminate()
        _ = try await server.terminate()
        try await WhyTLSScene.check(
            tap,
            WhyTLSScene.Verdict(
                cause: "authority-not-trusted",
                side: "xmpptap",
                rule: "RFC 6120 §13.7.2",
                words: [
                    "the server does not trust the issuer of the certificate (alert unknown_ca)",
                    "xmpptap presented the certificate for a.test", "trust the certificate authority for a.test",
                ]
            ),
            "TLS \(version)",
            sourceLocation: #_sourceLocation
        )
    }
}

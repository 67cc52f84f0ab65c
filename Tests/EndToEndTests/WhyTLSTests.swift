import Foundation
import TapTestKit
import Testing

/// Why logins failed at TLS: the verdict in the log, and what `explain` makes of it.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.openssl.isInstalled, "openssl is missing")
)
struct WhyTLSTests {
    /// What a verdict has to say.
    struct Verdict: Sendable {
        let cause: String
        let side: String
        let rule: String
        /// Parts of what happened and of what to try.
        let words: [String]
    }

    /// Checks that session 1 of a tap that has ended has this verdict alone, and that `explain` says the same.
    private static func check(_ tap: Tap, _ wanted: Verdict, _ name: String, sourceLocation: SourceLocation)
        async throws
    {
        let verdicts = try tap.records().filter { $0.code == "login-failed" }
        try #require(verdicts.count == 1, "\(name): \(Tap.read(tap.text))", sourceLocation: sourceLocation)
        let facts = try #require(verdicts[0].details)
        #expect(verdicts[0].kind == "note" && verdicts[0].level == "error", "\(name)", sourceLocation: sourceLocation)
        let told = "\(facts.cause ?? "") \(facts.rung ?? "") \(facts.side ?? "") \(facts.rule ?? "")"
        #expect(
            told == "\(wanted.cause) tls \(wanted.side) \(wanted.rule)",
            "\(name): \(verdicts[0].message ?? "")",
            sourceLocation: sourceLocation
        )
        #expect(facts.proxyIsCause == (wanted.side == "xmpptap"), "\(name)", sourceLocation: sourceLocation)
        let explained = try await XMPPTapBinary.run(["explain", tap.json, "--session", "1"])
        #expect(explained.ending == .exited(1), "\(name): \(explained.error)", sourceLocation: sourceLocation)
        for words in wanted.words + ["failed at tls: ", wanted.rule] {
            #expect(explained.output.contains(words), "\(name): \(explained.output)", sourceLocation: sourceLocation)
            guard words != "failed at tls: " else { continue }
            #expect(verdicts[0].message?.contains(words) == true, "\(name)", sourceLocation: sourceLocation)
        }
    }

    /// One client through a tap to a server, both of a script; the client must not get as far as to log in.
    private func fail(
        _ name: String,
        server: (certificate: String, key: String),
        trusting root: String,
        serverArguments: [String] = [],
        clientArguments: [String] = ["--sni", "localhost"],
        clientTrusts: String? = nil,
        tapArguments: [String] = [],
        direct: Bool = false,
        _ wanted: Verdict,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let own = try await InterceptAuthority()
        let port = try FreePort.next()
        let begin = direct ? [] : ["--starttls"]
        let peer = try await TLSPeer.serve(
            port: port,
            certificate: server.certificate,
            key: server.key,
            begin + serverArguments
        )
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--upstream-ca", root] + tapArguments
        )
        let facts = try await TLSPeer.connect(
            port: tap.port,
            trusting: clientTrusts ?? own.certificate,
            begin + clientArguments
        )
        #expect(facts.error != nil && facts.mechanisms == nil, "\(name): \(facts)", sourceLocation: sourceLocation)
        try await tap.stop()
        try await peer.stop()
        try await Self.check(tap, wanted, name, sourceLocation: sourceLocation)
    }

    // MARK: Certificates

    /// What is wrong with a server's certificate.
    enum Wrong: String, CaseIterable, Sendable { case expired, notYetValid, name, issuer, selfSigned, purpose }

    @Test(arguments: Wrong.allCases, [false, true])
    func `a certificate that is not believed`(wrong: Wrong, direct: Bool) async throws {
        let authority = try await TestAuthority()
        let rule = "RFC 5280 §4.1.2.5"
        let verdict: Verdict
        var root = authority.root
        var pair: (certificate: String, key: String)
        /// A file is gone with its owner.
        var owners: [any Sendable] = [authority]
        func leaf(_ names: [String], _ extensions: [String] = [], from start: String? = nil, to end: String? = nil)
            async throws -> (String, String)
        {
            let leaf = try await authority.leaf(names: names, start: start, end: end, extensions: extensions)
            return (leaf.certificate, leaf.key)
        }
        switch wrong {
        case .expired:
            pair = try await leaf(["DNS:localhost"], from: "20250101000000Z", to: "20250201000000Z")
            verdict = Verdict(
                cause: "certificate-expired",
                side: "server",
                rule: rule,
                words: ["it expired on 2025-02-01", "renew the server's certificate"]
            )
        case .notYetValid:
            pair = try await leaf(["DNS:localhost"], from: "20490101000000Z", to: "20490201000000Z")
            verdict = Verdict(
                cause: "clock-skew",
                side: "network",
                rule: rule,
                words: ["it is valid from 2049-01-01", "set the clocks of both machines"]
            )
        case .name:
            pair = try await leaf(["DNS:xmpp7.example"])
            verdict = Verdict(
                cause: "certificate-wrong-name",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it is for xmpp7.example, not for localhost", "not for the name of the machine"]
            )
        case .issuer:
            pair = try await leaf(["DNS:localhost"])
            let other = try await TestAuthority(name: "Another Authority")
            owners.append(other)
            root = other.root
            verdict = Verdict(
                cause: "certificate-unknown-issuer",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["its issuer is not trusted", "--upstream-ca FILE"]
            )
        case .selfSigned:
            let own = try await TestCertificate()
            owners.append(own)
            pair = (own.certificate, own.key)
            verdict = Verdict(
                cause: "certificate-unknown-issuer",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it signed itself", "--upstream-ca FILE"]
            )
        case .purpose:
            pair = try await leaf(["DNS:localhost"], ["extendedKeyUsage=clientAuth"])
            verdict = Verdict(
                cause: "certificate-refused",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it was not made for a server", "--upstream-insecure"]
            )
        }
        try await fail("\(wrong), direct \(direct)", server: pair, trusting: root, direct: direct, verdict)
        withExtendedLifetime(owners) {}
    }

    // MARK: Alerts

    private func plain(
        _ name: String,
        serverArguments: [String] = [],
        clientArguments: [String] = ["--sni", "localhost"],
        clientTrusts: String? = nil,
        direct: Bool = true,
        _ wanted: Verdict,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let certificate = try await TestCertificate()
        try await fail(
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

    @Test(arguments: [false, true]) func `a client that does not trust the authority`(direct: Bool) async throws {
        let other = try await TestCertificate()
        try await plain(
            "untrusting",
            clientTrusts: other.certificate,
            direct: direct,
            Verdict(
                cause: "authority-not-trusted",
                side: "xmpptap",
                rule: "RFC 6120 §13.7.2",
                words: ["(alert unknown_ca)", "xmpptap ca export says how"]
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
            ["the client ", "(alert internal_error)", "look in the client's log"]
        ),
    ]) func `a client that ends TLS by an alert`(
        alert: UInt8,
        cause: String,
        side: String,
        rule: String,
        words: [String]
    ) async throws {
        try await plain(
            "client's alert \(alert)",
            clientArguments: ["--sni", "localhost", "--max", "1.2", "--alert", "\(alert)"],
            Verdict(cause: cause, side: side, rule: rule, words: words)
        )
    }

    @Test(arguments: [
        (
            UInt8(80), "tls-alert-server", "server", "RFC 8446 §6",
            ["the server ", "(alert internal_error)", "look in the server's log"]
        ),
        (112, "tls-alert-server", "server", "RFC 8446 §6", ["(alert unrecognized_name)"]),
        (40, "tls-incompatible", "server", "RFC 8446 §4.1", ["(alert handshake_failure)", "--tls-min"]),
    ]) func `a server that ends TLS by an alert`(
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
                Verdict(cause: cause, side: side, rule: rule, words: words)
            )
        }
    }

    @Test func `a server that speaks an old version only, and a client`() async throws {
        let rule = "RFC 8446 §4.1"
        try await plain(
            "server of old",
            serverArguments: ["--max", "1.1"],
            Verdict(cause: "tls-incompatible", side: "server", rule: rule, words: ["--tls-min"])
        )
        try await plain(
            "client of old",
            clientArguments: ["--sni", "localhost", "--max", "1.1"],
            Verdict(cause: "tls-incompatible", side: "client", rule: rule, words: ["--tls-min"])
        )
    }

    // MARK: ALPN

    @Test func `a server that speaks none of the protocols offered`() async throws {
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
        let facts = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--sni", "localhost", "--alpn", "xmpp-client"]
        )
        #expect(facts.error != nil)
        try await tap.stop()
        _ = try await server.terminate()
        try await Self.check(
            tap,
            Verdict(
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
    func `a client that offers no protocol of XMPP where the proxy chooses`() async throws {
        let own = try await InterceptAuthority()
        let server = try await ProsodyServer()
        let tap = try await Tap(
            upstream: server.port,
            arguments: own.arguments + ["--client-tls", "direct", "--server-tls", "off"]
        )
        let facts = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--sni", "localhost", "--alpn", "h2"]
        )
        #expect(facts.error?.contains("no application protocol") == true, "\(facts)")
        try await tap.stop()
        try await server.stop()
        try await Self.check(
            tap,
            Verdict(
                cause: "alpn-mismatch",
                side: "client",
                rule: "RFC 7301 §3.2",
                words: ["offers no protocol by ALPN that is spoken here", "let the client offer xmpp-client"]
            ),
            "ALPN of the client",
            sourceLocation: #_sourceLocation
        )
    }
}

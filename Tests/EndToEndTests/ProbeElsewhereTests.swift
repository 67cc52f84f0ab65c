import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap probe` with DNS records, through the proxy, with other servers than Prosody, and in comparison
/// with a recorded client.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ProbeElsewhereTests {
    @Test(
        .enabled(if: TestProgram.areInstalled(.prosody, .openssl, .dnsmasq), "Prosody, openssl or dnsmasq is missing")
    )
    func `probe lists the servers of both SRV services of a domain`() async throws {
        let account = Account("juliet", domain: "example.org", password: Account.juliet.password)
        let scene = try await ProbeScene(account: account, names: ["DNS:example.org"])
        let closed = try FreePort.next()
        let names = try await NameServer([
            "srv-host=_xmpp-client._tcp.example.org,xmpp.example.org,\(closed),5,1",
            "srv-host=_xmpps-client._tcp.example.org,xmpp.example.org,\(scene.direct),10,1",
            "srv-host=_xmpp-client._tcp.example.org,xmpp.example.org,\(scene.server.port),20,1",
            "host-record=xmpp.example.org,127.0.0.1",
        ])
        let flags = [
            account.jid, "--resolver", "127.0.0.1:\(names.port)", "--upstream-ca", scene.authority.root,
        ]
        let probed = try await Probed(flags + (try scene.password()))
        #expect(probed.ending == .exited(0), "\(probed.output)")
        #expect(probed.tells("✓ names", "_xmpp-client: xmpp.example.org:"))
        #expect(probed.tells("_xmpps-client: xmpp.example.org:\(scene.direct) (10 1)"))
        #expect(probed.tells("! connection", "127.0.0.1:\(closed): connection refused"))
        #expect(probed.tells("✓ connection", "127.0.0.1:\(scene.direct)"))
        #expect(probed.tells("✓ tls", "direct TLS"))
        #expect(probed.tells("A  direct TLS"))
        #expect(
            probed.tells("✓ alternative", "STARTTLS at 127.0.0.1:\(scene.server.port): TLS 1.3, same certificate")
        )
        #expect(probed.tells("✓ juliet@example.org can log in"))

        // The second service is announced, but no server listens there, so clients that choose it cannot connect.
        let half = try await NameServer([
            "srv-host=_xmpp-client._tcp.example.org,xmpp.example.org,\(scene.server.port),1,1",
            "srv-host=_xmpps-client._tcp.example.org,xmpp.example.org,\(closed),2,1",
            "host-record=xmpp.example.org,127.0.0.1",
        ])
        let broken = try await Probed([
            "example.org", "--resolver", "127.0.0.1:\(half.port)", "--upstream-ca", scene.authority.root,
        ])
        #expect(broken.ending == .exited(0), "\(broken.output)")
        #expect(broken.tells("✗ alternative", "direct TLS:"))
        #expect(broken.tells("F  direct TLS", "announced in DNS, but broken"))
        try await half.stop()

        let nobody = try await Probed(["juliet@example.net", "--resolver", "127.0.0.1:\(names.port)"])
        #expect(nobody.ending == .exited(4))
        #expect(nobody.tells("✗ names", "_xmpp-client: no such records"))
        #expect(nobody.tells("cannot reach a server of juliet@example.net: DNS look-up failed"))
        #expect(nobody.tells("--via HOST:PORT"))
        try await names.stop()
        try await scene.server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing"))
    func `probe trusts the proxy's authority, by STARTTLS and by direct TLS`() async throws {
        let scene = try await InterceptScene()
        let folder = try TemporaryFolder()
        let password = try folder.write(Account.juliet.password, to: "password")
        let flags = ["juliet@localhost", "--upstream-ca", scene.authority, "--password-file", password]
        for (port, more) in [(scene.tap.port, []), (scene.directPort, ["--direct-tls"])] {
            let probed = try await Probed(flags + ["--via", "127.0.0.1:\(port)"] + more)
            #expect(probed.ending == .exited(0), "\(probed.output)")
            #expect(probed.tells("issued by CN=xmpptap CA for localhost"))
            #expect(probed.tells("✓ login", "SCRAM-SHA-256;"))
        }
        try await scene.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.ejabberd, .openssl), "ejabberd or openssl is missing"))
    func `probe uses ejabberd's tls-unique binding, and --no-binding logs in without it`() async throws {
        let certificate = try await TestCertificate()
        let server = try await EjabberdServer(secured: (certificate, [.juliet]), withoutTLS13: true)
        let folder = try TemporaryFolder()
        let password = try folder.write(Account.juliet.password, to: "password")
        let flags = [
            "juliet@localhost", "--via", "127.0.0.1:\(server.port)", "--upstream-ca", certificate.certificate,
            "--password-file", password,
        ]
        let bound = try await Probed(flags)
        #expect(bound.ending == .exited(0), "\(bound.output)\(server.log.suffix(2000))")
        #expect(bound.tells("✓ tls", "TLS 1.2"))
        #expect(bound.tells("✓ login", "SCRAM-SHA-512-PLUS, channel binding tls-unique"))
        #expect(bound.tells("B  channel binding", "tls-unique by convention"))
        #expect(bound.tells("✓ stream management", "resumable for 5 min"))
        let unbound = try await Probed(flags + ["--no-binding"])
        #expect(unbound.ending == .exited(0), "\(unbound.output)")
        #expect(unbound.tells("! login", "SCRAM-SHA-512;"))

        // Channel binding detects a proxy that terminates TLS.
        let own = try await InterceptAuthority()
        let tap = try await Tap(
            upstream: server.port,
            arguments: own.arguments + ["--upstream-ca", certificate.certificate]
        )
        let between = try await Probed([
            "juliet@localhost", "--via", "127.0.0.1:\(tap.port)", "--upstream-ca", own.certificate, "--password-file",
            password,
        ])
        #expect(between.ending == .exited(1), "\(between.output)")
        #expect(between.tells("✗ login", "SCRAM-SHA-512-PLUS, channel binding tls-unique: the server answered"))
        #expect(
            between.tells("channel binding does not match: the server has a different TLS connection"),
            "\(between.output)"
        )
        #expect(between.tells("cause: the network between this machine and the server"))
        #expect(between.output.contains("--no-binding"))
        try await tap.stop()
        try await server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing"))
    func `probe grades direct TLS by its ALPN protocol and TLS version`() async throws {
        let certificate = try await TestCertificate()
        for (flags, ending, words) in [
            (["--alpn", "xmpp-client"], 0, "ALPN xmpp-client, direct TLS"),
            (["--max", "1.2"], 0, "TLS 1.2, "), (["--max", "1.1"], 1, "none of the offered TLS versions"),
        ] {
            let port = try FreePort.next()
            let peer = try await TLSPeer.serve(
                port: port,
                certificate: certificate.certificate,
                key: certificate.key,
                flags
            )
            let probed = try await Probed([
                "localhost", "--via", "127.0.0.1:\(port)", "--direct-tls", "--upstream-ca", certificate.certificate,
            ])
            #expect(probed.ending == .exited(Int32(ending)), "\(probed.output)")
            #expect(probed.output.replacing(/\s+/, with: " ").contains(words), "\(probed.output)")
            #expect(!probed.output.contains("--tls-min"))
            if ending == 0 { #expect(probed.tells("C  mechanisms", "only PLAIN")) }
            try await peer.stop()
        }
    }

    @Test(
        .enabled(
            if: TestProgram.areInstalled(.prosody, .openssl, .slixmpp),
            "Prosody, openssl or slixmpp is missing"
        )
    )
    func `--with compares the probe with a recorded client and shows the step that failed`() async throws {
        let scene = try await InterceptScene()
        let wrong = Account("juliet", password: "wr0ng-passw0rd")
        let trust = ["--ca", scene.authority]
        let failing = try ScriptedClient(
            .slixmpp,
            as: wrong,
            port: scene.tap.port,
            startTLS: true,
            .init(),
            options: trust
        )
        try await failing.event("failed")
        let well = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            .init(),
            options: trust
        )
        try await well.finish()
        let folder = try TemporaryFolder()
        let password = try folder.write(Account.juliet.password, to: "password")
        try await scene.tap.stop()
        let flags = [
            "juliet@localhost", scene.tap.json, "--via", "127.0.0.1:\(scene.server.port)", "--upstream-ca",
            scene.real.certificate, "--password-file", password,
        ]
        let probed = try await Probed(flags)
        #expect(probed.ending == .exited(1), "\(probed.error)")
        #expect(probed.tells("✓ juliet@localhost can log in"))
        #expect(probed.tells("the probe", "session 1, juliet"))
        #expect(probed.tells("✓ mechanism SCRAM-SHA-256", "✓ mechanism SCRAM-SHA-256"))
        #expect(probed.tells("✓ sasl success", "≠ ✗ sasl failure  ← first difference"))
        #expect(probed.tells("✗ the client failed at SASL (not-authorized"))
        // The client's actions after its first failure, and the time when it disconnects, vary.
        #expect(probed.tells("  try: "))
        #expect(probed.lines.allSatisfy { $0.count <= 100 }, "\(probed.output)")

        let same = try await Probed(flags + ["--with", "2", "--json"])
        #expect(same.ending == .exited(0))
        let objects = try same.objects()
        let comparison = try #require(objects.first { $0["kind"] as? String == "comparison" })
        #expect(comparison["session"] as? Int == 2 && comparison["ready"] as? Bool == true)
        #expect(comparison["text"] as? String == "the client took the same steps, and its login completed")
        let steps = objects.filter { $0["kind"] as? String == "comparison-step" }
        #expect(steps.count > 10 && steps.allSatisfy { $0["differs"] as? Bool == false })
        #expect(steps.last?["client"] as? String == "ready: ok")

        let none = try await Probed(flags + ["--with", "77"])
        #expect(none.ending == .exited(2) && none.error.contains("has no such session"))
        try await scene.server.stop()
    }
}

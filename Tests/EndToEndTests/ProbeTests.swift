import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap probe` with Prosody.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing")
)
struct ProbeTests {
    @Test func `probe shows the steps of a successful login`() async throws {
        let scene = try await ProbeScene()
        let probed = try await scene.probe(try scene.password())
        #expect(probed.ending == .exited(0), "\(probed.output)\(probed.error)")
        #expect(probed.error.isEmpty)
        let end = "\n"
        #expect(
            probed.plain == """
                juliet@localhost

                  ✓ connection   TIME  127.0.0.1:PORT
                  ✓ starttls   TIME  offered and required
                  ✓ tls   TIME  TLS 1.3, TLS_AES_256_GCM_SHA384
                  ✓ certificate                 for localhost
                                                issued by CN=Test Authority
                                                EC P-256, valid until DATE, 100 days left
                                                SHA-256 FINGERPRINT:
                                                        FINGERPRINT
                  ✓ offer   TIME  SASL: MECHANISMS
                  ✓ login   TIME  SCRAM-SHA-256; both sides proved that they know the password
                  ✓ bind   TIME  juliet@localhost/RESOURCE
                  ✓ stream management   TIME  resumable for 10 min
                  ✓ ping   TIME  answered
                  ✓ server   TIME  Prosody VERSION, features (XEP-0030)

                  A  TLS version           TLS 1.3 (RFC 8446)
                  A  certificate           for localhost, issuer trusted, 100 days left (RFC 6120 §13.7.2)
                  A  required TLS          STARTTLS is required before any other feature (RFC 6120 §5.3.1)
                  ?  direct TLS            unknown: no DNS records were queried (XEP-0368 §3)
                  A  mechanisms            SCRAM with SHA-2: the password is never revealed (RFC 7677)
                  B  channel binding       not offered: a man in the middle with a certificate for the domain is not
                                           detected (XEP-0440)
                  B  downgrade protection  mechanisms are not signed: removed mechanisms are not detected (XEP-0474)
                  A  stream management     sessions survive a lost connection (XEP-0198)

                ✓ juliet@localhost can log in, ready after TIME
                  grade B for channel binding, downgrade protection
                """ + end,
            "\(probed.output)"
        )
        let printed = probed.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        try Documentation.check(.probe, printed.map(String.init))
        #expect(probed.lines.allSatisfy { $0.count <= 100 }, "\(probed.output)")
        #expect(!probed.output.contains("\u{1B}"))
        try await scene.server.stop()
    }

    @Test func `probe reports a wrong password without showing it`() async throws {
        let scene = try await ProbeScene()
        let log = scene.folder.path(of: "probe.log")
        let probed = try await scene.probe(
            try scene.password("wr0ng-passw0rd") + ["--log-to", "\(log),trace"]
        )
        #expect(probed.ending == .exited(1))
        #expect(probed.tells("✗ login", "SCRAM-SHA-256: the server answered not-authorized"))
        #expect(probed.tells("✗ juliet@localhost cannot log in: SASL failed"))
        #expect(probed.tells("cause: the account or this machine"))
        #expect(probed.tells("try: check the password"))
        let all = probed.output + probed.error + scene.folder.read("probe.log")
        #expect(scene.folder.read("probe.log").contains("SEND: <auth "))
        #expect(!all.contains("wr0ng-passw0rd") && !all.contains("d3IwbmctcGFzc3cwcmQ"))
        try await scene.server.stop()
    }

    @Test(
        arguments: [
            (
                ["DNS:localhost"], "20240101000000Z", "20250101000000Z", true, "expired on 2025-01-01",
                "certificate-expired"
            ),
            (
                ["DNS:capulet.example"], nil, nil, true, "it is for capulet.example, not for localhost",
                "certificate-wrong-name"
            ),
            (["DNS:localhost"], nil, nil, false, "its issuer is not trusted", "certificate-unknown-issuer"),
        ]
    )
    func `probe shows a refused certificate, and sends no password to that server`(
        names: [String],
        start: String?,
        end: String?,
        isTrusted: Bool,
        words: String,
        cause: String
    ) async throws {
        let scene = try await ProbeScene(names: names, start: start, end: end)
        let other = try await TestAuthority()
        let root = isTrusted ? scene.authority.root : other.root
        let probed = try await scene.probe(try scene.password(), trusting: root)
        #expect(probed.ending == .exited(1))
        #expect(probed.tells("✗ certificate", "not trusted: "), "\(probed.output)")
        #expect(probed.output.replacing(/\s+/, with: " ").contains(words), "\(probed.output)")
        #expect(probed.tells("– login", "password not sent"))
        #expect(probed.tells("✓ offer", "SCRAM-SHA-256"))
        #expect(probed.tells("F  certificate"))
        #expect(probed.tells("✗ juliet@localhost cannot log in: TLS failed"))
        #expect(!probed.output.replacing("--upstream-ca", with: "").contains("--upstream"))
        let json = try await scene.probe(try scene.password() + ["--json"], trusting: root)
        #expect(try json.objects().last?["cause"] as? String == cause)
        #expect(scene.server.log.contains("<starttls") && !scene.server.log.contains("<auth"))
        try await scene.server.stop()
    }

    @Test func `Without a password, probe grades the server's offer`() async throws {
        let scene = try await ProbeScene()
        let probed = try await Probed([
            "localhost", "--via", "127.0.0.1:\(scene.direct)", "--direct-tls", "--upstream-ca", scene.authority.root,
        ])
        #expect(probed.ending == .exited(0), "\(probed.output)")
        #expect(probed.tells("✓ tls", "direct TLS"))
        #expect(probed.tells("A  direct TLS", "supported on this port"))
        #expect(probed.tells("?  downgrade protection", "unknown without a login"))
        #expect(!probed.tells("stream management") && !probed.tells("login  "))
        #expect(probed.tells("✓ the server can be reached", "--password-file"))
        #expect(probed.tells("grade B for channel binding"))
        try await scene.server.stop()
    }

    @Test func `A certificate that expires soon gets a low grade, but the login works`() async throws {
        let scene = try await ProbeScene(end: ProbeScene.moment(days: 3.5))
        let probed = try await scene.probe(try scene.password())
        #expect(probed.ending == .exited(0))
        #expect(probed.tells("! certificate") && probed.tells("3 days left"))
        #expect(probed.tells("C  certificate", "expires in 3 days: renew it now"))
        #expect(probed.tells("grade C for certificate"))
        try await scene.server.stop()
    }

    @Test func `A local server without TLS gets grade F, and probe can log in to it`() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let via = ["juliet@localhost", "--via", "127.0.0.1:\(server.port)"]
        let offered = try await Probed(via)
        #expect(offered.ending == .exited(1))
        #expect(offered.tells("F  TLS version", "no TLS"))
        #expect(offered.tells("F  required TLS", "PLAIN is offered without TLS"))
        #expect(offered.tells("cannot log in: STARTTLS failed"))
        #expect(offered.tells("the server does not offer TLS (RFC 6120 §13.8.1)"))
        let password = try folder.write(Account.juliet.password, to: "password")
        let login = try await Probed(via + ["--password-file", password])
        #expect(login.ending == .exited(0), "\(login.output)")
        #expect(login.tells("✓ login", "SCRAM-SHA-256;"))
        #expect(login.tells("grade F for TLS version, required TLS"))
        try await server.stop()
    }

    @Test func `--json prints one object a line, with its kind`() async throws {
        let scene = try await ProbeScene()
        let probed = try await scene.probe(try scene.password() + ["--json"])
        #expect(probed.ending == .exited(0))
        let objects = try probed.objects()
        #expect(
            objects.first?["kind"] as? String == "probe" && objects.first?["account"] as? String == "juliet@localhost"
        )
        let steps = objects.filter { $0["kind"] as? String == "step" }
        #expect(
            steps.compactMap { $0["step"] as? String } == [
                "connection", "starttls", "tls", "certificate", "offer", "login", "bind", "stream-management", "ping",
                "server",
            ]
        )
        #expect(steps.allSatisfy { ["ok", "note"].contains($0["outcome"] as? String) && $0["text"] is String })
        let certificate = try #require(steps[3]["details"] as? [String: Any])
        #expect(certificate["days_left"] as? Int == 100)
        #expect((certificate["fingerprint"] as? String)?.count == 95)
        let grades = objects.filter { $0["kind"] as? String == "grade" }
        #expect(grades.count == 8 && grades.allSatisfy { $0["rule"] is String })
        let diagnosis = try #require(objects.last)
        #expect(diagnosis["kind"] as? String == "result" && diagnosis["outcome"] as? String == "ready")
        #expect(
            (diagnosis["jid"] as? String)?.hasPrefix("juliet@localhost/") == true && diagnosis["duration"] is Double
        )
        try await scene.server.stop()
    }

    @Test func `The probe's session is logged and captured`() async throws {
        let scene = try await ProbeScene()
        let capture = scene.folder.path(of: "probe.xtap")
        let probed = try await scene.probe(try scene.password() + ["--log", "verbose", "--capture", capture])
        #expect(probed.ending == .exited(0))
        for words in ["SEND: <starttls", "RECV: <proceed", "SEND: <auth ", "RECV: <success", "<enable "] {
            #expect(probed.output.contains(words), "\(words)")
        }
        #expect(!probed.output.contains("unexpected-restart") && !probed.output.contains(" error "))
        #expect(!probed.output.contains("<presence"))
        let told = try await XMPPTapBinary.run(["explain", capture])
        #expect(told.ending == .exited(0), "\(told.output)\(told.error)")
        #expect(told.output.contains("leg server; begins starttls"))
        #expect(told.output.contains("ready"))
        try await scene.server.stop()
    }

    @Test func `probe reports an unreachable server and a silent one`() async throws {
        let closed = try FreePort.next()
        let nobody = try await Probed(["juliet@localhost", "--via", "127.0.0.1:\(closed)"])
        #expect(nobody.ending == .exited(4))
        #expect(nobody.tells("cannot reach a server of juliet@localhost: connect failed"))
        let mute = try RawListener()
        let silent = try await Probed(["juliet@localhost", "--via", "127.0.0.1:\(mute.port)", "--timeout", "1"])
        #expect(silent.ending == .exited(1))
        #expect(silent.tells("✗ stream", "no answer"))
        #expect(silent.tells("the server did not send a byte for 1 s"))
    }

    @Test func `probe times out if the server sends data but no answer`() async throws {
        let listener = try RawListener()
        let busy = Task {
            let connection = try await listener.accept()
            _ = try await connection.write(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
            )
            while !Task.isCancelled {
                _ = try await connection.write(" ")
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        let probed = try await Probed(["juliet@localhost", "--via", "127.0.0.1:\(listener.port)", "--timeout", "1"])
        busy.cancel()
        #expect(probed.ending == .exited(1))
        #expect(probed.tells("✗ stream", "no answer"))
    }

    @Test func `probe validates its arguments first`() async throws {
        let folder = try TemporaryFolder()
        let open = try folder.write("secret\n", to: "password")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: open)
        let cases: [([String], Int32, String)] = [
            (["@"], 2, "is not an account"), ([], 2, "account"),
            (["localhost", "--password-file", open], 2, "juliet@localhost"),
            (["a@localhost", "--json", "--log", "info"], 2, "--log-to"),
            (["a@localhost", "--with", "3"], 2, "--with needs a file"),
            (["a@localhost", "--via", "localhost:1", "--resolver", "127.0.0.1:53"], 2, "leave one out"),
            (["a@localhost", folder.path(of: "none")], 3, "none"),
            (["a@localhost", "--password-file", folder.path(of: "none")], 3, "--password-file: cannot read"),
            (["a@localhost", "--upstream-ca", folder.path(of: "none")], 3, "--upstream-ca: "),
            // The option's earlier name.
            (["a@localhost", "--ca", folder.path(of: "none")], 3, "--upstream-ca: "),
            (["a@localhost", "--password-file", open], 3, "other users can read --password-file"),
        ]
        for (arguments, code, words) in cases {
            let probed = try await Probed(arguments)
            #expect(probed.ending == .exited(code), "\(arguments): \(probed.error)")
            #expect(probed.error.contains(words), "\(arguments): \(probed.error)")
        }
    }
}

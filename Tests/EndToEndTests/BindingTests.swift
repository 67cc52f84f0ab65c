import TapTestKit
import Testing

/// Tests of logins with channel binding through a proxy that terminates TLS. The client (with aiosasl) and the server
/// use pyOpenSSL to compute the channel binding of their connections, because Debian's servers support neither
/// tls-exporter nor tls-server-end-point.
@Suite(.timeLimit(.minutes(3)), .serialized, .enabled(if: BindingPeer.isInstalled, "aiosasl or pyOpenSSL is missing"))
struct BindingTests {
    /// A scripted server, and a proxy (`tap`) in front of it.
    private struct Scene {
        let server: BindingPeer
        let tap: Tap
        /// The path of the certificate that the client has to trust.
        let trusted: String
        private let folder: TemporaryFolder
        private let certificate: TestCertificate
        private let authority: InterceptAuthority

        /// - Parameters:
        ///   - hasAccount: Whether the proxy has juliet's password.
        ///   - hasKey: Whether the proxy shows clients the server's own certificate.
        ///   - isShown: Whether the server asks for a client certificate and the proxy sends the server's own one.
        init(
            _ mechanisms: [String] = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"],
            bindings: [String],
            version: String = "1.3",
            hasAccount: Bool,
            hasKey: Bool = false,
            isShown: Bool = false
        ) async throws {
            // aiosasl can compute tls-server-end-point only for certificates with RSA signatures.
            certificate = try await TestCertificate(isRSA: true)
            folder = try TemporaryFolder()
            authority = try await InterceptAuthority()
            let port = try FreePort.next()
            server = try await BindingPeer.serve(
                port: port,
                certificate: certificate.certificate,
                key: certificate.key,
                mechanisms: mechanisms,
                bindings: bindings,
                ["--version", version] + (isShown ? ["--ca", certificate.certificate] : [])
            )
            var arguments = authority.arguments + ["--upstream-ca", certificate.certificate]
            if hasAccount {
                try folder.write(Account.juliet.password, to: "password")
                arguments += ["--accounts", try folder.write("\(Account.juliet.jid) password", to: "accounts")]
            }
            if hasKey { arguments += ["--certificate", certificate.certificate, "--key", certificate.key] }
            if isShown {
                arguments += ["--upstream-certificate", certificate.certificate, "--upstream-key", certificate.key]
            }
            trusted = hasKey ? certificate.certificate : authority.certificate
            tap = try await Tap(upstream: port, arguments: arguments)
        }

        func logIn(_ binding: String, _ arguments: [String] = []) async throws -> BindingPeer.Parameters {
            try await BindingPeer.logIn(port: tap.port, trusting: trusted, binding: binding, arguments)
        }

        /// Stops the proxy and the server, and returns what the server recorded about the only login.
        func end() async throws -> BindingPeer.Parameters {
            let parameters = try await server.login()
            try await tap.stop()
            defer { withExtendedLifetime(certificate) {} }
            try await server.stop()
            return parameters
        }
    }

    // MARK: With the server's certificate

    @Test func `with --certificate, aiosasl binds to the server's certificate, and nothing is edited`() async throws {
        let scene = try await Scene(
            bindings: ["tls-exporter", "tls-server-end-point"],
            hasAccount: false,
            hasKey: true
        )
        let parameters = try await scene.logIn("tls-server-end-point", ["--provider", "aiosasl"])
        #expect(parameters.error == nil && parameters.jid == "juliet@localhost/b")
        let server = try await scene.end()
        #expect(server.flag == "p=tls-server-end-point" && server.error == nil)
        let records = try scene.tap.records()
        #expect(!records.contains { $0.origin == "tap" })
        #expect(!records.contains { $0.code == "channel-binding" })
    }

    @Test func `with --certificate, a login bound to the TLS connection fails as predicted`() async throws {
        let scene = try await Scene(
            bindings: ["tls-exporter", "tls-server-end-point"],
            hasAccount: false,
            hasKey: true
        )
        let parameters = try await scene.logIn("tls-exporter")
        #expect(parameters.error?.contains("not-authorized") == true)
        #expect(try await scene.end().error == "channel-bindings-dont-match")
        let records = try scene.tap.records()
        let forecast = try #require(records.last { $0.code == "channel-binding" })
        #expect(forecast.level == "warn" && forecast.message?.contains("tls-exporter differs") == true)
        let diagnosis = try #require(records.first { $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "channel-binding-mismatch")
        #expect(diagnosis.message?.contains("(--accounts)") == true)
    }

    @Test func `with --accounts, aiosasl binds to the server's certificate and xmpptap to its connection`()
        async throws
    {
        let scene = try await Scene(bindings: ["tls-exporter"], hasAccount: true, hasKey: true)
        let parameters = try await scene.logIn("tls-server-end-point", ["--provider", "aiosasl"])
        #expect(parameters.error == nil && parameters.jid == "juliet@localhost/b" && parameters.signed == ["h", "t"])
        #expect(parameters.bindings == ["tls-exporter", "tls-server-end-point"])
        let server = try await scene.end()
        #expect(server.flag == "p=tls-exporter" && server.error == nil)
    }

    // MARK: With an account

    @Test(arguments: [
        ("tls-exporter", "tls-exporter", "1.3"), ("tls-server-end-point", "tls-exporter", "1.3"),
        ("tls-exporter", "tls-server-end-point", "1.3"), ("tls-unique", "tls-unique", "1.2"),
        ("tls-exporter", "tls-unique", "1.2"), ("tls-server-end-point", "tls-server-end-point", "1.2"),
    ])
    func `each leg uses the channel binding type that its peer supports`(
        client: String,
        server: String,
        version: String
    ) async throws {
        let scene = try await Scene(bindings: [server], version: version, hasAccount: true)
        let parameters = try await scene.logIn(client)
        #expect(parameters.error == nil && parameters.jid == "juliet@localhost/b")
        #expect(parameters.mechanism == "SCRAM-SHA-256-PLUS" && parameters.version == "TLSv\(version)")
        // The proxy signs what it offers to this client (`h`, XEP-0474) and the TLS version (`t`, XEP-0515).
        #expect(parameters.signed == ["h", "t"])
        let seen = try await scene.end()
        #expect(seen.error == nil && seen.mechanism == "SCRAM-SHA-256-PLUS" && seen.flag == "p=\(server)")
        #expect(seen.version == "TLSv\(version)")
        let records = try scene.tap.records()
        let own = try #require(records.first { $0.code == "own-login" }?.message)
        #expect(own.hasSuffix("by SCRAM-SHA-256-PLUS, channel binding \(server)"))
        #expect(records.contains { $0.code == "session-ready" })
        #expect(!Tap.read(scene.tap.json).contains(Account.juliet.password))
    }

    @Test func `the log has the server's features and the features relayed to the client`() async throws {
        let scene = try await Scene(["SCRAM-SHA-256-PLUS", "X-OAUTH2"], bindings: ["tls-exporter"], hasAccount: true)
        let parameters = try await scene.logIn("tls-exporter")
        #expect(parameters.error == nil && parameters.mechanisms == ["SCRAM-SHA-256-PLUS"])
        _ = try await scene.end()
        let features = try scene.tap.records().filter {
            $0.xml?.contains("X-OAUTH2") == true
        }
        #expect(features.count == 1)
        #expect(features.first?.message?.contains("relayed with") == true, "\(features.map(\.message))")
    }

    @Test func `xmpptap logs in with EXTERNAL while the client logs in with its password`()
        async throws
    {
        let scene = try await Scene(["EXTERNAL"], bindings: [], hasAccount: true, isShown: true)
        let parameters = try await scene.logIn("tls-exporter")
        #expect(
            parameters.error == nil && parameters.jid == "juliet@localhost/b"
                && parameters.mechanism == "SCRAM-SHA-256-PLUS"
        )
        let server = try await scene.end()
        #expect(server.mechanism == "EXTERNAL" && server.error == nil)
        #expect(server.authzid == "juliet@localhost" && server.subject == "localhost")
    }
}

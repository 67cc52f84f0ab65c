import TapTestKit
import Testing

/// Tests of `--accounts`: the proxy terminates TLS and performs logins with channel binding itself, with real clients
/// and servers.
@Suite(.timeLimit(.minutes(3)), .serialized) struct AccountsTests {
    private static let isInstalled = TestProgram.areInstalled(.ejabberd, .slixmpp, .openssl)

    /// An ejabberd server, which uses TLS 1.2 here by default and therefore tls-unique, and a proxy (`tap`) in front of
    /// it.
    private struct Scene {
        let server: EjabberdServer
        let tap: Tap
        let authority: InterceptAuthority
        let folder: TemporaryFolder

        /// - Parameter passwords: The accounts in the proxy's file; nil starts it without `--accounts`.
        init(passwords: [Account]?, arguments more: [String] = [], withoutTLS13: Bool = true) async throws {
            let certificate = try await TestCertificate()
            folder = try TemporaryFolder()
            authority = try await InterceptAuthority()
            server = try await EjabberdServer(secured: (certificate, [.juliet, .romeo]), withoutTLS13: withoutTLS13)
            var arguments = authority.arguments + ["--upstream-ca", certificate.certificate] + more
            if let passwords { arguments += ["--accounts", try Self.file(passwords, in: folder)] }
            tap = try await Tap(upstream: server.port, arguments: arguments)
        }

        static func file(_ accounts: [Account], in folder: TemporaryFolder) throws -> String {
            for account in accounts { try folder.write("\(account.password)\n", to: "\(account.user).password") }
            let lines = accounts.map { "\($0.jid) \($0.user).password" }
            return try folder.write("# who\n" + lines.joined(separator: "\n") + "\n", to: "accounts")
        }

        func client(_ account: Account, _ script: ScriptedClient.Script = .init()) throws -> ScriptedClient {
            try ScriptedClient(
                .slixmpp,
                as: account,
                port: tap.port,
                startTLS: true,
                script,
                options: ["--ca", authority.certificate, "--mechanism", "SCRAM-SHA-1-PLUS", "--timeout", "20"]
            )
        }

        func stop() async throws {
            try await tap.stop()
            try await server.stop()
        }
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `without --accounts, slixmpp's bound login to ejabberd fails as predicted`() async throws {
        let scene = try await Scene(passwords: nil)
        let client = try scene.client(.juliet)
        await #expect(throws: KitError.self) { try await client.finish() }
        try await scene.stop()
        let records = try scene.tap.records().filter { $0.session == 1 }
        let forecast = try #require(records.last { $0.code == "channel-binding" })
        #expect(forecast.level == "warn")
        let words = "the server must refuse this login: tls-unique differs between the two TLS connections"
        #expect(forecast.message?.contains(words) == true)
        let failure = try #require(records.first { $0.code == "sasl-failure" })
        #expect(forecast.sequence < failure.sequence)
        let diagnosis = try #require(records.first { $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "channel-binding-mismatch" && diagnosis.details?.proxyIsCause == true)
        #expect(diagnosis.message?.contains("--accounts") == true)
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `with --accounts, slixmpp logs in to ejabberd with channel binding on both legs`() async throws {
        let scene = try await Scene(passwords: [.juliet, .romeo])
        let juliet = try scene.client(.juliet, .init(reply: "Wherefore?", receive: 1))
        try await juliet.event("ready")
        let romeo = try scene.client(.romeo, .init(ping: true, send: [(to: .juliet, body: "But soft!")], receive: 1))
        #expect(try await romeo.finish().contains { $0.event == "received" && $0.body == "Wherefore?" })
        try await juliet.finish()
        try await scene.stop()
        let all = try scene.tap.records()
        all.checkEveryNumberIsThere()
        for session: UInt64 in 1...2 {
            let mine = all.filter { $0.session == session }
            mine.checkNoByteIsMissing()
            let steps = mine.filter { ["auth", "success"].contains($0.name ?? "") && $0.kind == "element" }
            #expect(
                steps.map { "\($0.name ?? "") \($0.direction ?? "") \($0.origin ?? "peer")" } == [
                    "auth send peer", "auth send tap", "success recv peer", "success recv tap",
                ]
            )
            #expect(steps.filter { $0.name == "auth" }.allSatisfy { $0.xml?.contains("-PLUS") == true })
            let own = try #require(mine.first { $0.code == "own-login" }?.message)
            #expect(own.contains("SCRAM-SHA-") && own.contains("-PLUS, channel binding tls-unique"), "\(own)")
            #expect(mine.contains { $0.code == "session-ready" })
        }
        #expect(!all.contains { $0.code == "channel-binding" })
        for path in [scene.tap.json, scene.tap.text, scene.tap.capture, scene.tap.story] {
            let log = Tap.read(path)
            #expect(!log.contains(Account.juliet.password) && !log.contains(Account.romeo.password))
        }
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `with --accounts, xmpptap logs in with channel binding for a client without TLS`() async throws {
        let scene = try await Scene(passwords: [.juliet], arguments: ["--client-tls", "off"])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            options: ["--mechanism", "SCRAM-SHA-1", "--timeout", "20"]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let records = try scene.tap.records().filter { $0.session == 1 }
        let auths = records.filter { $0.name == "auth" && $0.kind == "element" }.compactMap(\.xml)
        #expect(auths.count == 2 && auths[0].contains("SCRAM-SHA-1\"") && auths[1].contains("-PLUS'"), "\(auths)")
        #expect(records.contains { $0.message?.hasSuffix("-PLUS, channel binding tls-unique") == true })
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `without --accounts, a client without TLS logs in without channel binding`() async throws {
        let scene = try await Scene(passwords: nil, arguments: ["--client-tls", "off"])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            options: ["--mechanism", "SCRAM-SHA-1", "--timeout", "20"]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        #expect(!(try scene.tap.records().contains { $0.code == "channel-binding" }))
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `slixmpp's undefined channel binding on TLS 1.3 is refused, but PLAIN works`() async throws {
        let scene = try await Scene(passwords: [.juliet], withoutTLS13: false)
        func client(_ options: [String]) throws -> ScriptedClient {
            try ScriptedClient(
                .slixmpp,
                as: .juliet,
                port: scene.tap.port,
                startTLS: true,
                options: ["--ca", scene.authority.certificate, "--timeout", "20"] + options
            )
        }
        let bound = try client([])
        await #expect(throws: KitError.self) { try await bound.finish() }
        let plain = try client(["--mechanism", "PLAIN"])
        #expect(try await plain.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let records = try scene.tap.records()
        let diagnosis = try #require(records.first { $0.session == 1 && $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "channel-binding-mismatch" && diagnosis.details?.side == "client")
        #expect(diagnosis.details?.rule == "RFC 8446 §C.5")
        #expect(
            diagnosis.message?.contains(
                "channel binding tls-unique is not available on its connection: it is not defined for"
            )
                == true,
            "\(diagnosis.message ?? "")"
        )
        #expect(diagnosis.message?.contains("channel-binding type or PLAIN") == true)
        // On TLS 1.3, ejabberd offers -PLUS mechanisms without naming their binding types, and accepts none of the
        // defined types.
        let own = try #require(records.first { $0.session == 2 && $0.code == "own-login" }?.message)
        #expect(own.contains("by SCRAM-SHA-512, no channel binding: ") && own.contains("(XEP-0440)"), "\(own)")
    }

    @Test(.enabled(if: isInstalled, "ejabberd or slixmpp is missing"))
    func `the log says whose login failed if an account is missing or has a wrong password`()
        async throws
    {
        let scene = try await Scene(passwords: [Account("juliet", password: "not hers")])
        // The client uses the password in the file, which differs from the server's password.
        let wrong = try scene.client(Account("juliet", password: "not hers"))
        await #expect(throws: KitError.self) { try await wrong.finish() }
        let right = try scene.client(.juliet)
        await #expect(throws: KitError.self) { try await right.finish() }
        let missing = try scene.client(.romeo)
        await #expect(throws: KitError.self) { try await missing.finish() }
        try await scene.stop()
        let diagnoses = try scene.tap.records().filter { $0.code == "login-failed" }
        #expect(
            diagnoses.map { $0.details?.cause } == ["own-login-refused", "wrong-password", "channel-binding-mismatch"],
            "\(diagnoses.map(\.message))"
        )
        #expect(diagnoses.map { $0.details?.side } == ["xmpptap", "client", "xmpptap"])
    }

    // MARK: Command line

    @Test func `an exposed password file, a malformed line or a useless flag stops the proxy before it listens`()
        async throws
    {
        let folder = try TemporaryFolder()
        let file = try folder.write("juliet@example.org password", to: "accounts")
        try folder.write("s3cr3t-7", to: "password")
        _ = try await ToolProcess("/bin/chmod", ["644", folder.path(of: "password")]).ending()
        let open = try await XMPPTapBinary.run(["proxy", "--upstream", "127.0.0.1:1", "--accounts", file])
        #expect(open.ending == .exited(3))
        #expect(
            open.error.contains(
                "--accounts: \(file):1: other users can read the password in \(folder.path(of: "password"))"
            )
        )
        #expect(!open.error.contains("s3cr3t-7"))
        try folder.write("juliet@example.org", to: "accounts")
        let bad = try await XMPPTapBinary.run(["proxy", "--upstream", "127.0.0.1:1", "--accounts", file])
        #expect(bad.ending == .exited(3) && bad.error.contains("\(file):1: juliet@example.org has no password file"))
        for arguments in [
            ["--tls", "passthrough", "--upstream", "127.0.0.1:1"], [],
            ["--channel-binding", "strip", "--upstream", "127.0.0.1:1"],
        ] {
            let vain = try await XMPPTapBinary.run(["proxy", "--accounts", file] + arguments)
            #expect(vain.ending == .exited(2) && vain.error.contains("--accounts"), "\(vain.error)")
        }
    }
}

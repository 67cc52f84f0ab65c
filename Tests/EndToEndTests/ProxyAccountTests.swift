import Foundation
import TapTestKit
import Testing

/// Tests `xmpptap proxy juliet@localhost` from the first start to a decoded login.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing")
)
struct ProxyAccountTests {
    /// A Prosody with a self-signed certificate, and a user's folder without a CA.
    private struct Scene {
        let server: ProsodyServer
        let certificate: TestCertificate
        let folder: TemporaryFolder
        /// The certificate's SHA-256 fingerprint in the notation of the openssl tool.
        let fingerprint: String

        /// The command line, with a free port and files in the folder.
        var arguments: [String] {
            arguments(of: "juliet@localhost") + ["--upstream", "127.0.0.1:\(server.port)"]
        }
        var environment: [String: String] {
            [
                "XDG_DATA_HOME": folder.path, "XDG_STATE_HOME": folder.path, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                "NO_COLOR": "1",
            ]
        }
        var log: String { folder.path(of: "tap.json") }
        var authority: String { folder.path(of: "xmpptap/ca/localhost/certificate.pem") }
        var hasAuthority: Bool { FileManager.default.fileExists(atPath: folder.path(of: "xmpptap/ca")) }

        init(certificate domain: String = "localhost") async throws {
            certificate = try await TestCertificate(domain: domain)
            server = try await ProsodyServer(encryption: .both(certificate, direct: FreePort.next()))
            folder = try TemporaryFolder()
            fingerprint = try await certificate.fingerprint()
        }

        func arguments(of account: String) -> [String] {
            [
                "proxy", account, "--listen", "127.0.0.1:0", "--control", "none", "--log-to",
                "\(log),format=json,verbose",
            ]
        }

        /// Starts the proxy without a terminal.
        func proxy(_ further: [String], _ given: [String]? = nil) throws -> XMPPTapBinary {
            try XMPPTapBinary((given ?? arguments) + further, environment: environment)
        }

        /// Starts the proxy on a terminal, and types the answer when the proxy asks.
        func terminal(answer: String) throws -> ToolProcess {
            let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "TapTestKit/Clients/terminal.py").path
            let program = try #require(XMPPTapBinary.path)
            return try ToolProcess(
                "/usr/bin/python3",
                [script, "--columns", "200", "--rows", "50", "--reply", "[y/N] ", answer, "--", program] + arguments,
                environment: environment
            )
        }

        /// Logs juliet in with slixmpp, which trusts only the created CA.
        func logIn(port: UInt16) async throws {
            let client = try ScriptedClient(
                .slixmpp,
                as: .juliet,
                port: port,
                startTLS: true,
                options: ["--ca", authority, "--timeout", "20"]
            )
            #expect(try await client.finish().contains { $0.event == "ready" })
        }

        /// Checks that the log contains exactly one session, which is juliet's and has no errors or warnings.
        func checkLogin() throws {
            let records = try LogRecord.all(in: log)
            #expect(Set(records.compactMap(\.session)) == [1])
            #expect(records.contains { $0.message?.hasPrefix("ready as juliet@localhost/") == true })
            let faults = records.filter { $0.level == "error" || $0.level == "warn" }
            #expect(faults.isEmpty, "\(faults.compactMap(\.message))")
        }
    }

    /// Waits for the complete line with the listening port in a terminal's output, and returns the port.
    private static func port(of terminal: ToolProcess) async throws -> UInt16 {
        while true {
            let isRunning = terminal.isRunning
            let text = terminal.text(of: .standardOutput)
            if let match = text.firstMatch(of: #/listening on 127\.0\.0\.1:(\d+)\s/#), let port = UInt16(match.1) {
                return port
            }
            guard isRunning else { throw terminal.failure("ended before it listened") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `On a terminal, the proxy asks whether to trust a self-signed certificate`()
        async throws
    {
        let scene = try await Scene()
        let terminal = try scene.terminal(answer: "y")
        try await scene.logIn(port: try await Self.port(of: terminal))
        #expect(try await terminal.terminate() == .exited(0))
        try await scene.server.stop()
        let text = terminal.text(of: .standardOutput)
        let question = try #require(text.firstRange(of: "trust this certificate for this run? [y/N] "))
        let listening = try #require(text.firstRange(of: "listening on "))
        let facts = text[..<question.lowerBound]
        #expect(facts.contains("it is self-signed and not trusted"), "\(text)")
        #expect(facts.contains("names        localhost"))
        #expect(facts.contains("issuer       itself, CN=localhost"))
        #expect(facts.contains("SHA-256      \(scene.fingerprint)\r\n"))
        let setup = text[question.upperBound..<listening.lowerBound]
        #expect(setup.contains("to skip the question the next time: --pin \(scene.fingerprint)\r\n"))
        #expect(setup.contains("created a certificate authority for localhost"))
        #expect(setup.contains("its JID stays juliet@localhost\r\n"))
        #expect(setup.contains(#"client.ca_certs = "\#(scene.authority)""#))
        // The status line, the last line of the terminal, is not shown before the question is answered.
        #expect(!facts.contains("stanzas/s") && !facts.contains("\u{1B}"))
        try scene.checkLogin()
    }

    @Test func `Declining the certificate exits with 1 and creates no files`() async throws {
        let scene = try await Scene()
        for answer in ["n", ""] {
            let terminal = try scene.terminal(answer: answer)
            #expect(try await terminal.ending() == .exited(1))
            let text = terminal.text(of: .standardOutput)
            #expect(text.contains("nothing was started") && text.contains("--upstream-ca FILE"), "\(text)")
            #expect(!text.contains("listening on"))
        }
        #expect(!scene.hasAuthority && !FileManager.default.fileExists(atPath: scene.log))
        try await scene.server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `Without a terminal, only --pin or --upstream-ca accepts an untrusted certificate`() async throws {
        let scene = try await Scene(certificate: "other.example")
        let refused = try scene.proxy([])
        #expect(try await refused.process.ending() == .exited(1))
        let words = refused.process.text(of: .standardError)
        #expect(words.contains("it is for other.example, not for localhost"), "\(words)")
        #expect(words.contains("SHA-256      \(scene.fingerprint)\n"))
        #expect(words.contains("--pin \(scene.fingerprint)") && words.contains("--upstream-ca FILE"))

        let wrong = try scene.proxy(["--pin", String(repeating: "0", count: 64)])
        #expect(try await wrong.process.ending() == .exited(1))
        let pinned = wrong.process.text(of: .standardError)
        #expect(pinned.contains("it is not the pinned certificate: its SHA-256 fingerprint is \(scene.fingerprint)"))
        #expect(!pinned.contains("[y/N]") && !scene.hasAuthority)

        let proxy = try scene.proxy(["--pin", scene.fingerprint.replacing(":", with: "").lowercased()])
        try await scene.logIn(port: try await proxy.port())
        #expect(try await proxy.process.terminate() == .exited(0))
        let said = proxy.process.text(of: .standardError)
        #expect(said.contains("certificate pinned, valid until ") && !said.contains("[y/N]"), "\(said)")
        try await scene.server.stop()
        try scene.checkLogin()
    }

    @Test func `An unusable server is reported with a remedy`() async throws {
        let scene = try await Scene()
        let closed = try FreePort.next()
        let pin = ["--pin", scene.fingerprint]
        let server = ["--upstream", "127.0.0.1:\(scene.server.port)"]
        let table: [(arguments: [String], code: Int32, words: [String])] = [
            (
                scene.arguments(of: "juliet@example.org") + server + pin, 1,
                ["cannot use the server of example.org", "host-unknown", "compare the domain of the JID"]
            ),
            (
                scene.arguments(of: "localhost") + ["--upstream", "127.0.0.1:\(closed)"], 4,
                ["127.0.0.1:\(closed)", "connection refused", "check that the server runs"]
            ),
        ]
        for (arguments, code, words) in table {
            let run = try scene.proxy([], arguments)
            #expect(try await run.process.ending() == .exited(code))
            let said = run.process.text(of: .standardError)
            #expect(words.allSatisfy(said.contains), "\(said)")
        }
        #expect(!scene.hasAuthority)
        try await scene.server.stop()
    }

    @Test func `No certificate authority is created in modes that need none`() async throws {
        let scene = try await Scene()
        let clear = try scene.proxy(["--pin", scene.fingerprint, "--client-tls", "off"])
        _ = try await clear.port()
        #expect(try await clear.process.terminate() == .exited(0))
        let said = clear.process.text(of: .standardError)
        #expect(said.contains("point the client at localhost port ") && said.contains(", without TLS; "), "\(said)")
        #expect(!said.contains("must trust"))
        try await scene.server.stop()

        // The proxy does not check a server with TLS passthrough.
        let passed = try scene.proxy(["--tls", "passthrough"])
        _ = try await passed.port()
        #expect(try await passed.process.terminate() == .exited(0))
        #expect(passed.process.text(of: .standardError).contains("its JID stays juliet@localhost"))

        let plain = try await ProsodyServer()
        let address = ["--upstream", "127.0.0.1:\(plain.port)"]
        let warned = try scene.proxy(address, scene.arguments(of: "localhost"))
        _ = try await warned.port()
        #expect(try await warned.process.terminate() == .exited(0))
        let warning = warned.process.text(of: .standardError)
        #expect(warning.contains("offers no TLS") && warning.contains("its JID stays user@localhost"), "\(warning)")
        let required = try scene.proxy(address + ["--server-tls", "required"], scene.arguments(of: "localhost"))
        #expect(try await required.process.ending() == .exited(1))
        #expect(required.process.text(of: .standardError).contains("offers no TLS, which --server-tls required needs"))
        for flags in [["--pin", scene.fingerprint], ["--upstream-ca", scene.certificate.certificate]] {
            let refused = try scene.proxy(address + flags, scene.arguments(of: "localhost"))
            #expect(try await refused.process.ending() == .exited(1))
            let words = refused.process.text(of: .standardError)
            #expect(words.contains("offers no TLS, which \(flags[0]) needs"), "\(words)")
            // Without an account, the proxy starts and refuses the sessions.
            let tap = try scene.proxy(
                ["--upstream", "127.0.0.1:\(plain.port)"] + flags,
                [
                    "proxy", "--listen", "127.0.0.1:0", "--control", "none", "--log", "info",
                ]
            )
            let client = try RawConnection(port: try await tap.port())
            let header = Conversations.plainLogin[0].text.replacing("example.org", with: "localhost")
            try await client.write(header)
            let said = try await client.read(through: "</stream:stream>")
            #expect(said.contains("policy-violation") && !said.contains("PLAIN"), "\(said)")
            #expect(try await tap.process.terminate() == .exited(0))
        }
        try await plain.stop()
        #expect(!scene.hasAuthority)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.dnsmasq, .slixmpp), "dnsmasq or slixmpp is missing"))
    func `SRV records lead to the server, and clients can use STARTTLS if it has only direct TLS`()
        async throws
    {
        let account = Account("juliet", domain: "example.org", password: Account.juliet.password)
        let scene = try await ProbeScene(account: account, names: ["DNS:example.org"])
        let folder = try TemporaryFolder()
        let authority = folder.path(of: "xmpptap/ca/example.org/certificate.pem")
        func records(_ services: (String, UInt16)...) async throws -> NameServer {
            try await NameServer(
                services.map { "srv-host=_\($0.0)-client._tcp.example.org,xmpp.example.org,\($0.1),5,1" }
                    + ["host-record=xmpp.example.org,127.0.0.1"]
            )
        }
        func proxy(_ names: NameServer) throws -> XMPPTapBinary {
            try XMPPTapBinary(
                [
                    "proxy", "juliet@example.org", "--resolver", "127.0.0.1:\(names.port)", "--upstream-ca",
                    scene.authority.root, "--listen", "127.0.0.1:0", "--log", "info", "--control", "none",
                ],
                environment: ["XDG_DATA_HOME": folder.path, "XDG_STATE_HOME": folder.path]
            )
        }
        let both = try await records(("xmpp", scene.server.port), ("xmpp", scene.server.port))
        let first = try proxy(both)
        _ = try await first.port()
        #expect(try await first.process.terminate() == .exited(0))
        let said = first.process.lines(of: .standardError)
        try Documentation.check(.account, said.map { $0.replacing(folder.path, with: "/home/juliet/.local/share") })
        try await both.stop()

        let direct = try await records(("xmpps", scene.direct))
        let second = try proxy(direct)
        let client = try ScriptedClient(
            .slixmpp,
            as: account,
            port: try await second.port(),
            startTLS: true,
            options: ["--ca", authority, "--timeout", "20"]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        #expect(try await second.process.terminate() == .exited(0))
        let told = second.process.lines(of: .standardError)
        #expect(told.contains { $0.contains(": direct TLS, TLS 1.3, certificate verified") }, "\(told)")
        #expect(!told.contains { $0.contains("created a certificate authority") })
        #expect(second.process.text(of: .standardOutput).contains("ready as juliet@example.org/"))
        try await direct.stop()
        try await scene.server.stop()
    }
}

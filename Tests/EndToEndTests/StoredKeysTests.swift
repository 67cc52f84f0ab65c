import Foundation
import TapTestKit
import Testing

/// Tests of `--accounts` with the keys that a real Prosody has stored instead of the passwords.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
)
struct StoredKeysTests {
    /// A Prosody that stores SCRAM keys, and a proxy in front of it that uses these keys.
    private struct Scene {
        let server: ProsodyServer
        let tap: Tap
        let authority: InterceptAuthority
        let folder: TemporaryFolder

        /// - Parameter change: Changes the stored keys.
        init(arguments: [String] = [], _ change: (String) -> String = { $0 }) async throws {
            let certificate = try await TestCertificate()
            let direct = try FreePort.next()
            server = try await ProsodyServer(
                encryption: .both(certificate, direct: direct, version: "1_2"),
                host: "authentication = \"internal_hashed\""
            )
            folder = try TemporaryFolder()
            authority = try await InterceptAuthority()
            try folder.write(change(try Self.record(of: .juliet, server)) + "\n", to: "juliet.keys")
            let accounts = try folder.write("juliet@localhost juliet.keys\n", to: "accounts")
            tap = try await Tap(
                upstream: server.port,
                arguments: authority.arguments + [
                    "--upstream-ca", certificate.certificate, "--accounts", accounts,
                ] + arguments
            )
        }

        /// Returns the keys of an account in the form of RFC 5803. Prosody stores them as hexadecimal digits.
        private static func record(of account: Account, _ server: ProsodyServer) throws -> String {
            let stored = server.storedAccount(account)
            func value(_ name: String) throws -> String {
                let line = try #require(
                    stored.split(separator: "\n").first { $0.contains("[\"\(name)\"]") },
                    "\(stored)"
                )
                let value = try #require(line.split(separator: " = ").last)
                return value.filter { $0 != "\"" && $0 != ";" }
            }
            func base64(_ hex: String) throws -> String {
                let digits = Array(hex)
                let bytes = try stride(from: 0, to: digits.count - 1, by: 2).map {
                    try #require(UInt8(String(digits[$0...($0 + 1)]), radix: 16))
                }
                return Data(bytes).base64EncodedString()
            }
            let salt = Data(try value("salt").utf8).base64EncodedString()
            return "SCRAM-SHA-1$\(try value("iteration_count")):\(salt)$"
                + "\(try base64(try value("stored_key"))):\(try base64(try value("server_key")))"
        }

        func client(_ mechanism: String, as account: Account = .juliet) throws -> ScriptedClient {
            try ScriptedClient(
                .slixmpp,
                as: account,
                port: tap.port,
                startTLS: true,
                .init(ping: true),
                options: ["--ca", authority.certificate, "--mechanism", mechanism, "--timeout", "20"]
            )
        }

        func stop() async throws {
            try await tap.stop()
            try await server.stop()
        }
    }

    @Test(arguments: ["SCRAM-SHA-1-PLUS", "PLAIN"])
    func `with stored keys, slixmpp logs in to Prosody with binding on both legs`(
        mechanism: String
    ) async throws {
        let scene = try await Scene()
        let client = try scene.client(mechanism)
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let records = try scene.tap.records().filter { $0.session == 1 }
        records.checkNoByteIsMissing()
        let own = try #require(records.first { $0.code == "own-login" }?.message)
        #expect(own.hasSuffix("SCRAM-SHA-1-PLUS, channel binding tls-unique"), "\(own)")
        #expect(records.contains { $0.code == "session-ready" })
        for path in [scene.tap.json, scene.tap.text, scene.tap.capture, scene.tap.story] {
            #expect(!Tap.read(path).contains(Account.juliet.password))
        }
    }

    @Test func `with stored keys, a client without TLS logs in unbound, and xmpptap logs in bound`() async throws {
        let scene = try await Scene(arguments: ["--client-tls", "off"])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            options: ["--mechanism", "SCRAM-SHA-1", "--timeout", "20"]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let own = try #require(try scene.tap.records().first { $0.code == "own-login" }?.message)
        #expect(own.hasSuffix("SCRAM-SHA-1-PLUS, channel binding tls-unique"), "\(own)")
    }

    @Test func `xmpptap detects a wrong password with the stored keys alone`() async throws {
        let scene = try await Scene()
        let client = try scene.client("SCRAM-SHA-1-PLUS", as: Account("juliet", password: "not hers"))
        await #expect(throws: KitError.self) { try await client.finish() }
        try await scene.stop()
        let diagnosis = try #require(try scene.tap.records().first { $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "wrong-password", "\(diagnosis.message ?? "")")
    }

    @Test func `outdated stored keys are reported with both iteration counts and the account`() async throws {
        // The keys of the client's password with another salt and iteration count than the server's.
        let scene = try await Scene { _ in
            "SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE="
        }
        let client = try scene.client("SCRAM-SHA-1-PLUS", as: Account("juliet", password: "pencil"))
        await #expect(throws: KitError.self) { try await client.finish() }
        try await scene.stop()
        let records = try scene.tap.records()
        let failed = try #require(records.first { $0.code == "own-login-failed" }?.message)
        #expect(failed.contains("juliet@localhost: the server's iteration count is"), "\(failed)")
        #expect(
            failed.contains("that of the stored keys is 4096") && failed.contains("or use its password"),
            "\(failed)"
        )
        let diagnosis = try #require(records.first { $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "own-login-refused" && diagnosis.details?.side == "xmpptap")
        #expect(diagnosis.message?.contains("that of the stored keys is 4096") == true, "\(diagnosis.message ?? "")")
    }

    @Test func `a malformed key file ends the program before it listens, with file and line`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("# who\njuliet@example.org juliet.keys", to: "accounts")
        let keys = try folder.write("SCRAM-SHA-1$4096:c2FsdA==$c2VjcmV0:c2VjcmV0\n", to: "juliet.keys")
        let bad = try await XMPPTapBinary.run(["proxy", "--upstream", "127.0.0.1:1", "--accounts", file])
        #expect(bad.ending == .exited(3))
        #expect(
            bad.error.contains("--accounts: \(file):2: \(keys):1: both keys of SCRAM-SHA-1 must have 20 bytes"),
            "\(bad.error)"
        )
        #expect(!bad.error.contains("c2VjcmV0"))
        _ = try await ToolProcess("/bin/chmod", ["640", keys]).ending()
        let open = try await XMPPTapBinary.run(["proxy", "--upstream", "127.0.0.1:1", "--accounts", file])
        #expect(
            open.ending == .exited(3)
                && open.error.contains("\(file):2: other users can read the password in \(keys)"),
            "\(open.error)"
        )
    }
}

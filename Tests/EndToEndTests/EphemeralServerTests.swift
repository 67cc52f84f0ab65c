import Foundation
import TapTestKit
import Testing

/// Tests of the built-in server with a proxy that terminates TLS: both use a temporary authority, which is deleted at
/// the end.
@Suite(.timeLimit(.minutes(2))) struct EphemeralServerTests {
    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `slixmpp logs in to the built-in server by STARTTLS, and the temporary authority is deleted`() async throws {
        let folder = try TemporaryFolder()
        let json = folder.path(of: "tap.json")
        let binary = try XMPPTapBinary(
            [
                "proxy", "--listen", "127.0.0.1:0", "--log-to", "\(json),format=json,verbose", "--control", "none",
            ],
            environment: ["TMPDIR": folder.path]
        )
        let port = try await binary.port()
        let said = binary.process.lines(of: .standardError)
        let words = try #require(said.first { $0.contains("juliet@localhost") }).split(separator: " ")
        let password = try #require(words.last.map(String.init))
        let line = try #require(said.first { $0.contains("must trust ") })
        let authority = try #require(line.split(separator: " ").first { $0.hasPrefix("/") }).dropLast()
        #expect(authority.hasPrefix(folder.path) && authority.hasSuffix("/localhost/certificate.pem"))
        let juliet = Account("juliet", password: password)
        let client = try ScriptedClient(
            .slixmpp,
            as: juliet,
            port: port,
            startTLS: true,
            options: ["--ca", String(authority), "--mechanism", "SCRAM-SHA-1"]
        )
        let events = try await client.finish()
        #expect(events.contains { $0.event == "tls" } && events.contains { $0.event == "ready" })
        let clear = try ScriptedClient(.slixmpp, as: juliet, port: port, .init(ping: true))
        #expect(try await clear.finish().contains { $0.event == "pong" })
        #expect(try await binary.process.terminate() == .exited(0))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["tap.json"])
        let opened = try LogRecord.all(in: json).filter { $0.code == "tls-opened" && $0.session == 1 }
        #expect(opened.count == 2)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp, .prosody, .openssl), "slixmpp or Prosody is missing"))
    func `the built-in server offers STARTTLS if another listener has an upstream server`() async throws {
        let folder = try TemporaryFolder()
        let real = try await TestCertificate()
        let own = try await InterceptAuthority()
        let server = try await ProsodyServer(encryption: .startTLS(real))
        let binary = try XMPPTapBinary(
            ["proxy", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0=127.0.0.1:\(server.port)"] + own.arguments
                + ["--upstream-ca", real.certificate, "--log-to", "\(folder.path(of: "tap.json")),format=json"],
            environment: ["TMPDIR": folder.path]
        )
        _ = try await binary.port()
        var ports: [UInt16] = []
        while ports.count < 2 {
            ports = binary.process.lines(of: .standardError).compactMap(XMPPTapBinary.port)
            try await Task.sleep(for: .milliseconds(10))
        }
        let said = binary.process.lines(of: .standardError)
        let password = try #require(said.first { $0.contains("juliet@localhost") }?.split(separator: " ").last)
        let line = try #require(said.first { $0.contains("must trust ") })
        let ephemeral = try #require(line.split(separator: " ").first { $0.hasPrefix("/") }).dropLast()
        let logins: [(UInt16, Account, String)] = [
            (ports[0], Account("juliet", password: String(password)), String(ephemeral)),
            (ports[1], .juliet, own.certificate),
        ]
        for (port, account, authority) in logins {
            let client = try ScriptedClient(
                .slixmpp,
                as: account,
                port: port,
                startTLS: true,
                options: ["--ca", authority, "--timeout", "10"]
            )
            let events = try await client.finish()
            #expect(events.contains { $0.event == "tls" } && events.contains { $0.event == "ready" })
        }
        #expect(try await binary.process.terminate() == .exited(0))
        try await server.stop()
    }
}

import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

/// Tests with real clients that trust only the authority, and a real server that uses a leaf of this authority.
@Suite(.serialized)
struct TrustingClientsTests {
    /// Starts a server with a leaf for localhost; returns it with a judge of the authority.
    private func server() async throws -> (prosody: ProsodyServer, judge: Judge) {
        let now = SystemTime.now
        let authority = try CertificateAuthority(for: .domain("localhost"), at: now)
        let identity = try CertificateMinter([authority]).identity(for: .domain("localhost"), at: now)
        let certificate = try TestCertificate(certificate: identity.leafPEM, key: identity.keyPEM)
        return (try await ProsodyServer(encryption: .startTLS(certificate)), try Judge(authority))
    }

    @Test(
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity, .goSendxmpp),
            "servers or clients are not installed"
        )
    )
    func `Real clients refuse a leaf outside its authority's name constraints`() async throws {
        let authority = try CertificateAuthority(for: .domain("example.org"), at: SystemTime.now)
        let forged = try authority.leaf(
            for: [.domain("localhost")],
            from: authority.begin,
            until: authority.begin + Timestamp.days(90)
        )
        let certificate = try TestCertificate(certificate: forged.leafPEM, key: forged.keyPEM)
        let prosody = try await ProsodyServer(encryption: .startTLS(certificate))
        let judge = try Judge(authority)
        for program in [ScriptedClient.Program.slixmpp, .profanity] {
            let client = try ScriptedClient(
                program,
                as: .juliet,
                port: prosody.port,
                startTLS: true,
                options: ["--ca", judge.authority, "--timeout", "8"]
            )
            await #expect(throws: KitError.self, "\(program)") { try await client.finish() }
            #expect(!client.events.contains { $0.event == "ready" })
        }
        let client = try GoSendxmpp(
            as: .romeo,
            port: prosody.port,
            trusting: judge.authority,
            send: "what light",
            to: .juliet
        )
        let error = await #expect(throws: KitError.self) { try await client.finish() }
        #expect(error.map { "\($0)".contains("is not permitted by any constraint") } == true, "\(error as Any)")
        try await prosody.stop()
    }

    @Test(
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity), "servers or clients are not installed"),
        arguments: [ScriptedClient.Program.slixmpp, .profanity]
    )
    func `slixmpp and profanity log in only if they trust the authority`(
        program: ScriptedClient.Program
    ) async throws {
        let (prosody, judge) = try await server()
        let trusting = try ScriptedClient(
            program,
            as: .juliet,
            port: prosody.port,
            startTLS: true,
            .init(ping: true),
            options: ["--ca", judge.authority]
        )
        #expect(try await trusting.finish().contains { $0.event == "ready" })
        let other = try Judge(CertificateAuthority(for: .domain("localhost"), at: SystemTime.now))
        let wary = try ScriptedClient(
            program,
            as: .juliet,
            port: prosody.port,
            startTLS: true,
            options: ["--ca", other.authority, "--timeout", "8"]
        )
        await #expect(throws: KitError.self) { try await wary.finish() }
        #expect(!wary.events.contains { $0.event == "ready" })
        try await prosody.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .goSendxmpp), "server or client is not installed"))
    func `go-sendxmpp sends only if it trusts the authority`() async throws {
        let (prosody, judge) = try await server()
        let listening = try GoSendxmpp(listeningAs: .juliet, port: prosody.port, trusting: judge.authority)
        // go-sendxmpp does not report when it is ready; the server stores messages until then.
        let sending = try GoSendxmpp(
            as: .romeo,
            port: prosody.port,
            trusting: judge.authority,
            send: "O, speak again",
            to: .juliet
        )
        try await sending.finish()
        try await listening.line(holding: "O, speak again")
        try await listening.stop()
        let other = try Judge(CertificateAuthority(for: .domain("localhost"), at: SystemTime.now))
        let wary = try GoSendxmpp(
            as: .romeo,
            port: prosody.port,
            trusting: other.authority,
            send: "bright angel",
            to: .juliet
        )
        await #expect(throws: KitError.self) { try await wary.finish() }
        try await prosody.stop()
    }
}

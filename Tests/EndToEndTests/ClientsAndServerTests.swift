import TapTestKit
import Testing

/// Tests of the test kit itself: real clients and a real server without a proxy between them.
///
/// If one of these tests fails, the cause is the kit or the machine, and the results of tests through the proxy mean
/// nothing.
@Suite(.timeLimit(.minutes(3)))
struct ClientsAndServerTests {
    @Test(
        "slixmpp logs in to Prosody without TLS, and two accounts talk",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
    )
    func slixmppWithoutTLS() async throws {
        let server = try await ProsodyServer()
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: server.port, .init(reply: "Ay me! 🌹", receive: 1))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: server.port,
            .init(ping: true, send: [(.juliet, "She speaks: <&> \"it is\" my 'lady'")], receive: 1)
        )

        let told = try await romeo.finish()
        let heard = try await juliet.finish()
        #expect(told.map(\.event).prefix(6) == ["connected", "bound", "roster", "present", "pong", "ready"])
        #expect(told.first { $0.event == "received" }?.body == "Ay me! 🌹")
        #expect(heard.first { $0.event == "received" }?.body == "She speaks: <&> \"it is\" my 'lady'")
        #expect(told.first { $0.event == "bound" }?.jid?.hasPrefix("romeo@localhost/") == true)
        try await server.stop()
    }

    @Test(
        "profanity logs in to Prosody without TLS and talks with slixmpp",
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity),
            "Prosody, slixmpp or profanity is missing"
        )
    )
    func profanityWithoutTLS() async throws {
        let server = try await ProsodyServer()
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: server.port, .init(reply: "Ay me! 🌹", receive: 1))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .profanity,
            as: .romeo,
            port: server.port,
            .init(ping: true, send: [(.juliet, "She speaks: <&> \"it is\" my 'lady'")], receive: 1)
        )

        let told = try await romeo.finish()
        let heard = try await juliet.finish()
        #expect(told.contains { $0.event == "roster" } && told.contains { $0.event == "pong" })
        #expect(told.first { $0.event == "received" }?.body == "Ay me! 🌹")
        #expect(heard.first { $0.event == "received" }?.body == "She speaks: <&> \"it is\" my 'lady'")
        try await server.stop()
    }

    @Test(
        "slixmpp, profanity and go-sendxmpp log in to Prosody by STARTTLS",
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity, .goSendxmpp, .openssl),
            "Prosody, slixmpp, profanity, go-sendxmpp or openssl is missing"
        )
    )
    func startTLS() async throws {
        let certificate = try await TestCertificate()
        let server = try await ProsodyServer(encryption: .startTLS(certificate))
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: server.port,
            startTLS: true,
            .init(receive: 2),
            options: ["--ca", certificate.certificate]
        )
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .profanity,
            as: .romeo,
            port: server.port,
            startTLS: true,
            .init(send: [(.juliet, "from profanity 🌹")])
        )
        try await romeo.finish()
        let sender = try GoSendxmpp(as: .romeo, port: server.port, send: "from go-sendxmpp 🌹", to: .juliet)
        try await sender.finish()

        let heard = try await juliet.finish()
        #expect(heard.contains { $0.event == "tls" })
        #expect(heard.compactMap(\.body) == ["from profanity 🌹", "from go-sendxmpp 🌹"])
        try await server.stop()
    }

    @Test(
        "go-sendxmpp prints a message it receives by STARTTLS",
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .goSendxmpp, .openssl),
            "Prosody, slixmpp, go-sendxmpp or openssl is missing"
        )
    )
    func goSendxmppListens() async throws {
        let server = try await ProsodyServer(encryption: .startTLS(TestCertificate()))
        let listener = try GoSendxmpp(listeningAs: .juliet, port: server.port)
        let sender = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: server.port,
            startTLS: true,
            .init(send: [(.juliet, "to go-sendxmpp 🌹")])
        )
        try await sender.finish()
        try await listener.line(holding: "to go-sendxmpp 🌹")
        try await listener.stop()
        try await server.stop()
    }

    @Test(
        "A client's failure is an error with its reason",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity), "a program is missing"),
        arguments: [ScriptedClient.Program.slixmpp, .profanity]
    )
    func failuresAreTold(program: ScriptedClient.Program) async throws {
        let server = try await ProsodyServer()
        let stranger = Account("juliet", password: "not hers")
        let refused = try ScriptedClient(program, as: stranger, port: server.port)
        await #expect { try await refused.finish() } throws: { "\($0)".contains("not-authorized") }
        let unencrypted = try ScriptedClient(program, as: .juliet, port: server.port, startTLS: true)
        await #expect(throws: KitError.self) { try await unencrypted.finish() }
        let nobody = try ScriptedClient(program, as: .juliet, port: FreePort.next())
        await #expect(throws: KitError.self) { try await nobody.finish() }
        try await server.stop()
    }
}

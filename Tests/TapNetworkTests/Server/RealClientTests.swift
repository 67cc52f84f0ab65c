import NIOCore
import NIOPosix
import TapSecurity
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests the built-in server with independent clients.
@Suite(.timeLimit(.minutes(2)))
struct RealClientTests {
    private func startServer() async throws -> (BuiltInServer, port: UInt16) {
        let accounts = [Account.romeo, .juliet].map {
            ServerSettings.Account(name: $0.user, password: $0.password)
        }
        let server = try await BuiltInServer.start(
            port: 0,
            settings: ServerSettings(accounts: accounts, softwareVersion: "1"),
            cryptography: OpenSSLCryptography(),
            group: MultiThreadedEventLoopGroup.singleton
        )
        return (server, UInt16(try #require(server.address?.port)))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `two slixmpp clients log in, ping and exchange messages`() async throws {
        let (server, port) = try await startServer()
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: port, .init(reply: "Ay me! 🌹", receive: 1))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: port,
            .init(ping: true, send: [(.juliet, "She speaks: <&> \"it is\" my 'lady'")], receive: 1)
        )
        let told = try await romeo.finish()
        let heard = try await juliet.finish()
        #expect(told.map(\.event).prefix(6) == ["connected", "bound", "roster", "present", "pong", "ready"])
        #expect(told.first { $0.event == "received" }?.body == "Ay me! 🌹")
        #expect(heard.first { $0.event == "received" }?.body == "She speaks: <&> \"it is\" my 'lady'")
        try await server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.profanity, .slixmpp), "profanity or slixmpp is missing"))
    func `profanity logs in, pings and exchanges messages with slixmpp`() async throws {
        let (server, port) = try await startServer()
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: port, .init(reply: "Ay me! 🌹", receive: 1))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .profanity,
            as: .romeo,
            port: port,
            .init(ping: true, send: [(.juliet, "She speaks.")], receive: 1)
        )
        let told = try await romeo.finish()
        let heard = try await juliet.finish()
        #expect(told.contains { $0.event == "roster" } && told.contains { $0.event == "pong" })
        #expect(told.first { $0.event == "received" }?.body == "Ay me! 🌹")
        #expect(heard.first { $0.event == "received" }?.body == "She speaks.")
        try await server.stop()
    }
}

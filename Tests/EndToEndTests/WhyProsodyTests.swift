import Foundation
import TapTestKit
import Testing

/// Tests of the diagnosis of logins with a real Prosody that the client did not finish or that failed.
@Suite(.serialized, .timeLimit(.minutes(1)), .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing"))
struct WhyProsodyTests {
    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"

    private static func auth(_ mechanism: String, _ message: String) -> String {
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>"
            + "\(Data(message.utf8).base64EncodedString())</auth>"
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `Each diagnosis names its step, its side and its rule`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let juliet = Account.juliet
        let clients: [(PlainSocket) async throws -> Void] = [
            // The client logs in, and disconnects before it binds a resource.
            { socket in
                try await socket.openStream()
                try await socket.write(Self.auth("PLAIN", "\0\(juliet.user)\0\(juliet.password)"))
                try await socket.read(until: "<success")
                try await socket.write(Self.header)
                try await socket.read(until: "urn:ietf:params:xml:ns:xmpp-bind")
            },
            // The client disconnects after the server's challenge.
            { socket in
                try await socket.openStream()
                try await socket.write(Self.auth("SCRAM-SHA-1", "n,,n=juliet,r=fyko+d2lbbFgONRv9qkxdawL"))
                try await socket.read(until: "</challenge>")
            },
            // The message is not a SCRAM message.
            { socket in
                try await socket.openStream()
                try await socket.write(Self.auth("SCRAM-SHA-1", "hello"))
                try await socket.read(until: "</failure>")
            },
        ]
        for client in clients { try await client(PlainSocket(port: tap.port)) }
        let wrong = try ScriptedClient(
            .slixmpp,
            as: Account("juliet", password: "wr0ng-passw0rd"),
            port: tap.port,
            options: ["--mechanism", "SCRAM-SHA-1", "--timeout", "10"]
        )
        await #expect(throws: KitError.self) { try await wrong.finish() }
        try await tap.stop()
        try await server.stop()
        let diagnoses = try tap.records().filter { $0.code == "login-failed" }
            .sorted { $0.session ?? 0 < $1.session ?? 0 }
        #expect(
            diagnoses.map {
                "\($0.details?.step ?? "") \($0.details?.cause ?? "") \($0.details?.side ?? "") \($0.details?.rule ?? "")"
            } == [
                "bind missing-bind client RFC 6120 §7.1",
                "sasl client-gave-up client RFC 6120 §4.4", "sasl malformed-request client RFC 6120 §6.5.8",
                "sasl wrong-password client RFC 6120 §6.5.10",
            ],
            "\(diagnoses.map(\.message))"
        )
        #expect(diagnoses.allSatisfy { $0.details?.proxyIsCause == false })
        for session in 1...4 {
            let explained = try await XMPPTapBinary.run(["explain", tap.json, "--session", "\(session)"])
            #expect(explained.ending == .exited(1) && explained.output.contains("  try: "), "\(explained.output)")
        }
        #expect(!Tap.read(tap.json).contains("wr0ng-passw0rd"))
    }

    @Test
    func `A server without mechanisms is named as the cause, and its text is quoted`() async throws {
        let server = try await ProsodyServer(
            settings: """
                disable_sasl_mechanisms = {
                    "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256-PLUS", "DIGEST-MD5"
                }
                """
        )
        let tap = try await Tap(upstream: server.port)
        let client = try PlainSocket(port: tap.port)
        try await client.write(Self.header)
        try await client.read()
        try await tap.stop()
        try await server.stop()
        let diagnosis = try #require(try tap.records().first { $0.code == "login-failed" })
        #expect(
            diagnosis.details?.cause == "no-mechanism-offered" && diagnosis.details?.side == "server"
                && diagnosis.message?.contains("No stream features to proceed with") == true,
            "\(diagnosis.message ?? "")"
        )
    }
}

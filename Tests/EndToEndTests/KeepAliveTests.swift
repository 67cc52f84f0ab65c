import TapTestKit
import Testing

/// Tests of `proxy --ping` between real peers: xmpptap alone sends and handles the pings, and they do not disturb
/// stream management (XEP-0198).
@Suite(
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing")
) struct KeepAliveTests {
    @Test func `proxy pings and a resumption inside TLS neither lose nor duplicate messages`()
        async throws
    {
        let scene = try await InterceptScene(arguments: ["--ping", "500ms", "--ping-timeout", "5s"])
        let bodies = ["Ay me", "It is the east", "Good night"]
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: scene.tap.port,
            startTLS: true,
            .init(reply: "Speak again", receive: bodies.count),
            options: ["--ca", scene.authority]
        )
        try await romeo.event("ready")
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            .init(send: bodies.map { (.romeo, $0) }, receive: bodies.count),
            options: ["--ca", scene.authority, "--resume", "--rest", "1.5"]
        )
        let (hers, his) = (try await juliet.finish(), try await romeo.finish())
        try await scene.stop()
        func bodiesReceived(_ events: [ScriptedClient.Event]) -> [String?] {
            events.filter { $0.event == "received" }.map(\.body)
        }
        #expect(bodiesReceived(his) == bodies)
        #expect(bodiesReceived(hers) == bodies.map { _ in "Speak again" })
        for event in ["resumed", "acknowledged"] { #expect(hers.contains { $0.event == event }, "no \(event)") }

        let records = try scene.tap.records()
        let pings = records.filter { $0.origin == "tap" && $0.payload == "{urn:xmpp:ping}ping" }
        let resumed = records.filter { $0.code == "session-ready" }.last?.session
        // Before the connection was cut, and after the resumption.
        #expect(
            Set(pings.compactMap(\.session)).isSuperset(of: [2, 3]) && resumed == 3,
            "\(pings.compactMap(\.session))"
        )
        // The proxy dropped the answers to its pings, and translated acknowledgements.
        #expect(records.filter { $0.action == "dropped" }.allSatisfy { $0.answers != nil })
        #expect(records.contains { $0.action == "edited" && $0.name == "a" })
        for code in ["wrong-acknowledgement", "ping-timeout", "stream-error"] {
            #expect(!records.contains { $0.code == code }, "\(code)")
        }
    }
}

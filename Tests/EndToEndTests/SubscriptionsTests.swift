import Foundation
import TapTestKit
import Testing

/// Tests of presence subscriptions with a real server: the log at info, and the output of `explain`.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
)
struct SubscriptionsTests {
    private func told(_ tap: Tap, _ account: Account) -> [String] {
        Tap.read(tap.story).split(separator: "\n")
            .filter { $0.contains(" \(account.jid)/") && $0.contains("session: ") && $0.contains("(because ") }
            .compactMap { line in
                line.range(of: "session: ").map { String(line[$0.upperBound...].prefix { $0 != "(" }.dropLast()) }
            }
    }

    private func explain(_ tap: Tap, _ arguments: String...) async throws -> [String] {
        let binary = try XMPPTapBinary(["explain", tap.capture, "--subscriptions"] + arguments)
        #expect(try await binary.process.ending() == .exited(0))
        return binary.process.lines(of: .standardOutput)
    }

    @Test func `The history shows the steps of a subscription that is approved at the next login`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let romeo = try await PlainClient(.romeo, tap)
        try await romeo.presence("subscribe", to: .juliet)
        try await romeo.socket.read(until: "ask='subscribe'")

        let juliet = try await PlainClient(.juliet, tap)
        try await juliet.expect("subscribe")
        try await juliet.presence("subscribed", to: .romeo)
        try await romeo.expect("subscribed")
        try await juliet.socket.read(until: "subscription='from'")
        try await juliet.presence("subscribe", to: .romeo)
        try await romeo.expect("subscribe")
        try await romeo.presence("subscribed", to: .juliet)
        try await juliet.expect("subscribed")
        try await juliet.socket.read(until: "subscription='both'")
        try await romeo.socket.read(until: "subscription='both'")

        // Romeo removes the contact, and juliet receives this too.
        try await romeo.socket.write(
            "<iq type='set' id='gone'><query xmlns='jabber:iq:roster'><item jid='juliet@localhost' "
                + "subscription='remove'/></query></iq>"
        )
        try await romeo.socket.read(until: "subscription='remove'")
        try await juliet.expect("unsubscribed")
        try await juliet.socket.read(until: "subscription='none'")
        try await romeo.leave()
        try await juliet.leave()
        try await tap.stop()
        try await server.stop()

        let his = told(tap, .romeo).filter { !$0.hasSuffix("as before") }
        #expect(his.first == "juliet@localhost: none → pending out")
        #expect(his.contains("juliet@localhost: pending out → to"))
        #expect(his.contains("juliet@localhost: to → to, pending in"))
        #expect(his.contains("juliet@localhost: to, pending in → both"))
        #expect(his.last == "juliet@localhost: both → removed")
        let hers = told(tap, .juliet).filter { !$0.hasSuffix("as before") }
        #expect(hers.first == "romeo@localhost: none → pending in")
        #expect(hers.contains("romeo@localhost: pending in → from"))
        #expect(hers.contains("romeo@localhost: from → from, pending out"))
        #expect(hers.last == "romeo@localhost: from → none" || hers.last == "romeo@localhost: to → none")

        let story = try await explain(tap, "juliet@localhost")
        #expect(story.first == "romeo@localhost and juliet@localhost")
        #expect(story.count { $0.contains("none → pending out (this account requests their presence)") } == 1)
        #expect(story.last == "  at the end romeo@localhost: removed; juliet@localhost: none")
        #expect(try await explain(tap, "nurse@localhost").isEmpty)
    }

    @Test func `The history shows mutual requests, one of which is rejected`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let romeo = try await PlainClient(.romeo, tap)
        let juliet = try await PlainClient(.juliet, tap)
        try await romeo.presence("subscribe", to: .juliet)
        try await juliet.presence("subscribe", to: .romeo)
        try await romeo.expect("subscribe")
        try await juliet.expect("subscribe")
        try await romeo.presence("subscribed", to: .juliet)
        try await juliet.presence("unsubscribed", to: .romeo)
        try await juliet.expect("subscribed")
        try await romeo.expect("unsubscribed")
        try await romeo.socket.read(until: "subscription='from'")
        try await juliet.socket.read(until: "subscription='to'")
        try await romeo.leave()
        try await juliet.leave()
        try await tap.stop()
        try await server.stop()

        #expect(told(tap, .romeo).contains { $0.contains("pending out and in") })
        let story = try await explain(tap)
        // The result does not depend on which request came first.
        let end = story.last?.replacing("  at the end ", with: "").split(separator: "; ").sorted()
        #expect(
            end == ["juliet@localhost: to, sees the other's presence", "romeo@localhost: from, shows its own presence"]
        )
    }

    @Test func `The history says that a client approved a subscription automatically`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        // slixmpp approves every request, and sends a request in return.
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: tap.port, .init(receive: 1))
        try await juliet.event("ready")
        let romeo = try await PlainClient(.romeo, tap)
        try await romeo.presence("subscribe", to: .juliet)
        try await romeo.expect("subscribed")
        try await romeo.expect("subscribe")
        try await romeo.presence("subscribed", to: .juliet)
        try await romeo.socket.read(until: "subscription='both'")
        try await romeo.socket.write("<message to='juliet@localhost' type='chat'><body>thanks</body></message>")
        _ = try await juliet.finish()
        try await romeo.leave()
        try await tap.stop()
        try await server.stop()

        let story = try await explain(tap)
        #expect(
            story.contains {
                $0.contains("] juliet@localhost: ") && $0.contains("(this account allows them to see its")
            }
        )
        #expect(story.last?.hasPrefix("  at the end romeo@localhost: both, each sees the other's presence") == true)
    }
}

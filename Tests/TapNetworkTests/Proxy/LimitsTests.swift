import NIOCore
import TapCore
import TapTestKit
import Testing

@testable import TapNetwork

@Suite(.serialized, .timeLimit(.minutes(1)))
struct LimitsTests {
    private static let header = Conversations.login[0].text

    /// Asks for a stream and expects to be told that there is none.
    private func expectRefusal(_ proxy: ProxyFixture, _ condition: String) async throws {
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Self.header)
        try await client.wait("the refusal") { $0.text.contains("<\(condition)") && $0.isFinished }
        await client.close()
    }

    @Test("One connection too many is told so, and one that has ended makes room")
    func connections() async throws {
        let proxy = try await ProxyFixture { $0.limits.connections = 2 }
        let (first, _) = try await proxy.openPair()
        _ = try await proxy.openPair()
        try await expectRefusal(proxy, "resource-constraint")
        #expect(
            proxy.sink.records(code: "aborted").first?.record.message
                == "More than 2 connections at once (limit connections)."
        )
        try await first.reset()
        try await eventually("the session stays") { proxy.service.metrics.sessionsOpen == 1 }
        _ = try await proxy.openPair()
        try await proxy.stop()
    }

    @Test("One address gets its share and no more")
    func connectionsOfAnAddress() async throws {
        let proxy = try await ProxyFixture { $0.limits.connectionsPerAddress = 1 }
        let (first, _) = try await proxy.openPair()
        try await expectRefusal(proxy, "policy-violation")
        try await first.reset()
        try await proxy.settle()
        _ = try await proxy.openPair()
        try await proxy.stop()
    }

    @Test("A login that takes too long is ended, one that is done is not")
    func login() async throws {
        let proxy = try await ProxyFixture { $0.limits.login = .milliseconds(1500) }
        let (open, _) = try await proxy.openPair()
        let (slow, server) = try await proxy.pair()
        try await say(Array(Conversations.login.prefix(3)), slow, server)
        try await slow.wait("the end") { $0.text.contains("<connection-timeout") && $0.isFinished }
        try await server.wait("the end") { $0.text.hasSuffix("</stream:stream>") && $0.isFinished }
        let silent = try await Peer.connect(to: proxy.port)
        try await silent.wait("the end") { $0.text.contains("<connection-timeout") && $0.isFinished }
        #expect(!open.now.isFinished)
        await slow.close()
        await silent.close()
        try await proxy.stop()
    }

    @Test("Bytes that are not followed are past any login")
    func opaque() async throws {
        let proxy = try await ProxyFixture { $0.limits.login = .milliseconds(600) }
        let (client, server) = try await proxy.pair()
        try await client.send("GET / HTTP/1.1\r\n\r\n")
        try await server.wait("the request") { $0.text.hasPrefix("GET") }
        try await Task.sleep(for: .milliseconds(1300))
        try await server.send("HTTP/1.1 200 OK\r\n\r\n")
        try await client.wait("the answer") { $0.text.hasPrefix("HTTP") }
        try await proxy.stop()
    }

    @Test("A session in which nothing is said ends, one in which something is goes on")
    func idle() async throws {
        let proxy = try await ProxyFixture { $0.limits.idle = .milliseconds(1500) }
        let (idle, _) = try await proxy.openPair()
        let (busy, _) = try await proxy.openPair()
        for _ in 0..<12 {
            try await busy.send(" ")
            try await Task.sleep(for: .milliseconds(200))
        }
        try await idle.wait("the end") { $0.text.contains("<connection-timeout") && $0.isFinished }
        #expect(!busy.now.isFinished)
        #expect(proxy.sink.records(code: "aborted").map(\.record.message) == ["No byte for 1500 ms (limit idle)."])
        try await proxy.stop()
    }
}

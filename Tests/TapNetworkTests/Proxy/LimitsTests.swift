import NIOCore
import TapCore
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

@Suite(.serialized, .timeLimit(.minutes(1)))
struct LimitsTests {
    private static let header = Conversations.login[0].text

    /// Opens a stream, and expects a stream error.
    private func expectRefusal(_ proxy: ProxyFixture, _ condition: String) async throws {
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Self.header)
        try await client.wait("the refusal") { $0.text.contains("<\(condition)") && $0.isFinished }
        await client.close()
    }

    @Test("A connection beyond the limit is refused, and an ended one frees its place")
    func connections() async throws {
        let proxy = try await ProxyFixture { $0.limits.connections = 2 }
        let (first, _) = try await proxy.openPair()
        _ = try await proxy.openPair()
        try await expectRefusal(proxy, "resource-constraint")
        #expect(
            proxy.sink.records(code: "aborted").first?.record.messageText
                == "More than 2 connections at once (limit connections)."
        )
        #expect(proxy.service.metrics.hits(of: .connections) == 1)
        try await first.reset()
        try await eventually("the session stays") { proxy.service.metrics.sessionsOpen == 1 }
        _ = try await proxy.openPair()
        try await proxy.stop()
    }

    @Test("Connections from one address are limited")
    func connectionsOfAnAddress() async throws {
        let proxy = try await ProxyFixture { $0.limits.connectionsPerAddress = 1 }
        let (first, _) = try await proxy.openPair()
        try await expectRefusal(proxy, "policy-violation")
        #expect(proxy.service.metrics.hits(of: .connectionsPerAddress) == 1)
        #expect(proxy.service.metrics.hits(of: .connections) == 0)
        try await first.reset()
        try await proxy.settle()
        _ = try await proxy.openPair()
        try await proxy.stop()
    }

    @Test("A login that takes too long is ended, but an open session is not")
    func login() async throws {
        let proxy = try await ProxyFixture { $0.session.loginTime = 1_500_000_000 }
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

    /// A minimal ClientHello, and the start of a ServerHello.
    private static let hello: [UInt8] =
        [0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0]
    private static let serverHello: [UInt8] = [0x16, 3, 3, 0, 0x7A, 2, 0, 0, 0x76, 3, 3]

    @Test("Undecoded data counts as a completed login only after the server has answered it")
    func opaque() async throws {
        let proxy = try await ProxyFixture { $0.session.loginTime = 8_000_000_000 }
        let begins: [(String, clear: [Conversations.Turn], client: [UInt8], server: [UInt8])] = [
            ("one byte of TLS", [], [0x16], []),
            ("half a ClientHello", [], Array(Self.hello.prefix(20)), []),
            ("a ClientHello that nobody answers", [], Self.hello, []),
            ("a ClientHello answered by an alert", [], Self.hello, [0x15, 3, 3, 0, 2, 2, 40]),
            ("silence behind <proceed/>", Conversations.startTLS, [], []),
            ("one byte of something else", [], Array("G".utf8), []),
        ]
        let answered: [(String, clear: [Conversations.Turn], client: [UInt8], server: [UInt8])] = [
            ("TLS from the first byte", [], Self.hello, Self.serverHello),
            ("TLS behind <proceed/>", Conversations.startTLS, Self.hello, Self.serverHello),
            ("HTTP", [], Array("GET / HTTP/1.1\r\n\r\n".utf8), Array("HTTP/1.1 200 OK\r\n\r\n".utf8)),
        ]
        var pairs: [(name: String, isAnswered: Bool, client: Peer, server: Peer)] = []
        for (index, begin) in (begins + answered).enumerated() {
            let (client, server) = try await proxy.pair()
            try await say(begin.clear, client, server)
            let (sent, received) = (server.now.count, client.now.count)
            try await client.send(begin.client)
            try await server.wait("what the client says") { $0.count == sent + begin.client.count }
            try await server.send(begin.server)
            try await client.wait("what the server says") { $0.count == received + begin.server.count }
            pairs.append((begin.0, index >= begins.count, client, server))
        }
        for pair in pairs where !pair.isAnswered {
            try await pair.client.wait("\(pair.name): the end") { $0.isFinished }
            try await pair.server.wait("\(pair.name): the end") { $0.isFinished }
        }
        // All sessions began before the first one was ended. Within this time, the others would have been ended too.
        try await Task.sleep(for: .milliseconds(1500))
        for pair in pairs where pair.isAnswered {
            try await pair.client.send("more")
            try await pair.server.wait("\(pair.name): more") { $0.text.hasSuffix("more") }
        }
        let told = proxy.sink.records(code: "aborted").map(\.record.messageText)
        #expect(told == begins.map { _ in "No login within 8 s (limit login)." })
        try await proxy.stop()
    }

    @Test("An idle session is ended, and an active one is not")
    func idle() async throws {
        let proxy = try await ProxyFixture { $0.session.idleTime = 1_500_000_000 }
        let (idle, _) = try await proxy.openPair()
        let (busy, _) = try await proxy.openPair()
        for _ in 0..<12 {
            try await busy.send(" ")
            try await Task.sleep(for: .milliseconds(200))
        }
        try await idle.wait("the end") { $0.text.contains("<connection-timeout") && $0.isFinished }
        #expect(!busy.now.isFinished)
        #expect(proxy.sink.records(code: "aborted").map(\.record.messageText) == ["No data for 1500 ms (limit idle)."])
        try await proxy.stop()
    }
}

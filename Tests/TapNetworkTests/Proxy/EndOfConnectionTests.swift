import NIOCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapNetwork

@Suite("Ends of connections", .timeLimit(.minutes(2)))
struct EndOfConnectionTests {
    private static let lots = [UInt8](repeating: 0x20, count: 3 << 20)

    @Test("A half-closed client receives everything the server sends")
    func clientHalfCloses() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.openPair()
        let (sent, received) = (server.now.count, client.now.count)
        client.push(Self.lots)
        try await client.finish()
        try await server.wait("the client's end") { $0.isFinished }
        #expect(server.now.count == sent + Self.lots.count)
        #expect(!client.now.isFinished && !client.now.isClosed)
        server.push(Self.lots)
        try await server.finish()
        try await client.wait("the server's end") { $0.isClosed || $0.isFinished }
        #expect(client.now.count == received + Self.lots.count)
        #expect(!client.now.isReset && !server.now.isReset)
        try await proxy.settle()
        #expect(
            proxy.sink.records.last?.record.messageText == "the client's connection ended before its stream was closed"
        )
        try await proxy.stop()
    }

    @Test("A half-closed server receives everything the client sends")
    func serverHalfCloses() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.openPair()
        let (sent, received) = (server.now.count, client.now.count)
        server.push(Self.lots)
        try await server.finish()
        try await client.wait("the server's end") { $0.isFinished }
        #expect(client.now.count == received + Self.lots.count)
        #expect(!server.now.isFinished && !server.now.isClosed)
        client.push(Self.lots)
        try await client.finish()
        try await server.wait("the client's end") { $0.isClosed || $0.isFinished }
        #expect(server.now.count == sent + Self.lots.count)
        #expect(!client.now.isReset && !server.now.isReset)
        try await proxy.settle()
        try await proxy.stop()
    }

    /// The points of a session at which the connection is cut, with the data exchanged before.
    static let stages: [String: [Conversations.Turn]] = [
        "before a byte": [],
        "inside the header": [(.send, "<?xml version='1.0'?>")],
        "after the header": Array(Conversations.login.prefix(1)),
        "after the features": Array(Conversations.login.prefix(3)),
        "during authentication": Array(Conversations.login.prefix(4)),
        "at the restart": Array(Conversations.login.prefix(5)),
        "open": Conversations.login,
        "after STARTTLS": Conversations.startTLS,
        "after the client's end of the stream": Array(Conversations.plainLogin.dropLast()),
    ]

    @Test(
        "A reset on either leg is relayed at every stage, unless the other peer has closed its stream",
        arguments: Array(stages.keys.sorted()),
        Leg.allCases
    )
    func reset(_ stage: String, _ leg: Leg) async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.pair()
        try await say(Self.stages[stage] ?? [], client, server)
        if stage == "inside the header" { try await client.send("<stream:stream xmlns='jabber:cl") }
        let (cut, other) = leg == .client ? (client, server) : (server, client)
        // If the server resets the connection before the proxy has noticed it, it counts as unreachable.
        try await eventually("the proxy is not connected") { !proxy.sink.records(code: "server-connected").isEmpty }
        try await cut.reset()
        try await other.wait("a reset") { $0.isClosed || $0.isFinished }
        #expect(other.now.isReset == (stage != "after the client's end of the stream" || leg == .server))
        await other.close()
        try await proxy.settle()
        #expect(proxy.sink.records(code: "session-ended").count == 1)

        // The next session works as usual.
        let (next, nextServer) = try await proxy.openPair()
        await next.close()
        await nextServer.close()
        try await proxy.settle()
        try await proxy.stop()
    }

    private static let late = "<a xmlns='urn:xmpp:sm:3' h='3'/><presence type='unavailable'/>"

    @Test(
        "A client that sends after the server has closed gets all waiting data and no reset",
        arguments: ["in clear", "TLS passed through"]
    )
    func lateBytes(_ kind: String) async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.pair()
        let isTLS = kind != "in clear"
        try await say(isTLS ? Conversations.startTLS : Conversations.login, client, server)
        let before = (client: client.now.count, proxy: proxy.service.metrics.bytesReceived)
        try await client.setReading(false)
        let last = Self.lots.prefix(256 << 10) + Array((isTLS ? "" : "</stream:stream>").utf8)
        try await server.send(Array(last))
        try await eventually("the proxy does not read") {
            proxy.service.metrics.bytesReceived == before.proxy + UInt64(last.count)
        }
        await server.close()
        // The server's system answers the first of these with an RST, which the client cannot notice.
        for _ in 0..<20 {
            try await client.send(Self.late)
            try await Task.sleep(for: .milliseconds(20))
        }
        try await client.setReading(true)
        try await client.wait("the end") { $0.isFinished || $0.isClosed }
        try await client.send(Self.late)
        #expect(client.now.count == before.client + last.count)
        try await client.finish()
        try await client.wait("its own end") { $0.isClosed }
        #expect(client.now.isFinished && !client.now.isReset)
        try await proxy.settle()
        // Data of the client that is not TLS causes a warning here.
        let loud = proxy.sink.records.filter { $0.record.level <= .warn && $0.record.code != "not-tls" }
        #expect(loud.isEmpty, "\(loud.map(\.record.messageText))")
        try await proxy.stop()
    }

    @Test("A client that has closed its stream gets the server's last bytes, even if the server resets")
    func halfClosedClient() async throws {
        for round in 0..<20 {
            let proxy = try await ProxyFixture()
            let (client, server) = try await proxy.openPair()
            let before = client.now.count
            try await client.send("</stream:stream>")
            if round % 2 == 0 { try await client.finish() }
            try await server.wait("the client's end") { $0.text.hasSuffix("</stream:stream>") }
            try await server.send("</stream:stream>")
            try await server.finish()
            if round % 2 == 1 {
                try? await client.send(Self.late)
                try await client.finish()
            }
            // If both sides have sent their FIN, the connection is already closed.
            try? await server.reset()
            let seen = try await client.wait("the end") { $0.isFinished || $0.isClosed }
            #expect(!seen.isReset)
            #expect(seen.count == before + "</stream:stream>".utf8.count)
            try await proxy.settle()
            try await proxy.stop()
        }
    }

    @Test("The proxy reads only a limited amount from a client that ignores the end of its session")
    func lingering() async throws {
        let proxy = try await ProxyFixture()
        let silent = try await proxy.openPair()
        let server = silent.server
        let flooding = try RawConnection(port: UInt16(proxy.port))
        let other = try await proxy.server.accept()
        try await flooding.write(Conversations.login[0].text)
        try await other.expect(Conversations.login[0].text)
        // The proxy ends both sessions; neither client closes its connection.
        proxy.service.refuseSessions(.resourceConstraint, "The log cannot be written.")
        try await silent.client.wait("the end") { $0.isFinished }
        await server.close()
        await other.close()
        let flood = [UInt8](repeating: 0x20, count: 1 << 20)
        var taken = 0
        for _ in 0..<(4 * LegHandler.lingerBytes / flood.count) {
            let count = try await flooding.write(flood)
            taken += count
            if count < flood.count { break }
        }
        #expect(taken > LegHandler.lingerBytes)
        #expect(taken < 4 * LegHandler.lingerBytes, "all was read")
        try await proxy.settle()
        try await proxy.stop()
    }

    @Test("If a half-closed client disconnects, the server's connection is closed")
    func goneAfterHalfClose() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.openPair()
        try await client.finish()
        try await server.wait("the client's end") { $0.isFinished }
        try await client.reset()
        // Only an attempt to send to the client shows that it is gone.
        try await server.wait("its end") {
            if !$0.isClosed { server.push(Array("<presence from='a@b'/>".utf8)) }
            return $0.isClosed
        }
        try await proxy.settle()
        #expect(proxy.sink.records(code: "session-ended").count == 1)
        try await proxy.stop()
    }

    @Test("A client gets a stream error if its server cannot be reached")
    func serverDown() async throws {
        // No server listens on the TCPMUX port.
        let upstream = Endpoint(host: "127.0.0.1", port: 1)
        let proxy = try await ProxyFixture(upstream: upstream)
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Conversations.login[0].text)
        let seen = try await client.wait("the end") { $0.isFinished || $0.isClosed }
        #expect(!seen.isReset)
        #expect(seen.text.contains("<stream:stream"))
        #expect(seen.text.contains("<remote-connection-failed"))
        #expect(seen.text.hasSuffix("</stream:stream>"))
        await client.close()
        try await proxy.settle()
        let told = try #require(proxy.sink.records(code: "server-unreachable").first)
        #expect(told.record.messageText == "cannot connect to \(upstream): connection refused (errno 111)")
        #expect(proxy.sink.records.last?.record.condition == "remote-connection-failed")
        #expect(proxy.service.metrics.connectionsFailed == 1)
        try await eventually("no warning at start") {
            proxy.logged.all.contains {
                $0.hasPrefix("warning cannot connect to \(upstream): connection refused")
            }
        }
        try await proxy.stop()
    }

    @Test("An unknown host name is reported as such")
    func unknownName() async throws {
        let proxy = try await ProxyFixture(upstream: Endpoint(host: "nowhere.invalid", port: 5222))
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Conversations.login[0].text)
        try await client.wait("the stream error") { $0.text.contains("<remote-connection-failed") }
        let told = try #require(proxy.sink.records(code: "server-unreachable").first)
        #expect(
            told.record.messageText == #"cannot connect to nowhere.invalid:5222: cannot resolve "nowhere.invalid""#
        )
        await client.close()
        try await proxy.stop()
    }

    @Test("A final stream error reaches a client that keeps sending")
    func lastWord() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.openPair()
        let flood = Task {
            while !Task.isCancelled {
                try await client.send([UInt8](repeating: 0x20, count: 10_000))
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        proxy.service.refuseSessions(.resourceConstraint, "The log cannot be written.")
        let seen = try await client.wait("the end") { $0.isFinished || $0.isClosed }
        #expect(seen.text.contains("<resource-constraint"))
        #expect(seen.text.hasSuffix("</stream:stream>"))
        #expect(!seen.isReset)
        flood.cancel()
        try await server.wait("the end") { $0.isFinished || $0.isClosed }
        #expect(server.now.text.hasSuffix("</stream:stream>"))
        await client.close()
        await server.close()

        let late = try await Peer.connect(to: proxy.port)
        try await late.send(Conversations.login[0].text)
        try await late.wait("the stream error") { $0.text.contains("<resource-constraint") && $0.isFinished }
        await late.close()

        proxy.service.acceptSessions()
        _ = try await proxy.openPair()
        try await proxy.stop()
    }
}

import NIOCore
import TapNetwork
import TapRecord
import TapTestKit
import Testing

@Suite("The relay", .timeLimit(.minutes(2)))
struct RelayTests {
    @Test("A login is relayed unchanged, recorded from beginning to end, and leaves no session behind")
    func login() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.pair()
        let remote = "127.0.0.1:\(client.channel.localAddress?.port ?? 0)"
        try await say(Conversations.plainLogin, client, server)
        try await server.finish()
        try await client.wait("the server's end") { $0.isFinished }
        try await client.finish()
        try await server.wait("the client's end") { $0.isClosed }
        try await proxy.settle()

        #expect(server.now.bytes == Conversations.bytes(Conversations.plainLogin, .send))
        #expect(client.now.bytes == Conversations.bytes(Conversations.plainLogin, .recv))
        #expect(!client.now.isReset && !server.now.isReset)
        #expect(proxy.sink.records(code: "session-began").count == 1)
        #expect(proxy.sink.records(code: "session-ready").first?.record.jid == "juliet@example.org/balcony")
        let ended = try #require(proxy.sink.records.last)
        #expect(ended.record.code == "session-ended")
        #expect(ended.record.messageText == "closed by the client")
        #expect(ended.record.remote == remote)
        #expect(proxy.sink.records.compactMap(\.xml).contains("<presence/>"))
        #expect(proxy.service.metrics.sessionsTotal == 1)
        #expect(proxy.service.metrics.bytesSent == UInt64(server.now.count))
        #expect(proxy.service.metrics.bytesReceived == UInt64(client.now.count))
        try await proxy.stop()
    }

    @Test("A sink added during a session gets later records at its own level")
    func addedSink() async throws {
        let proxy = try await ProxyFixture(level: .off)
        let (client, server) = try await proxy.openPair()
        let late = MemorySink(level: .info)
        proxy.dispatcher.add(late)
        try await say([(.send, "<message to='juliet@example.org'><body>late</body></message>")], client, server)
        try await eventually("the added sink gets no record") { late.records.contains { $0.record.kind == .stanza } }
        proxy.dispatcher.remove(late)
        let count = late.records.count
        try await say([(.send, "<message to='juliet@example.org'><body>later</body></message>")], client, server)
        try await proxy.stop()
        #expect(late.records.count == count)
        #expect(late.records.allSatisfy { $0.record.level <= .info } && proxy.sink.records.isEmpty)
    }

    @Test("Megabytes of stanzas are relayed unchanged in both directions, in pieces of any size")
    func bulk() async throws {
        let proxy = try await ProxyFixture(level: .info, keeps: true)
        let (client, server) = try await proxy.openPair()
        let (sent, received) = (server.now.count, client.now.count)
        async let up = pour(client, seed: 11, total: 6 << 20)
        async let down = pour(server, seed: 12, total: 6 << 20)
        let (upHash, downHash) = try await (up, down)
        try await server.wait("all of the client's") { $0.count == sent + upHash.count }
        try await client.wait("all of the server's") { $0.count == received + downHash.count }
        #expect(Hash.of(Array(server.now.bytes.dropFirst(sent))) == upHash.hash)
        #expect(Hash.of(Array(client.now.bytes.dropFirst(received))) == downHash.hash)
        try await proxy.stop()
        let stanzas = upHash.stanzas + downHash.stanzas
        let login = 2
        #expect(proxy.sink.records.filter { $0.record.kind == .stanza }.count == stanzas + login)
    }

    /// Sends stanzas of random sizes, in pieces of random sizes.
    private func pour(_ peer: Peer, seed: UInt64, total: Int) async throws -> (count: Int, hash: Hash, stanzas: Int) {
        var random = SeededGenerator(seed: seed)
        var text: [UInt8] = []
        var stanzas = 0
        while text.count < total {
            let size =
                Bool.random(using: &random)
                ? Int.random(in: 0...200, using: &random) : Int.random(in: 0...30_000, using: &random)
            text += Array("<message to='a@b' id='\(stanzas)'><body>".utf8)
            text += (0..<size).map { _ in UInt8.random(in: 0x61...0x7A, using: &random) }
            text += Array("</body></message>".utf8)
            stanzas += 1
        }
        var start = 0
        while start < text.count {
            let end = min(text.count, start + Int.random(in: 1...100_000, using: &random))
            try await peer.send(Array(text[start..<end]))
            start = end
        }
        return (text.count, Hash.of(text), stanzas)
    }

    @Test("Direct TLS, HTTP and random data are relayed unchanged", arguments: ["tls", "http", "noise"])
    func foreign(_ kind: String) async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.pair()
        var random = SeededGenerator(seed: 5)
        let first: [UInt8] =
            switch kind {
            case "tls": [0x16, 3, 1, 2, 0, 1]
            case "http": Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            default: [0, 1, 2, 3]
            }
        let up = first + random.bytes(count: 300_000)
        let down = random.bytes(count: 300_000)
        try await client.send(first)
        try await client.send(Array(up.dropFirst(first.count)))
        try await server.send(down)
        try await server.wait("what the client wrote") { $0.count == up.count }
        try await client.wait("what the server wrote") { $0.count == down.count }
        #expect(server.now.bytes == up)
        #expect(client.now.bytes == down)
        try await client.finish()
        try await server.wait("the client's end") { $0.isFinished }
        try await server.finish()
        try await proxy.settle()
        try await proxy.stop()
        if kind == "tls" { #expect(proxy.sink.records(code: "tls-began").count == 1) }
        #expect(proxy.sink.records(code: "session-ended").count == 1)
    }

    @Test("Data after a server's <proceed/> is relayed, even if it arrives in the same read")
    func startTLS() async throws {
        let proxy = try await ProxyFixture()
        let (client, server) = try await proxy.pair()
        try await say(Array(Conversations.startTLS.dropLast()), client, server)
        var random = SeededGenerator(seed: 6)
        let proceed = Array("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
        let down = proceed + random.bytes(count: 50_000)
        let (sent, received) = (server.now.count, client.now.count)
        try await server.send(down)
        let hello: [UInt8] = [0x16, 3, 1] + random.bytes(count: 500)
        try await client.wait("the consent") { $0.count == received + down.count }
        try await client.send(hello)
        try await server.wait("the hello") { $0.count == sent + hello.count }
        #expect(Array(client.now.bytes.dropFirst(received)) == down)
        #expect(Array(server.now.bytes.dropFirst(sent)) == hello)
        try await proxy.stop()
        #expect(proxy.sink.records(code: "tls-began").count == 1)
    }

    @Test("Five hundred concurrent clients are served, and all sessions end")
    func many() async throws {
        let proxy = try await ProxyFixture(level: .info)
        let clients = try await withThrowingTaskGroup(of: Peer.self) { group in
            for _ in 0..<500 { group.addTask { try await Peer.connect(to: proxy.port) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        var servers: [Peer] = []
        for _ in clients { servers.append(try await proxy.server.accept()) }
        let header = Conversations.login[0].text
        for (index, client) in clients.enumerated() {
            client.push(Array("\(header)<a xmlns='x' id='\(index)'/>".utf8))
        }
        // Each server reverses what it received, so that clients can check which server they are connected to.
        for server in servers {
            let seen = try await server.wait("a header and an element") { $0.text.hasSuffix("/>") }
            server.push(Array(seen.bytes.reversed()))
        }
        for (index, client) in clients.enumerated() {
            let expected = Array("\(header)<a xmlns='x' id='\(index)'/>".utf8.reversed())
            let seen = try await client.wait("its echo") { $0.count == expected.count }
            #expect(seen.bytes == expected)
        }
        #expect(proxy.service.metrics.sessionsOpen == 500)
        for client in clients { await client.close() }
        for server in servers { try await server.wait("the client's end") { $0.isFinished || $0.isClosed } }
        for server in servers { await server.close() }
        try await proxy.settle()
        #expect(proxy.service.metrics.sessionsTotal == 500)
        #expect(proxy.sink.records(code: "session-ended").count == 500)
        try await proxy.stop()
    }
}

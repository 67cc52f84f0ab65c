import NIOCore
import TapCore
import TapNetwork
import TapTestKit
import Testing

@Suite("Backpressure", .timeLimit(.minutes(2)))
struct BackpressureTests {
    private static let stanza = Array(
        ("<message to='a@b'><body>" + String(repeating: "x", count: 4000) + "</body></message>").utf8
    )

    /// What the kernel may hold for two connections on loopback, and the proxy itself beside it.
    private static let bound = 24 << 20

    @Test(
        "A reader that does not read stops the other leg's reads, and gets everything once it does",
        arguments: Direction.allCases
    )
    func slowReader(_ direction: Direction) async throws {
        let proxy = try await ProxyFixture(level: .info)
        let (client, server) = try await proxy.openPair()
        let (writer, reader) = direction == .send ? (client, server) : (server, client)
        let before = reader.now.count
        try await reader.setReading(false)
        let chunk = Array(repeating: Self.stanza, count: 64).flatMap(\.self)
        let chunks = 200
        for _ in 0..<chunks { writer.push(chunk) }

        // The proxy takes in no more once all buffers between it and the reader are full.
        var taken: UInt64 = 0
        var stable = 0
        try await eventually("the proxy goes on reading") {
            let now = direction == .send ? proxy.service.metrics.bytesSent : proxy.service.metrics.bytesReceived
            stable = now == taken ? stable + 1 : 0
            taken = now
            return stable > 250
        }
        #expect(taken > 100_000)
        #expect(taken < UInt64(Self.bound))

        try await reader.setReading(true)
        try await reader.wait("all of it", seconds: 60) { $0.count == before + chunk.count * chunks }
        try await proxy.stop()
    }

    @Test("While a sink has no room nothing is read; when it has, everything goes on")
    func congestion() async throws {
        let proxy = try await ProxyFixture(level: .info)
        let (client, server) = try await proxy.openPair()
        let before = server.now.count
        proxy.sink.setCongested(true)
        // A read that finds the sink full still goes through; it is this one, or the login's last.
        try await client.send(Self.stanza)
        let asked = proxy.sink.timesAsked
        // Once for the session, and then again and again for whether there is room.
        try await eventually("nobody waits for room") { proxy.sink.timesAsked >= asked + 3 }
        try await client.send(Self.stanza)
        try await server.send("<presence from='x@y'/>")
        try await Task.sleep(for: .milliseconds(200))
        #expect(server.now.count <= before + Self.stanza.count)
        #expect(!client.now.text.hasSuffix("<presence from='x@y'/>"))
        proxy.sink.setCongested(false)
        try await server.wait("both") { $0.count == before + 2 * Self.stanza.count }
        try await client.wait("the other way too") { $0.text.hasSuffix("<presence from='x@y'/>") }
        try await proxy.stop()
    }

    @Test("A client that writes before its server is connected is not read without bound")
    func earlyBytes() async throws {
        // 192.0.2.0/24 is for documentation: nothing answers there, or the network says so at once.
        let proxy = try await ProxyFixture(upstream: Endpoint(host: "192.0.2.1", port: 5222)) {
            $0.connectTimeout = .milliseconds(600)
        }
        let client = try await Peer.connect(to: proxy.port)
        client.push(Array(Conversations.login[0].text.utf8))
        for _ in 0..<100 { client.push(Self.stanza) }
        try await client.wait("the stream error") { $0.text.contains("<remote-connection-failed") }
        await client.close()
        try await proxy.settle()
        try await proxy.stop()
    }
}

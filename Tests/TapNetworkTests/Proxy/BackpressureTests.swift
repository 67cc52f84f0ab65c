import NIOCore
import TapNetwork
import TapRecord
import TapTestKit
import Testing

@Suite("Backpressure", .timeLimit(.minutes(2)))
struct BackpressureTests {
    private static let stanza = Array(
        ("<message to='a@b'><body>" + String(repeating: "x", count: 4000) + "</body></message>").utf8
    )

    /// Maximum number of bytes that the kernel can buffer for two loopback connections, plus the proxy's buffers.
    private static let bound = 24 << 20

    @Test(
        "If a peer does not read, the proxy stops reading from the other, and later sends everything",
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

        // The proxy stops reading when all buffers between it and the reader are full.
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

    @Test("The proxy does not read while a sink is congested, and resumes afterwards")
    func congestion() async throws {
        let proxy = try await ProxyFixture(level: .info)
        let (client, server) = try await proxy.openPair()
        let before = server.now.count
        proxy.sink.setCongested(true)
        // The proxy forwards one read before it notices that the sink is full: this stanza, or the last data of the
        // login.
        try await client.send(Self.stanza)
        let asked = proxy.sink.timesAsked
        // The session asks once whether the sink is full, and the loop then asks again and again.
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

    @Test("The proxy does not read from a client until its server is connected")
    func earlyBytes() async throws {
        // The listen backlog has space for one connection; later ones get no answer.
        var full: RawListener? = try RawListener(backlog: 0)
        let port = try #require(full?.port)
        let waiting = try RawConnection(port: port)
        let proxy = try await ProxyFixture(upstream: Endpoint(host: "127.0.0.1", port: Int(port))) {
            $0.connectTimeout = .seconds(60)
        }
        let client = try RawConnection(port: UInt16(proxy.port))
        // More data than the buffers of both ends can hold, so that a part stays unsent unless the proxy reads.
        let bytes = Array(Conversations.login[0].text.utf8) + [UInt8](repeating: 0x20, count: 32 << 20)
        let taken = try await client.write(bytes, patience: .seconds(1))
        let reading = try Loopback.bytesRead(from: client, by: UInt16(proxy.port), of: taken)
        #expect(taken > 0 && taken < bytes.count)
        #expect(reading == 0, "\(reading) bytes of \(taken) were read")

        // The system's next connection attempt fails. Then the proxy reads again, and the client gets an error.
        waiting.close()
        full = nil
        let answer = Task { try await client.read(through: "<remote-connection-failed") }
        try await client.write(Array(bytes[taken...].prefix(1 << 20)))
        _ = try await answer.value
        client.close()
        try await proxy.settle()
        try await proxy.stop()
    }
}

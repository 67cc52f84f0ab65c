import NIOCore
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests clients that connect through a proxy, and servers that expect PROXY headers.
@Suite(.timeLimit(.minutes(2)))
struct ProxyProtocolTests {
    private static let line = "PROXY TCP4 192.0.2.33 198.51.100.2 50000 5222\r\n"

    private func proxy(
        accepts: Bool = true,
        sends: ProxyProtocol.Version? = nil,
        timeout: TimeAmount = .seconds(20),
        limits: ProxyLimits = ProxyLimits()
    ) async throws -> ProxyFixture {
        try await ProxyFixture {
            $0.proxyProtocol = ProxyProtocol(accepts: accepts, timeout: timeout, sends: sends)
            $0.limits = limits
        }
    }

    @Test func `The session has the address in the header, and the server gets the data after it`() async throws {
        let proxy = try await proxy()
        let text = Conversations.login[0].text
        // In one read, and byte by byte.
        for pieces in [[Self.line + text], (Self.line + text).map(String.init)] {
            let client = try await Peer.connect(to: proxy.port)
            for piece in pieces { try await client.send(piece) }
            let server = try await proxy.server.accept()
            try await server.expect(text)
            #expect(server.now.text == text)
            await client.close()
            try await server.wait("its end") { $0.isClosed || $0.isFinished }
            await server.close()
        }
        try await proxy.settle()
        let began = proxy.sink.records(code: "session-began")
        #expect(began.count == 2)
        #expect(began.allSatisfy { $0.record.remote == "192.0.2.33:50000" })
        #expect(began.first?.record.messageText?.hasPrefix("192.0.2.33:50000 connected by way of 127.0.0.1:") == true)
        try await proxy.stop()
    }

    @Test(
        "A connection without a header is closed, and a record has the reason",
        arguments: [
            ("<stream:stream>", "no PROXY header"),
            ("PROXY TCP4 x\n", "the PROXY line ends without CR"),
            ("", "no PROXY header within 900 ms"), ("PROXY TC", "no PROXY header within 900 ms"),
        ]
    )
    func turnedAway(_ text: String, _ words: String) async throws {
        let proxy = try await proxy(timeout: .milliseconds(900))
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(text)
        try await client.wait("the end") { $0.isClosed || $0.isFinished }
        #expect(client.now.bytes.isEmpty)
        let record = try #require(proxy.sink.records(code: "bad-proxy-header").first?.record)
        #expect(record.level == .warn)
        #expect(record.messageText?.hasSuffix(": \(words)") == true, "\(record.messageText ?? "")")
        #expect(proxy.sink.records(code: "session-began").isEmpty)
        #expect(proxy.service.metrics.sessionsTotal == 0)
        await client.close()
        try await proxy.stop()
    }

    @Test func `Only configured senders of headers are accepted`() async throws {
        let (near, far) = (try #require(AddressRange("127.0.0.0/8")), try #require(AddressRange("192.0.2.0/24")))
        for (senders, isServed) in [([far, near], true), ([far], false)] {
            let proxy = try await ProxyFixture { $0.proxyProtocol = ProxyProtocol(accepts: true, senders: senders) }
            let client = try await Peer.connect(to: proxy.port)
            try? await client.send(Self.line + Conversations.login[0].text)
            if isServed {
                try await proxy.server.accept().expect(Conversations.login[0].text)
            } else {
                try await client.wait("the end") { $0.isClosed || $0.isFinished || $0.isReset }
                let told = try #require(proxy.sink.records(code: "bad-proxy-header").first?.record.messageText)
                #expect(told.hasSuffix(": its address is not an allowed sender of PROXY headers"))
            }
            await client.close()
            try await proxy.stop()
        }
    }

    @Test func `A connection that ends within its header is reported, and one that ends after it is a session`()
        async throws
    {
        let proxy = try await proxy()
        let torn = try await Peer.connect(to: proxy.port)
        try await torn.send("PROXY ")
        try await torn.finish()
        try await torn.wait("the end") { $0.isClosed || $0.isFinished }
        #expect(proxy.sink.records(code: "bad-proxy-header").count == 1)
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Self.line + "<stream:stream xmlns='jabber:client'")
        try await client.finish()
        let server = try await proxy.server.accept()
        try await server.wait("the end") { $0.isFinished || $0.isClosed }
        await server.close()
        await client.close()
        try await proxy.settle()
        #expect(proxy.sink.records(code: "session-ended").count == 1)
        try await proxy.stop()
    }

    @Test func `A proxy's own connection is logged only if it sends data`() async throws {
        let proxy = try await proxy()
        for header in [ProxyHeader(.local).bytes(.v2), ProxyHeader(.unknown).bytes(.v1)] {
            let look = try await Peer.connect(to: proxy.port)
            try await look.send(header)
            try await look.finish()
            try await look.wait("the end") { $0.isClosed || $0.isFinished }
            await look.close()
        }
        #expect(proxy.service.metrics.sessionsTotal == 0)
        #expect(proxy.sink.records(code: "bad-proxy-header").isEmpty)
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(ProxyHeader(.local).bytes(.v2))
        try await Task.sleep(for: .milliseconds(50))
        try await client.send(Conversations.login[0].text)
        try await proxy.server.accept().expect(Conversations.login[0].text)
        let began = try #require(proxy.sink.records(code: "session-began").first?.record)
        #expect(began.remote?.hasPrefix("127.0.0.1:") == true)
        #expect(began.messageText?.contains("by way of") == false)
        await client.close()
        try await proxy.stop()
    }

    @Test func `Limits count the addresses in the headers`() async throws {
        let proxy = try await proxy(limits: ProxyLimits(connectionsPerAddress: 1))
        let header = Conversations.login[0].text
        let first = try await Peer.connect(to: proxy.port)
        try await first.send(Self.line + header)
        let server = try await proxy.server.accept()
        let second = try await Peer.connect(to: proxy.port)
        try await second.send(Self.line + header)
        try await second.wait("the stream error") {
            $0.text.contains("from 192.0.2.33 (limit connections-per-address)")
        }
        let other = try await Peer.connect(to: proxy.port)
        try await other.send(Self.line.replacing(".33 ", with: ".34 ") + header)
        try await proxy.server.accept().expect(header)
        for peer in [first, second, other, server] { await peer.close() }
        try await proxy.stop()
    }

    @Test(
        "A server gets the header with the client's address first",
        arguments: [ProxyProtocol.Version.v1, .v2],
        [true, false]
    )
    func told(_ sending: ProxyProtocol.Version, accepts: Bool) async throws {
        let proxy = try await proxy(accepts: accepts, sends: sending)
        let client = try await Peer.connect(to: proxy.port)
        try await client.send((accepts ? Self.line : "") + Conversations.login[0].text)
        let server = try await proxy.server.accept()
        let text = Conversations.login[0].text
        let seen = try await server.wait("the stream") { $0.text.hasSuffix(text) }
        var reader = ProxyHeaderReader()
        guard case .header(let header, let rest) = reader.append(seen.bytes) else {
            Issue.record("\(seen.bytes)")
            return
        }
        #expect(rest == text.utf8.count)
        #expect(header.identifier == (sending == .v1 ? nil : Array("xmpptap-1".utf8)))
        let local = try #require(client.channel.localAddress)
        let remote = try #require(client.channel.remoteAddress)
        let source = accepts ? try SocketAddress(ipAddress: "192.0.2.33", port: 50000) : local
        let destination = accepts ? try SocketAddress(ipAddress: "198.51.100.2", port: 5222) : remote
        #expect(header.origin == .client(source: source, destination: destination))
        // The header is not a part of the stream.
        await client.close()
        await server.close()
        try await proxy.settle()
        let first = try #require(proxy.sink.records.first { $0.record.kind == .declaration }?.record)
        #expect(first.offset == 0)
        try await proxy.stop()
    }
}

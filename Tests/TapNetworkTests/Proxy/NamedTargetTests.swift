import NIOCore
import TapCore
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests clients that name the target of their connection by SOCKS5 or HTTP CONNECT.
@Suite(.timeLimit(.minutes(2)))
struct NamedTargetTests {
    private static let greeting: [UInt8] = [5, 1, 0]
    private static let header = Conversations.login[0].text

    private func proxy(
        upstream: Upstream? = nil,
        _ configure: @escaping (inout ProxyConfiguration) -> Void = { _ in }
    ) async throws -> ProxyFixture {
        // The fixture waits for the check of its server, which is made only if the listener has no other.
        let unused = upstream.map { _ in Endpoint(host: "127.0.0.1", port: 1) }
        return try await ProxyFixture(upstream: unused) {
            $0.listeners = [ListenSpec(host: "127.0.0.1", port: 0, upstream: upstream).with(.request)]
            configure(&$0)
        }
    }

    /// Returns a SOCKS request for a name.
    private static func request(_ name: String, _ port: Int) -> [UInt8] {
        [5, 1, 0, 3, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(port >> 8), UInt8(port & 0xFF)]
    }

    /// Returns a SOCKS request for an IPv4 address.
    private static func request(_ address: [UInt8], _ port: Int) -> [UInt8] {
        [5, 1, 0, 1] + address + [UInt8(port >> 8), UInt8(port & 0xFF)]
    }

    private static let local: [UInt8] = [127, 0, 0, 1]

    /// Sends the requests and returns the code of the SOCKS reply; the connection is closed after a failure.
    private func reply(_ proxy: ProxyFixture, _ request: [UInt8]) async throws -> (code: UInt8, client: Peer) {
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Self.greeting + request)
        let seen = try await client.wait("a reply") { $0.bytes.count >= 12 || $0.isClosed }
        let code = seen.bytes.count > 3 ? seen.bytes[3] : 255
        if code != 0 { try await client.wait("the end") { $0.isClosed || $0.isFinished } }
        return (code, client)
    }

    private func record(_ proxy: ProxyFixture, _ code: String) throws -> Record {
        try #require(proxy.sink.records(code: code).first?.record, "\(proxy.sink.records.map(\.record.code))")
    }

    // MARK: Sessions

    @Test func `A SOCKS client gets the reply after the connection, and its early data reaches the server`()
        async throws
    {
        let proxy = try await proxy()
        let request = Self.request("127.0.0.1", proxy.server.port)
        // In one write, and byte by byte.
        for pieces in [[Self.greeting + request + Array(Self.header.utf8)], (Self.greeting + request).map { [$0] }] {
            let client = try await Peer.connect(to: proxy.port)
            for piece in pieces { try await client.send(piece) }
            let server = try await proxy.server.accept()
            let port = server.channel.remoteAddress?.port ?? 0
            let expected: [UInt8] = [5, 0, 5, 0, 0, 1, 127, 0, 0, 1, UInt8(port >> 8), UInt8(port & 0xFF)]
            try await client.wait("the reply") { $0.bytes == expected }
            if pieces.count > 1 { try await client.send(Self.header) }
            try await server.expect(Self.header)
            try await server.send(Conversations.login[1].text)
            try await client.expect(Conversations.login[1].text, after: 12)
            await client.close()
            await server.close()
        }
        try await proxy.settle()
        let began = proxy.sink.records(code: "session-began").map(\.record)
        #expect(began.count == 2)
        for record in began {
            #expect(record.details?["request"]?.text == "socks5")
            #expect(record.details?["target"]?.text == "127.0.0.1:\(proxy.server.port)")
            let end = " connected by SOCKS5, to be relayed to 127.0.0.1:\(proxy.server.port)"
            #expect(record.messageText?.hasSuffix(end) == true, "\(record.messageText ?? "")")
        }
        // The dialogue is not a part of the stream.
        let first = try #require(proxy.sink.records.first { $0.record.kind == .declaration }?.record)
        #expect(first.offset == 0)
        #expect(
            proxy.sink.records(code: "step").contains { $0.record.messageText?.hasPrefix("tcp 127.0.0.1:") == true }
        )
        try await proxy.stop()
    }

    @Test func `An HTTP client gets 200, and the login is in no record`() async throws {
        let proxy = try await proxy { $0.targets.users = try? ProxyUsers(parsing: "juliet:Capulet-1597") }
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(
            "CONNECT 127.0.0.1:\(proxy.server.port) HTTP/1.1\r\nProxy-Authorization: Basic "
                + "anVsaWV0OkNhcHVsZXQtMTU5Nw==\r\n\r\n" + Self.header
        )
        let server = try await proxy.server.accept()
        try await server.expect(Self.header)
        let answer = "HTTP/1.1 200 Connection established\r\n\r\n"
        try await client.expect(answer)
        try await server.send(Conversations.login[1].text)
        try await client.expect(Conversations.login[1].text, after: answer.utf8.count)
        await client.close()
        await server.close()
        try await proxy.settle()
        #expect(try record(proxy, "session-began").details?["request"]?.text == "connect")
        for told in proxy.sink.records {
            let text = "\(told.record)" + String(decoding: told.content, as: UTF8.self)
            #expect(!text.contains("anVs") && !text.contains("Capulet-1597"))
        }
        try await proxy.stop()
    }

    @Test func `A client that closes its output after the request gets the server's data`() async throws {
        let proxy = try await proxy()
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(Self.greeting + Self.request(Self.local, proxy.server.port) + Array(Self.header.utf8))
        try await client.finish()
        let server = try await proxy.server.accept()
        try await server.expect(Self.header)
        try await server.wait("the end") { $0.isFinished }
        try await server.send(Conversations.login[1].text)
        try await client.expect(Conversations.login[1].text, after: 12)
        await server.close()
        await client.close()
        try await proxy.settle()
        try await proxy.stop()
    }

    @Test func `A PROXY header precedes the request, and a client on another machine must log in`() async throws {
        let line = Array("PROXY TCP4 192.0.2.33 198.51.100.2 50000 1080\r\n".utf8)
        let proxy = try await proxy {
            $0.proxyProtocol = ProxyProtocol(accepts: true)
            $0.targets.users = try? ProxyUsers(parsing: "juliet:Capulet-1597")
        }
        let request = Self.request(Self.local, proxy.server.port)
        let refused = try await Peer.connect(to: proxy.port)
        try await refused.send(line + Self.greeting + request)
        try await refused.wait("the refusal") { $0.bytes == [5, 0xFF] && $0.isFinished }
        let wrong = try await Peer.connect(to: proxy.port)
        try await wrong.send(line + [5, 1, 2, 1, 6] + Array("juliet".utf8) + [1, 0x78] + request)
        try await wrong.wait("the refusal") { $0.bytes == [5, 2, 1, 1] && $0.isFinished }
        let right = try await Peer.connect(to: proxy.port)
        try await right.send(
            line + [5, 1, 2, 1, 6] + Array("juliet".utf8) + [12] + Array("Capulet-1597".utf8) + request
        )
        try await right.send(Self.header)
        let server = try await proxy.server.accept()
        try await server.expect(Self.header)
        #expect(right.now.bytes.starts(with: [5, 2, 1, 0, 5, 0]))
        for peer in [refused, wrong, right, server] { await peer.close() }
        try await proxy.settle()
        #expect(try record(proxy, "proxy-login-required").level == .info)
        let failed = try record(proxy, "proxy-login-failed")
        #expect(failed.level == .warn && failed.remote == "192.0.2.33:50000")
        let began = try record(proxy, "session-began").messageText ?? ""
        #expect(began.hasPrefix("192.0.2.33:50000 connected by SOCKS5 by way of 127.0.0.1:"), "\(began)")
        for told in proxy.sink.records { #expect(!"\(told.record)".contains("juliet")) }
        try await proxy.stop()
    }

    // MARK: Refusals

    @Test func `An unlisted target is refused, and other sessions are untouched`() async throws {
        let proxy = try await proxy()
        let (code, open) = try await reply(proxy, Self.request(Self.local, proxy.server.port))
        #expect(code == 0)
        let server = try await proxy.server.accept()
        let other = try await TestServer()
        for request in [
            Self.request(Self.local, other.port), Self.request("localhost", other.port),
            Self.request("example.org", proxy.server.port), Self.request([192, 0, 2, 1], proxy.server.port),
        ] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == 2)
            await client.close()
        }
        let client = try await Peer.connect(to: proxy.port)
        try await client.send("CONNECT 127.0.0.1:\(other.port) HTTP/1.1\r\n\r\n")
        let seen = try await client.wait("the answer") { $0.isFinished || $0.isClosed }
        #expect(seen.text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        #expect(seen.text.hasSuffix("127.0.0.1:\(other.port): it does not belong to the listed servers\n"))
        let records = proxy.sink.records(code: "target-not-listed").map(\.record)
        #expect(records.count == 5 && records.allSatisfy { $0.level == .warn && $0.leg == .client })
        #expect(
            records.first?.messageText?.hasSuffix(
                "SOCKS5 to 127.0.0.1:\(other.port): it does not belong to the listed servers"
            ) == true
        )
        #expect(proxy.service.metrics.sessionsTotal == 1)
        try await open.send(Self.header)
        try await server.expect(Self.header)
        for peer in [open, client, server] { await peer.close() }
        await other.close()
        try await proxy.stop()
    }

    @Test func `A target that is xmpptap itself is refused as a loop`() async throws {
        let proxy = try await proxy { $0.targets.relaysOthers = true }
        for request in [Self.request(Self.local, proxy.port), Self.request("LocalHost", proxy.port)] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == 2)
            await client.close()
        }
        let records = proxy.sink.records(code: "target-loop").map(\.record)
        #expect(records.count == 2)
        #expect(records.first?.messageText?.hasSuffix("127.0.0.1:\(proxy.port): xmpptap itself listens there") == true)
        try await proxy.stop()
    }

    @Test func `A closed port gives connection refused, also by name`() async throws {
        let closed = Int(try FreePort.next())
        let proxy = try await proxy(upstream: .endpoint(Endpoint(host: "localhost", port: closed)))
        for request in [Self.request(Self.local, closed), Self.request("localhost", closed)] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == 5)
            await client.close()
        }
        let client = try await Peer.connect(to: proxy.port)
        try await client.send("CONNECT localhost:\(closed) HTTP/1.1\r\n\r\n")
        try await client.wait("the answer") { $0.text.hasPrefix("HTTP/1.1 502 ") && $0.isFinished }
        let record = try record(proxy, "target-unreachable")
        #expect(record.messageText?.contains("connection refused (errno 111)") == true)
        #expect(proxy.service.metrics.connectionsFailed == 3 && proxy.service.metrics.sessionsTotal == 0)
        await client.close()
        try await proxy.stop()
    }

    @Test(
        "A client without a valid request is refused with a record",
        arguments: [
            ([4, 1, 20, 102, 127, 0, 0, 1, 0], [0, 0x5B, 0, 0, 0, 0, 0, 0], "SOCKS version 4 is not supported"),
            (Array("<stream:stream>".utf8), [], "XMPP without a request"), ([0x16, 3, 1], [], "TLS without a request"),
            (
                [5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80], [5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0],
                "BIND is not supported"
            ),
            ([5, 1, 0, 5], [5, 0], "no request for a target within 3000 ms"), ([], [], "within 3000 ms"),
        ] as [([UInt8], [UInt8], String)]
    )
    func invalid(_ bytes: [UInt8], _ answer: [UInt8], _ words: String) async throws {
        let limit: TimeAmount = words.contains("within") ? .seconds(3) : .seconds(60)
        let proxy = try await proxy { $0.targets.requestTimeout = limit }
        let client = try await Peer.connect(to: proxy.port)
        try await client.send(bytes)
        let seen = try await client.wait("the end") { $0.isClosed || $0.isFinished }
        #expect(seen.bytes == answer)
        let record = try record(proxy, "bad-proxy-request")
        #expect(record.level == .warn && record.messageText?.contains(words) == true, "\(record.messageText ?? "")")
        #expect(proxy.service.metrics.sessionsTotal == 0)
        await client.close()
        try await proxy.stop()
    }

    @Test func `A connection that ends within its request is reported`() async throws {
        let proxy = try await proxy()
        let client = try await Peer.connect(to: proxy.port)
        try await client.send([5, 1])
        try await client.finish()
        try await client.wait("the end") { $0.isClosed || $0.isFinished }
        #expect(
            try record(proxy, "bad-proxy-request").messageText?.hasSuffix("before a complete request for a target")
                == true
        )
        await client.close()
        try await proxy.stop()
    }

    @Test func `A connection without data is a port check, without a warning`() async throws {
        let proxy = try await proxy()
        let client = try await Peer.connect(to: proxy.port)
        try await client.finish()
        try await client.wait("the end") { $0.isClosed || $0.isFinished }
        #expect(try record(proxy, "bad-proxy-request").level == .info)
        await client.close()
        try await proxy.stop()
    }

    // MARK: Other targets

    @Test func `Other targets are relayed without decoding, with a record at the beginning and at the end`()
        async throws
    {
        let other = try await TestServer()
        let proxy = try await proxy { $0.targets.relaysOthers = true }
        for first in [Array(Self.header.utf8), [0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5], Array("SSH-2.0-a\r\n".utf8)] {
            let (code, client) = try await reply(proxy, Self.request(Self.local, other.port))
            #expect(code == 0)
            let server = try await other.accept()
            try await client.send(first)
            try await server.wait("the bytes") { $0.bytes == first }
            try await server.send("SSH-2.0-b\r\n")
            try await client.wait("the answer") { $0.text.hasSuffix("SSH-2.0-b\r\n") }
            try await client.finish()
            try await server.wait("the end") { $0.isFinished }
            await server.close()
            await client.close()
        }
        try await proxy.settle()
        let records = proxy.sink.records.map(\.record)
        let began = records.filter { $0.code == "session-began" }
        #expect(began.count == 3)
        #expect(
            began.first?.messageText?.hasSuffix(", to be relayed without decoding to 127.0.0.1:\(other.port)") == true
        )
        let sent = records.filter { $0.code == "not-decoded" && $0.direction == .send }
        #expect(sent.map(\.length) == [UInt64(Self.header.utf8.count), 10, 11])
        #expect(records.filter { $0.code == "session-ended" }.count == 3)
        #expect(
            !records.contains {
                [.stanza, .element, .declaration, .tls].contains($0.kind) || $0.code == "login-failed"
            }
        )
        await other.close()
        try await proxy.stop()
    }

    @Test func `Other targets on this machine are refused for clients on other machines`() async throws {
        let other = try await TestServer()
        let proxy = try await proxy {
            $0.targets.relaysOthers = true
            $0.proxyProtocol = ProxyProtocol(accepts: true)
            $0.targets.users = try? ProxyUsers(parsing: "a:b")
        }
        let client = try await Peer.connect(to: proxy.port)
        let line = Array("PROXY TCP4 192.0.2.33 198.51.100.2 50000 1080\r\n".utf8)
        try await client.send(line + [5, 1, 2, 1, 1, 0x61, 1, 0x62] + Self.request(Self.local, other.port))
        try await client.wait("the reply") { $0.bytes.starts(with: [5, 2, 1, 0, 5, 2]) && $0.isFinished }
        #expect(try record(proxy, "target-not-allowed").messageText?.contains("a loopback address") == true)
        await client.close()
        await other.close()
        try await proxy.stop()
    }

    // MARK: Domains

    @Test(
        "The domain, the targets of its SRV records and their addresses are listed",
        .enabled(if: TestProgram.areInstalled(.dnsmasq), "dnsmasq is missing")
    )
    func domain() async throws {
        let names = try await NameServer([
            "srv-host=_xmpp-client._tcp.example.org,xmpp.example.org,5222,1,1",
            "srv-host=_xmpps-client._tcp.example.org,tls.example.org,5223,1,1",
            "host-record=xmpp.example.org,127.0.0.1", "host-record=tls.example.org,127.0.0.2",
            "host-record=example.org,127.0.0.1", "host-record=other.example.org,127.0.0.1",
            "srv-host=_xmpp-client._tcp.gone.example",
        ])
        let domains = [try Upstream.Domain("example.org"), try Upstream.Domain("gone.example")]
        let proxy = try await proxy(upstream: .domains(domains)) {
            $0.resolver = Endpoint(host: "127.0.0.1", port: Int(names.port))
        }
        let port = proxy.server.port
        for request in [
            Self.request("example.org", port), Self.request("XMPP.example.ORG.", port),
            Self.request(Self.local, port), Self.request("127.0.0.1", port),
        ] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == 0)
            let server = try await proxy.server.accept()
            try await client.send(Self.header)
            try await server.expect(Self.header)
            await client.close()
            await server.close()
        }
        for (request, expected) in [
            (Self.request("other.example.org", port), UInt8(2)), (Self.request([127, 0, 0, 3], port), 2),
            (Self.request([127, 0, 0, 2], port), 5), (Self.request("gone.example", port), 4),
        ] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == expected, "\(request)")
            await client.close()
        }
        try await proxy.settle()
        try await proxy.stop()
        try await names.stop()
    }
    @Test func `Connections to a domain go to the server that is given for it, at any port`() async throws {
        let server = try await TestServer()
        var domain = try Upstream.Domain("example.org")
        domain.server = Endpoint(host: "127.0.0.1", port: server.port)
        let proxy = try await proxy(upstream: .domains([domain]))
        for (request, expected) in [
            (Self.request("Example.org", 5222), UInt8(0)), (Self.request(Self.local, server.port), 0),
            (Self.request("localhost", server.port), 0), (Self.request(Self.local, 5222), 2),
            (Self.request("example.net", 5222), 2),
        ] {
            let (code, client) = try await reply(proxy, request)
            #expect(code == expected, "\(request)")
            if code == 0 { await (try await server.accept()).close() }
            await client.close()
        }
        try await proxy.settle()
        await server.close()
        try await proxy.stop()
    }
}

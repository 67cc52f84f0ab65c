import Foundation
import TapTestKit
import Testing

/// Tests of the proxy with the PROXY protocol, between another proxy (haproxy) and a server that both use it.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.haproxy, .ejabberd), "haproxy or ejabberd is missing")
)
struct ProxyProtocolTests {
    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' "
        + "version='1.0'>"

    /// A haproxy on a free loopback port in front of a port on 127.0.0.1. Every 100 ms it checks whether that port
    /// accepts connections.
    private struct Front {
        let port: UInt16
        private let folder: TemporaryFolder
        private let process: ToolProcess

        init(before upstream: UInt16, _ option: String) async throws {
            folder = try TemporaryFolder()
            port = try FreePort.next()
            let configuration = try folder.write(
                """
                defaults
                    mode tcp
                    timeout connect 5s
                    timeout client 1m
                    timeout server 1m
                listen front
                    bind 127.0.0.1:\(port)
                    server tap 127.0.0.1:\(upstream) \(option) check inter 100ms

                """,
                to: "haproxy.cfg"
            )
            process = try ToolProcess(TestProgram.haproxy.rawValue, ["-db", "-f", configuration])
            let end = ContinuousClock.now + .seconds(20)
            while !FreePort.accepts(port) {
                guard process.isRunning, ContinuousClock.now < end else { throw process.failure("does not accept") }
                try await Task.sleep(for: .milliseconds(20))
            }
        }

        func stop() async throws { try await process.terminate() }
    }

    /// Logs in as juliet and disconnects.
    private func logIn(_ client: RawConnection) async throws {
        try await client.write(Self.header)
        try await client.read(through: "</stream:features>")
        let secret = Data("\0juliet\0Capulet-1597".utf8).base64EncodedString()
        try await client.write("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>")
        try await client.read(through: "<success")
        try await client.write(Self.header)
        try await client.read(through: "</stream:features>")
        try await client.write("</stream:stream>")
        _ = try await client.drain()
    }

    @Test(
        "The server gets the client's address with either version of the PROXY protocol",
        arguments: [("send-proxy", "send"), ("send-proxy-v2", "send-v1"), ("send-proxy-v2", "send")]
    )
    func address(_ option: String, _ sending: String) async throws {
        let server = try await EjabberdServer(usesProxyProtocol: true)
        let tap = try await Tap(upstream: server.port, arguments: ["--proxy-protocol", "accept,\(sending)"])
        let front = try await Front(before: tap.port, option)
        try await logIn(RawConnection(port: front.port, from: "127.9.9.9"))
        // Gives haproxy time for several checks.
        try await Task.sleep(for: .milliseconds(500))
        try await front.stop()
        try await tap.stop()
        try await server.wait(for: "authentication for juliet@localhost by anonymous backend from 127.9.9.9")
        try await server.stop()
        let records = try tap.records()
        let began = records.filter { $0.code == "session-began" && $0.remote?.hasPrefix("127.9.9.9:") == true }
        #expect(began.count == 1)
        #expect(began.first?.message?.hasPrefix("\(began.first?.remote ?? "") connected by way of 127.0.0.1:") == true)
        // The test's check whether haproxy listens may be logged as a session too; haproxy's own checks are not.
        let others = records.filter { $0.code == "session-began" && $0.remote?.hasPrefix("127.9.9.9:") == false }
        #expect(others.count <= 1, "\(others.compactMap(\.message))")
        #expect(!records.contains { $0.code == "bad-proxy-header" && $0.message?.contains("without") == true })
    }

    @Test func `Without --proxy-protocol, the server sees the proxy, and a PROXY header is a stream error`()
        async throws
    {
        let server = try await EjabberdServer(usesProxyProtocol: false)
        let tap = try await Tap(upstream: server.port)
        try await logIn(RawConnection(port: tap.port, from: "127.9.9.9"))
        try await server.wait(for: "authentication for juliet@localhost by anonymous backend from 127.0.0.1")
        let liar = try RawConnection(port: tap.port)
        try await liar.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 5222\r\n" + Self.header)
        _ = try await liar.drain()
        try await tap.stop()
        try await server.stop()
        #expect(!(try tap.records().contains { $0.remote?.hasPrefix("192.0.2.1") == true }))
    }

    @Test func `With --proxy-protocol accept, a connection without a header is closed with a warning`() async throws {
        let server = try await EjabberdServer(usesProxyProtocol: true)
        let tap = try await Tap(upstream: server.port, arguments: ["--proxy-protocol", "accept"])
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header)
        let (count, _) = try await client.drain()
        #expect(count == 0)
        try await tap.wait(for: ": no PROXY header", in: tap.story)
        let line = Tap.read(tap.story).split(separator: "\n").first { $0.contains("no PROXY header") } ?? ""
        #expect(line.contains(" warn "), "\(line)")
        try await tap.stop()
        try await server.stop()
    }
}

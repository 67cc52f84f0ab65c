import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of a session whose server was found by the domain that the client requested.
struct DiscoveryTests {
    /// A fatal `unrecognized_name` alert.
    private static let unrecognized: [UInt8] = [0x15, 3, 1, 0, 2, 2, 112]

    private func header(_ to: String?) -> String {
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
            + (to.map { " to='\($0)'" } ?? "") + " version='1.0'>"
    }

    private func session(for domain: String) -> SessionHarness {
        var harness = SessionHarness(connected: false)
        harness.handle(.chose(domain: domain))
        harness.connect()
        return harness
    }

    @Test(
        "A stream that stays with its domain passes",
        arguments: ["Example.ORG", "example.org", nil] as [String?]
    )
    func stays(_ to: String?) {
        var harness = session(for: "example.org")
        harness.send(header("example.org"))
        harness.send(header(to))
        #expect(harness.closed == nil)
        #expect(harness.toServer == Array((header("example.org") + header(to)).utf8))
    }

    @Test func `A stream header with the same domain in Unicode is accepted`() {
        var harness = session(for: "xn--caf-dma.example")
        harness.send(header("Café.example"))
        #expect(harness.closed == nil)
    }

    @Test func `A stream restart for another domain ends the session and is not forwarded`() {
        var harness = session(for: "example.org")
        harness.send(header("example.org"))
        harness.recv(header(nil))
        harness.send(header("other.example"))
        #expect(harness.closed == false)
        #expect(harness.toServer == Array((header("example.org") + "</stream:stream>").utf8))
        let told = String(decoding: harness.toClient, as: UTF8.self)
        #expect(told.contains("<host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"))
        let record = harness.told.first { $0.record.code == "host-unknown" }?.record
        #expect(record?.level == .error)
        #expect(record?.messageText == "the session is for example.org, a new stream for other.example")
    }

    @Test func `TLS for another domain is refused with an alert, for the same domain it is forwarded`() {
        var harness = session(for: "example.org")
        let hello = TestHello.bytes(serverName: "EXAMPLE.org")
        harness.receive(.send, hello)
        #expect(harness.closed == nil)
        #expect(harness.toServer == hello)

        harness = session(for: "example.org")
        harness.receive(.send, TestHello.bytes(serverName: "other.example"))
        #expect(harness.closed == false)
        #expect(harness.toServer == [])
        #expect(harness.toClient == Self.unrecognized)
        #expect(
            harness.told.first { $0.record.code == "host-unknown" }?.record.messageText
                == "the session is for example.org, TLS for other.example"
        )
    }

    @Test func `After STARTTLS, a server name other than the stream's domain is refused with an alert`() {
        var harness = session(for: "example.org")
        harness.send(header("example.org"))
        harness.recv(header(nil))
        harness.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        harness.recv("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        harness.receive(.send, TestHello.bytes(serverName: "other.example"))
        #expect(harness.closed == false)
        #expect(Array(harness.toClient.suffix(7)) == Self.unrecognized)
    }

    @Test(
        "A refused client with direct TLS receives an alert, and its ClientHello is recorded",
        arguments: [(StreamErrorCondition.hostUnknown, UInt8(112)), (.remoteConnectionFailed, 80), (.badFormat, 50)]
    )
    func refusedTLS(_ condition: StreamErrorCondition, _ alert: UInt8) {
        var harness = SessionHarness(connected: false)
        harness.session.handle(.abort(condition, "No.", code: condition.rawValue), at: harness.now)
        harness.receive(.send, TestHello.bytes(serverName: "other.example"))
        #expect(harness.closed == false)
        #expect(harness.toClient == [0x15, 3, 1, 0, 2, 2, alert])
        #expect(harness.told.contains { $0.record.code == "client-hello" })
        #expect(harness.told.contains { $0.record.code == condition.rawValue })
    }

    @Test func `A refused client that does not send XML also receives the stream error`() {
        var harness = SessionHarness(connected: false)
        harness.session.handle(.abort(.notWellFormed, "No."), at: harness.now)
        harness.send("GET / HTTP/1.1\r\n")
        #expect(harness.closed == false)
        #expect(String(decoding: harness.toClient, as: UTF8.self).contains("<not-well-formed"))
    }

    @Test func `Each step of discovery is reported with its result and its duration`() {
        var harness = SessionHarness(connected: false)
        let refused = DiscoveryStep(.connection, .failed, "192.0.2.1:5222", "connection refused", duration: 1_500_000)
        harness.handle(.attempted(refused))
        harness.handle(.attempted(DiscoveryStep(.connection, .skipped, "a:5223", "why", isDetail: true)))
        harness.connect()
        let told = harness.told.filter { $0.record.code == "step" }.map(\.record)
        #expect(told.map(\.messageText) == ["tcp 192.0.2.1:5222: connection refused", "tcp a:5223: why"])
        #expect(told.map(\.level) == [.info, .verbose])
        #expect(told.map(\.roundTrip) == [1_500_000, nil])

        #expect(told.first?.details?["step"] == .string("connect"))
        #expect(told.first?.details?["outcome"] == .string("failed"))
    }
}

import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapCore

/// Tests that the software of a client, learned in one session, is known in later sessions from the same address.
@Suite struct ClientSoftwareTests {
    private static let caps = "http://jabber.org/protocol/caps"

    /// Returns the software names known for a client at `next`, after a client at `first` has sent these stanzas.
    private static func names(
        after stanzas: [String],
        from first: String = "192.0.2.1:50000",
        at next: String = "192.0.2.1:50001"
    ) -> [String] {
        let run = Run()
        var harness = SessionHarness(run: run, remote: first)
        // All turns before the presence.
        harness.say(Array(Conversations.plainLogin.prefix(12)))
        for stanza in stanzas { harness.send(stanza) }
        let other = SessionHarness(run: run, remote: next)
        return run.clientSoftware(of: other.session, nil).names
    }

    @Test(arguments: [
        "<presence><show>chat</show><c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='urn:a' ver='x'/></presence>",
        "<iq type='result' id='v' to='example.org'><query xmlns='jabber:iq:version'><name>urn:a</name></query></iq>",
        "<iq type='result' id='d' to='example.org'><query xmlns='http://jabber.org/protocol/disco#info'>"
            + "<identity category='account' name='urn:b'/><identity category='client' type='pc' name='urn:a'/></query></iq>",
    ])
    func `a client's software name is known for later clients of the same address`(stanza: String) {
        #expect(Self.names(after: [stanza]) == ["urn:a"])
        #expect(Self.names(after: [stanza], at: "192.0.2.2:50001").isEmpty)
        #expect(Self.names(after: [stanza], from: "[2001:db8::1]:5", at: "[2001:db8::1]:6") == ["urn:a"])
    }

    @Test func `software names sent by other clients, in requests or at logout are ignored`() {
        let run = Run()
        var harness = SessionHarness(run: run, remote: "192.0.2.1:50000")
        harness.say(Array(Conversations.plainLogin.prefix(12)))
        harness.recv("<presence from='romeo@example.net/a'><c xmlns='\(Self.caps)' node='urn:b'/></presence>")
        let names = run.clientSoftware(of: harness.session, nil).names
        #expect(names.isEmpty)
        // Presence of type unavailable and requests are not searched either.
        harness.send("<presence type='unavailable'><c xmlns='\(Self.caps)' node='urn:b'/></presence>")
        harness.send("<iq type='get' id='v'><query xmlns='jabber:iq:version'><name>urn:b</name></query></iq>")
        let later = run.clientSoftware(of: harness.session, nil).names
        #expect(later.isEmpty)
    }

    @Test func `only the first stanzas of a session are searched for a software name`() {
        let said = "<presence><c xmlns='\(Self.caps)' node='urn:a'/></presence>"
        let silent = [String](repeating: "<presence/>", count: Int(SoftwareObserver.maximumStanzas))
        #expect(Self.names(after: silent + [said]).isEmpty)
        #expect(Self.names(after: silent.dropLast() + [said]) == ["urn:a"])
    }

    @Test func `the number and length of stored software names are limited`() {
        let table = ClientSoftwareTable()
        for number in 0..<10 { table.store("client \(number)", at: "192.0.2.1") }
        table.store("client 7", at: "192.0.2.1")
        #expect(table.names(at: "192.0.2.1") == ["client 7", "client 9", "client 8", "client 6"])
        table.store(String(repeating: "ü", count: 1000), at: "192.0.2.2")
        #expect(table.names(at: "192.0.2.2").first?.utf8.count == ClientSoftwareTable.maximumNameLength)
        for host in 0..<5 * ClientSoftwareTable.capacity { table.store("a", at: "\(host)") }
        #expect(table.names(at: "192.0.2.1").isEmpty)
        table.store("", at: "192.0.2.3")
        #expect(table.names(at: "192.0.2.3").isEmpty)
    }

    // MARK: Certificates that clients refuse after the handshake

    /// Returns the diagnosis of a client that leaves after TLS is established. `trust` is set if the client received a
    /// certificate of xmpptap.
    private static func diagnosis(_ trust: Remedy?, _ last: (inout SessionHarness) -> Void) -> LoginDiagnosis? {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        var harness = SessionHarness(options: options)
        harness.say(Conversations.startTLS)
        harness.openTLS(.server)
        var agreement = TLSAgreement(version: 0x0304, details: [:], summary: "TLS 1.3 with the client")
        agreement.trust = trust
        harness.handle(.tls(.client, .opened(agreement)))
        last(&harness)
        return harness.diagnoses.first
    }

    @Test(arguments: [LegEnd.finished, .reset])
    func `a client that leaves after the TLS handshake is diagnosed as refusing the certificate`(end: LegEnd) throws {
        let remedy = Remedy.trustAuthority(.init(domain: "example.org"))
        let refused = try #require(Self.diagnosis(remedy) { $0.leave(.client, end) })
        #expect(refused.cause == .certificateNotAccepted && refused.loginStep == .tls && refused.side == .tap)
        #expect(refused.advice == SessionHarness.advice(remedy))
        // With the server's own certificate, a server that leaves, or a client that continues, the cause is different.
        #expect(Self.diagnosis(nil) { $0.leave(.client, end) }?.cause == .clientGaveUp)
        #expect(Self.diagnosis(remedy) { $0.leave(.server, end) }?.cause == .serverGone)
        let later = Self.diagnosis(remedy) { harness in
            harness.say(Array(Conversations.plainLogin.prefix(3)))
            harness.leave(.client, end)
        }
        #expect(later?.cause != .certificateNotAccepted && later != nil)
    }
}

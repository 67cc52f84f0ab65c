import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

@Suite struct EndingTests {
    private static func open() -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    /// Advances the clock of a session.
    private static func wait(_ seconds: Int64, _ harness: inout SessionHarness) {
        harness.now = harness.now.advanced(by: seconds * 1_000_000_000)
    }

    /// Ends a session; returns the message and the close reason of its last record.
    private static func end(
        _ harness: inout SessionHarness,
        _ leg: Leg,
        _ end: LegEnd
    ) -> (messageText: String?, closeReason: String?) {
        harness.end(leg, end)
        harness.end(leg.other, .finished)
        harness.close()
        let record = harness.told(code: "session-ended").first?.record
        return (record?.messageText, record?.details?["close_reason"]?.text)
    }

    private static let ping = "<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>"

    @Test func `a server whose ping was not answered closed the session for that reason`() {
        var harness = Self.open()
        harness.recv(Self.ping)
        Self.wait(20, &harness)
        let told = Self.end(&harness, .server, .finished)
        #expect(told.closeReason == "ping-timeout")
        #expect(
            told.messageText == "the server's connection ended before its stream was closed; "
                + "its ping was not answered for 20 s"
        )
    }

    @Test func `an answered ping is not the reason for the end`() {
        var harness = Self.open()
        harness.recv(Self.ping)
        harness.send("<iq type='result' id='p1'/>")
        Self.wait(20, &harness)
        #expect(Self.end(&harness, .server, .finished).closeReason == "unclean")
    }

    @Test func `a recent ping, or a ping of the other side, is not the reason for the end`() {
        var other = Self.open()
        other.send(Self.ping)
        Self.wait(20, &other)
        #expect(Self.end(&other, .server, .finished).closeReason == "unclean")
        var young = Self.open()
        young.recv(Self.ping)
        Self.wait(1, &young)
        #expect(Self.end(&young, .server, .reset).closeReason == "reset")
    }

    @Test func `a missing acknowledgement is the reason for the end`() {
        var harness = Self.open()
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        harness.send("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        Self.wait(9, &harness)
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        Self.wait(5, &harness)
        let told = Self.end(&harness, .server, .reset)
        #expect(told.closeReason == "ack-timeout")
        #expect(told.messageText?.hasSuffix("its request for an acknowledgement was not answered for 14 s") == true)
    }

    @Test func `a long silence is the reason for the end`() {
        var harness = Self.open()
        Self.wait(300, &harness)
        let told = Self.end(&harness, .client, .finished)
        #expect(told.closeReason == "idle")
        #expect(told.messageText?.hasSuffix("; no data in either direction for 300 s") == true)
    }

    @Test(
        arguments: [
            ("<conflict NS/>", "conflict", "conflict; another login uses the same resource balcony"),
            ("<system-shutdown NS/>", "system-shutdown", "system-shutdown"),
            (
                "<policy-violation NS/><text NS>too many stanzas</text>", "policy-violation",
                "policy-violation; too many stanzas"
            ),
            (
                "<see-other-host NS>xmpp2.example.org:5222</see-other-host>", "see-other-host",
                "see-other-host; redirected to xmpp2.example.org:5222; the client will bypass xmpptap"
            ),
            ("<host-gone NS/>", "stream-error", "host-gone"),
            ("<connection-timeout NS/>", "idle", "connection-timeout"),
        ]
    ) func `a stream error is the reason for the end`(error: String, closeReason: String, words: String) {
        var harness = Self.open()
        let content = error.replacing("NS", with: "xmlns='urn:ietf:params:xml:ns:xmpp-streams'")
        harness.recv("<stream:error>\(content)</stream:error></stream:stream>")
        let told = Self.end(&harness, .server, .finished)
        #expect(told.closeReason == closeReason)
        #expect(told.messageText == "stream error from the server: \(words)")
    }

    @Test func `a timeout of the server is explained by its unanswered ping`() {
        var harness = Self.open()
        harness.recv(Self.ping)
        Self.wait(60, &harness)
        harness.recv(
            "<stream:error><connection-timeout xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        )
        #expect(Self.end(&harness, .server, .finished).closeReason == "ping-timeout")
    }

    private static let late = "<a xmlns='urn:xmpp:sm:3' h='3'/><presence type='unavailable'/>"

    @Test(arguments: [LegEnd.reset, .failed("broken pipe (errno 32)")], Leg.allCases)
    func `a peer that ends its stream and disconnects does not reset the other leg`(end: LegEnd, leg: Leg) {
        // The peer may have sent its end tag and a FIN, only its end tag, or only a FIN because TLS hides the end tag.
        var closed = Self.open()
        closed.receive(leg.inbound, Array("</stream:stream>".utf8))
        closed.end(leg)
        closed.receive(leg.inbound.opposite, Array(Self.late.utf8))
        #expect(closed.closed == nil, "the other side may still have something to say")
        closed.end(leg, end)
        #expect(closed.closed == false)

        var sudden = Self.open()
        sudden.receive(leg.inbound, Array("</stream:stream>".utf8))
        sudden.end(leg, end)
        #expect(sudden.closed == false)

        var hidden = SessionHarness()
        hidden.say(Conversations.startTLS)
        hidden.end(leg)
        hidden.end(leg, end)
        #expect(hidden.closed == false)
    }

    /// Returns a TLS record of a type, with content of this length.
    private static func record(_ type: UInt8, _ length: Int) -> [UInt8] {
        [type, 3, 3, UInt8(length >> 8), UInt8(length & 255)] + [UInt8](repeating: 0x15, count: length)
    }

    @Test(arguments: Leg.allCases, [1, 7, Int.max])
    func `close_notify before a reset is an orderly end`(leg: Leg, piece: Int) throws {
        func end(_ bytes: [UInt8]) -> (reset: Bool?, level: Level?) {
            var harness = SessionHarness()
            harness.say(Conversations.startTLS)
            for start in stride(from: 0, to: bytes.count, by: min(piece, bytes.count)) {
                harness.receive(leg.inbound, Array(bytes[start..<min(bytes.count, start + min(piece, bytes.count))]))
            }
            harness.end(leg, .reset)
            harness.close()
            return (harness.closed, harness.told(code: "session-ended").first?.record.level)
        }
        let data = Self.record(23, 300)
        for alert in [Self.record(21, 26), Self.record(23, 19), Self.record(23, 11)] {
            #expect(end(data + alert) == (false, .info))
            #expect(end(data + alert + data) == (true, .warn))
            #expect(end(data + alert.dropLast()) == (true, .warn))
        }
        #expect(end(data) == (true, .warn))
        #expect(end(Array("<".utf8) + Self.record(21, 2)) == (true, .warn))
    }

    @Test(arguments: Leg.allCases) func `a reset after the other side has left in order is not forwarded`(leg: Leg) {
        var harness = Self.open()
        harness.receive(leg.inbound.opposite, Array("</stream:stream>".utf8))
        harness.end(leg.other)
        harness.end(leg, .reset)
        #expect(harness.closed == false)
    }

    @Test(arguments: Leg.allCases) func `a reset before the end of the stream is forwarded`(leg: Leg) {
        var bare = Self.open()
        bare.end(leg)
        bare.end(leg, .reset)
        #expect(bare.closed == true, "a FIN without the end of the stream, then a reset")

        var unanswered = Self.open()
        unanswered.receive(leg.inbound.opposite, Array("</stream:stream>".utf8))
        unanswered.end(leg, .reset)
        #expect(unanswered.closed == true, "the other one waits for an answer")
    }

    @Test(arguments: Direction.allCases) func `items that arrive late in a logout are not an error`(
        direction: Direction
    ) throws {
        var harness = Self.open()
        let before = harness.text(direction)
        harness.receive(direction, Array(("</stream:stream>" + Self.late).utf8))
        harness.receive(direction, Array(Self.late.utf8))
        harness.receive(direction.opposite, Array("</stream:stream>".utf8))
        harness.end(direction.source)
        harness.end(direction.destination)
        harness.close()
        #expect(harness.text(direction) == before + "</stream:stream>" + Self.late + Self.late)
        let note = try #require(harness.told(code: "after-stream-end").first?.record)
        #expect(note.level == .verbose && note.kind == .note)
        #expect(note.messageText?.contains("<a xmlns='urn:xmpp:sm:3' h='3'/>") == true, "\(note.messageText ?? "")")
        #expect(harness.told(code: "after-stream-end").allSatisfy { $0.record.level == .verbose })
        #expect(harness.told.allSatisfy { $0.record.level >= .info && $0.record.kind != .error })
        #expect(harness.session.info.ending == .clean(by: direction))
    }

    @Test func `other ends of a session have a close reason`() {
        var clean = SessionHarness()
        clean.say(Conversations.plainLogin)
        #expect(Self.end(&clean, .client, .finished).closeReason == "closed")
        var stopped = Self.open()
        stopped.session.handle(.stop, at: stopped.now)
        #expect(Self.end(&stopped, .client, .finished).closeReason == "stopped")
        var aborted = Self.open()
        aborted.session.handle(.abort(.resourceConstraint, "no room"), at: aborted.now)
        #expect(Self.end(&aborted, .client, .finished).closeReason == "tap")
    }

    // MARK: Reconnect loops

    /// Runs one session that ends `lasting` nanoseconds after it became open; returns the loop warnings.
    private static func session(
        of run: Run,
        at seconds: Int64,
        resource: String? = "balcony",
        remote: String = "192.0.2.1:50000",
        lasting: Int64 = 1_000_000_000,
        ends: (inout SessionHarness) -> Void = { $0.end(.server, .reset) }
    ) -> [Record] {
        var harness = SessionHarness(run: run, remote: remote)
        harness.now = harness.now.advanced(by: seconds * 1_000_000_000)
        harness.say(Array(Conversations.plainLogin.prefix(8)))
        let wanted = resource.map { "<resource>\($0)</resource>" } ?? ""
        harness.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\(wanted)</bind></iq>")
        harness.recv(
            "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>juliet@example.org/\(resource ?? "made-up-\(seconds)")</jid></bind></iq>"
        )
        harness.now = harness.now.advanced(by: lasting)
        ends(&harness)
        harness.close()
        return harness.told(code: "reconnect-loop").map(\.record)
    }

    @Test func `a warning is logged if a client's sessions drop repeatedly soon after login`() throws {
        let run = Run()
        let told = (0..<7).flatMap { Self.session(of: run, at: $0 * 3) }
        #expect(told.count == 1)
        let record = try #require(told.first)
        #expect(record.level == .warn)
        #expect(
            record.messageText
                == "reconnect loop: 5 sessions of this client dropped within 30 s of login, in 12 s; the last one: "
                + "the server's connection was reset before its stream was closed"
        )
        // The result is the same if the server assigns a new resource each time.
        let other = Run()
        #expect((0..<7).flatMap { Self.session(of: other, at: $0 * 3, resource: nil) }.count == 1)
    }

    @Test func `two clients that compete for one resource are reported as the cause of a loop`() throws {
        let run = Run()
        let told = (0..<10).flatMap { number in
            Self.session(of: run, at: number, remote: "192.0.2.\(number % 2 + 1):50000") { harness in
                harness.recv(
                    "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
                )
            }
        }
        #expect(told.count == 2)
        #expect(told.allSatisfy { $0.messageText?.contains("another login uses the same resource balcony") == true })
    }

    @Test func `independent clients of one account do not form a reconnect loop`() {
        let run = Run()
        let resources = (0..<12).flatMap { Self.session(of: run, at: $0, resource: "client \($0)") }
        #expect(resources.isEmpty)
        let addresses = (0..<12).flatMap { Self.session(of: run, at: $0, remote: "192.0.2.\($0):50000") }
        #expect(addresses.isEmpty)
    }

    @Test func `sessions that are closed normally or last long do not form a reconnect loop`() {
        let run = Run()
        // Each session has a different client port, as usual.
        let ended = (0..<12).flatMap { number in
            Self.session(of: run, at: number, remote: "192.0.2.1:\(50000 + number)") { harness in
                harness.send("</stream:stream>")
                harness.recv("</stream:stream>")
                harness.end(.client)
                harness.end(.server)
            }
        }
        #expect(ended.isEmpty)
        let lasting = (0..<12).flatMap { Self.session(of: run, at: $0, lasting: 31_000_000_000) }
        #expect(lasting.isEmpty)
        let stopped = (0..<12).flatMap { Self.session(of: run, at: $0) { $0.session.handle(.stop, at: $0.now) } }
        #expect(stopped.isEmpty)
    }

    @Test func `connections from different ports of one address belong to the same client`() {
        let run = Run()
        let told = (0..<6).flatMap { Self.session(of: run, at: $0, remote: "[2001:db8::1]:\(50000 + $0)") }
        #expect(told.count == 1)
    }
}

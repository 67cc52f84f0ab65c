import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// Tests the login steps of whole conversations, as the session records them.
@Suite struct LoginTimelineTests {
    /// Returns the recorded steps as in the log, for example `features: ok`.
    private static func steps(_ harness: borrowing SessionHarness) -> [String] {
        harness.told(code: LoginStep.code).compactMap(\.record.messageText)
    }

    private static func end(_ harness: inout SessionHarness, _ leg: Leg = .client, _ end: LegEnd = .finished) {
        harness.end(leg, end)
        harness.end(leg.other, .finished)
        harness.close()
    }

    private static func opened(_ features: String) -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(2)))
        harness.recv("<stream:features>\(features)</stream:features>")
        return harness
    }

    private static let plain =
        "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
    private static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"

    @Test func `a login has each step in order`() {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        Self.end(&harness)
        #expect(
            Self.steps(harness) == [
                "connect: ok", "stream-open: ok", "features: ok", "mechanism: ok", "sasl: ok", "stream-open: ok",
                "features: ok", "bind: ok", "ready: ok",
            ]
        )
    }

    @Test func `a step has its start, its duration and its details`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(4)))
        harness.now = harness.now.advanced(by: 70_000_000)
        harness.say(Array(Conversations.plainLogin[4...]))
        let records = harness.told(code: LoginStep.code).map(\.record)
        #expect(records.allSatisfy { $0.kind == .session && $0.level == .verbose })
        let connect = try #require(records.first)
        #expect(connect.details == ["step": "connect", "outcome": "ok", "address": "127.0.0.1:5222"])
        #expect(connect.part == .net)
        #expect(records[1].details == ["step": "stream-open", "outcome": "ok", "epoch": 1, "to": "example.org"])
        let choice = records[3]
        #expect(choice.details?["mechanism"] == "PLAIN")
        #expect(choice.details?["offered"] == .strings(["SCRAM-SHA-1", "PLAIN"]))
        #expect(choice.roundTrip == 1_000_000)
        let sasl = records[4]
        #expect(sasl.details?["phase"] == "success")
        // The server waited before its answer, and each turn of the conversation takes one millisecond.
        #expect(sasl.roundTrip == 71_000_000)
        #expect(records[5].details?["epoch"] == 2)
        let ready = try #require(records.last)
        #expect(ready.roundTrip == ready.monotonic)
        #expect(ready.jid == "juliet@example.org/balcony")
    }

    @Test func `steps are recorded only at level verbose`() {
        var harness = SessionHarness(options: SessionOptions(level: .info))
        harness.say(Conversations.plainLogin)
        Self.end(&harness)
        #expect(harness.told(code: LoginStep.code).isEmpty)
        let numbers = harness.told.map(\.record.sequence)
        #expect(numbers == Array(1...UInt64(numbers.count)))
    }

    @Test func `the timeline of TLS that is passed through ends at TLS`() {
        var harness = SessionHarness()
        harness.say(Conversations.startTLS)
        harness.receive(.send, [0x16, 3, 1])
        Self.end(&harness)
        #expect(
            Self.steps(harness) == [
                "connect: ok", "stream-open: ok", "features: ok", "starttls: ok",
                "tls: skipped, passed through; the rest is not decrypted",
            ]
        )
        var direct = SessionHarness()
        direct.receive(.send, [0x16, 3, 1])
        Self.end(&direct)
        #expect(
            Self.steps(direct) == ["connect: ok", "tls: skipped, passed through; the rest is not decrypted"]
        )
    }

    @Test func `each attempt with a refused password is a failed step`() {
        var harness = Self.opened(Self.plain)
        for _ in 0..<2 {
            harness.send(Self.auth)
            harness.recv(
                "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>No.</text></failure>"
            )
        }
        Self.end(&harness)
        #expect(
            Self.steps(harness).dropFirst(3) == [
                "mechanism: ok", "sasl: failed, not-authorized, No.", "mechanism: ok",
                "sasl: failed, not-authorized, No.",
            ]
        )
        // At level info and above, the log contains each refusal once, and the diagnosis once.
        #expect(harness.told.count { $0.record.level <= .warn && $0.record.condition == "not-authorized" } == 3)
    }

    @Test func `the side that did not continue is named`() {
        var client = Self.opened(Self.plain)
        Self.end(&client)
        #expect(Self.steps(client).last == "mechanism: failed, the client did not continue")
        var server = Self.opened(Self.plain)
        server.send(Self.auth)
        Self.end(&server, .server)
        #expect(Self.steps(server).last == "sasl: failed, the server did not answer")
        var silent = SessionHarness()
        silent.say(Array(Conversations.plainLogin.prefix(1)))
        Self.end(&silent)
        #expect(Self.steps(silent).last == "stream-open: failed, the server did not answer")
        var wary = Self.opened("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>")
        Self.end(&wary)
        #expect(Self.steps(wary).last == "starttls: failed, the client did not continue")
        var unbound = SessionHarness()
        unbound.say(Array(Conversations.plainLogin.prefix(8)))
        Self.end(&unbound)
        #expect(Self.steps(unbound).last == "bind: failed, the client did not continue")
        var stopped = Self.opened(Self.plain)
        stopped.session.handle(.stop, at: stopped.now)
        Self.end(&stopped)
        #expect(Self.steps(stopped).last == "mechanism: skipped, xmpptap stopped")
    }

    @Test func `an unused offer of TLS is recorded once`() {
        var harness = Self.opened("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>" + Self.plain)
        for _ in 0..<2 {
            harness.send(Self.auth)
            harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        }
        #expect(Self.steps(harness).filter { $0.hasPrefix("starttls") } == ["starttls: skipped, offered, not used"])
        var declined = Self.opened("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>" + Self.plain)
        declined.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        declined.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>")
        Self.end(&declined)
        #expect(Self.steps(declined).last == "starttls: failed, the server answered <failure/>")
    }

    @Test func `a stream error fails the pending step`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(2)))
        harness.recv(
            "<stream:error><host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        )
        Self.end(&harness)
        #expect(Self.steps(harness).last == "features: failed, host-unknown")
        #expect(harness.told(code: LoginStep.code).last?.record.condition == "host-unknown")
    }

    @Test func `an unreachable server is one failed step, or one for each known attempt`() {
        var one = SessionHarness(connected: false)
        one.failServer("connection refused")
        one.say(Array(Conversations.plainLogin.prefix(1)))
        Self.end(&one)
        #expect(Self.steps(one) == ["connect: failed, connection refused"])

        var many = SessionHarness(connected: false)
        let began = many.now
        many.now = many.now.advanced(by: 5_000_000)
        many.session.took(.nameLookup, .ok, since: began, details: ["name": "example.org"], at: many.now)
        many.session.took(.connect, .failed("refused"), details: ["address": "192.0.2.1:5222"], at: many.now)
        many.failServer("no address answers")
        #expect(Self.steps(many) == ["name-lookup: ok", "connect: failed, refused"])
        #expect(many.told(code: LoginStep.code).first?.record.roundTrip == 5_000_000)
    }

    @Test func `a refused binding and a legacy session request are steps`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(9)))
        harness.recv(
            "<iq type='error' id='b1'><error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "</error></iq>"
        )
        #expect(Self.steps(harness).last == "bind: failed, conflict")
        var old = SessionHarness()
        old.say(Array(Conversations.plainLogin.prefix(10)))
        old.send("<iq type='set' id='s1'><session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>")
        old.recv("<iq type='result' id='s1'/>")
        #expect(Self.steps(old).suffix(3) == ["bind: ok", "ready: ok", "session: ok"])
    }

    @Test func `resumption is a step, and so is its refusal`() {
        var resumed = SessionHarness()
        resumed.say(Array(Conversations.plainLogin.prefix(8)))
        resumed.send("<resume xmlns='urn:xmpp:sm:3' previd='x' h='1'/>")
        resumed.recv("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>")
        #expect(Self.steps(resumed).suffix(2) == ["resume: ok", "ready: ok"])
        var refused = SessionHarness()
        refused.say(Array(Conversations.plainLogin.prefix(8)))
        refused.send("<resume xmlns='urn:xmpp:sm:3' previd='x' h='1'/>")
        refused.recv(
            "<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
        )
        #expect(Self.steps(refused).last == "resume: failed, item-not-found")
        refused.say(Array(Conversations.plainLogin[8...9]))
        #expect(Self.steps(refused).suffix(2) == ["bind: ok", "ready: ok"])
    }

    @Test func `a login with SASL2 binds a resource in the same exchange`() {
        var harness = SessionHarness()
        harness.say(Conversations.sasl2)
        Self.end(&harness)
        #expect(
            Self.steps(harness) == [
                "connect: ok", "mechanism: ok", "stream-open: ok", "features: ok", "sasl2: ok", "bind2: ok",
                "ready: ok",
            ]
        )
    }

    @Test func `the timeline stores a limited number of steps`() {
        var timeline = LoginTimeline(at: 0)
        for number in 0..<1000 { _ = timeline.finish(.sasl, .failed(), at: Int64(number)) }
        #expect(timeline.steps.count == LoginTimeline.capacity)
        for number in 0..<1000 { timeline.begin(.bind, key: "\(number)", awaits: .server, at: 0) }
        #expect(timeline.end(nil, at: 0).count == LoginTimeline.maximumUnderWay)
    }

    @Test func `a step without a recorded start begins at the end of the previous one`() {
        var timeline = LoginTimeline(at: 5)
        #expect(timeline.finish(.connect, .ok, at: 9).began == 5)
        #expect(timeline.finish(.features, .ok, at: 12).began == 9)
        timeline.begin(.bind, awaits: .server, at: 20)
        let bind = timeline.finish(.bind, .ok, details: ["jid": "a@b"], at: 23)
        #expect(bind.began == 20)
        #expect(bind.duration == 3)
        #expect(bind.details == ["jid": "a@b"])
    }
}

import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// Tests rules on a recording: the evaluated items, their phase, and the report.
@Suite struct RuleDryRunTests {
    private func line(
        _ sequence: UInt64,
        _ direction: Direction,
        _ xml: String,
        kind: Record.Kind = .stanza,
        jid: String? = "juliet@example.net/balcony",
        change: (inout Record) -> Void = { _ in }
    ) -> RecordLine {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: Int64(sequence) * 1_000_000_000),
            monotonic: 0,
            kind: kind,
            level: .verbose,
            part: .session
        )
        record.session = 1
        record.direction = direction
        record.jid = jid
        record.remote = "[2001:db8::7]:4000"
        let bytes = Array(xml.utf8)
        record.xml = ByteRange(0, bytes.count)
        change(&record)
        return RecordLine(record.shown, content: bytes.span)
    }

    private func run(_ rules: String) throws -> RuleDryRun {
        RuleDryRun(try RuleSet.test(rules)) {
            RuleLocalTime(minute: Int($0.nanoseconds / 1_000_000_000), weekday: 3)
        }
    }

    private static let header =
        "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' xmlns:o='urn:x' version='1.0'>"

    @Test func `Each hit is reported with its rules, its effects and the edited stanza`() throws {
        var dryRun = try run("KIND: message\nLOG=from $<@from>\n\nINSPECT: body#=x\nSET=body#=y\nDELAY=2s\nPASS.")
        #expect(dryRun.evaluate(line(1, .send, "<presence/>")) == nil)
        let found = dryRun.evaluate(line(2, .send, "<message><body>x</body></message>"))
        let outcome = try #require(found)
        #expect(outcome.hits.map(\.line) == [1, 4] && outcome.decidedBy?.line == 4 && outcome.action == "edited")
        #expect(outcome.edited.map { String(decoding: $0, as: UTF8.self) } == "<message><body>y</body></message>")
        #expect(outcome.notes.map(\.text) == ["log info: from juliet@example.net/balcony", "delay 2.0 s"])
        #expect(dryRun.judged == 2 && dryRun.hitCounts.values.sorted() == [1, 1])
    }

    @Test func `Namespace prefixes come from the recorded stream header, or else from the usual one`() throws {
        let rules = "::handshake\nELEMENT: {http://etherx.jabber.org/streams}features\nPAYLOAD: urn:x\nLOG=here"
        let features = "<s:features><o:thing/></s:features>"
        var whole = try run(rules)
        #expect(whole.evaluate(line(1, .recv, Self.header, kind: .streamOpen, jid: nil)) == nil)
        #expect(whole.evaluate(line(2, .recv, features, kind: .element, jid: nil)) != nil)
        var partial = try run(rules)
        #expect(partial.evaluate(line(2, .recv, features, kind: .element, jid: nil)) == nil && partial.skipped == 1)
        let usual = "<stream:features><thing xmlns='urn:x'/></stream:features>"
        #expect(partial.evaluate(line(3, .recv, usual, kind: .element, jid: nil)) != nil)
    }

    @Test func `Sessions of interleaved runs are kept apart`() throws {
        var dryRun = try run("PHASE: open\nLOG=s")
        func note(_ run: String) {
            dryRun.add(
                RecordHeader(
                    tool: "t",
                    time: Timestamp(nanoseconds: 0),
                    level: "verbose",
                    isComplete: true,
                    redaction: .none,
                    run: run
                )
            )
        }
        note("a")
        #expect(dryRun.evaluate(line(1, .send, "<presence/>")) != nil)
        note("b")
        #expect(dryRun.evaluate(line(1, .send, "<presence/>", jid: nil)) == nil)
        note("a")
        #expect(dryRun.evaluate(line(2, .send, "<presence/>", jid: nil)) != nil)
    }

    @Test func `The phases of a session are derived from its records`() throws {
        var dryRun = try run(
            "PHASE: opening\nELEMENT: *\nLOG=o\n\nPHASE: authenticating\nELEMENT: *\nLOG=a\n\nPHASE: binding\nLOG=b\n\nPHASE: open\nLOG=s"
        )
        func logs(_ line: RecordLine) -> [String] { dryRun.evaluate(line)?.notes.map(\.text) ?? [] }
        func login(_ record: inout Record) {
            record.part = .sasl
            record.name = ByteRange(1, 8)
        }
        _ = logs(line(1, .send, Self.header, kind: .streamOpen, jid: nil))
        #expect(
            logs(
                line(
                    2,
                    .send,
                    "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
                    kind: .element,
                    jid: nil,
                    change: login
                )
            ) == ["log info: o"]
        )
        #expect(
            logs(
                line(
                    3,
                    .recv,
                    "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
                    kind: .element,
                    jid: nil,
                    change: login
                )
            ) == ["log info: a"]
        )
        #expect(
            logs(
                line(4, .send, "<iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", jid: nil)
            ) == ["log info: b"]
        )
        #expect(
            logs(
                line(5, .recv, "<iq type='result' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>") {
                    $0.payloadNamespace = .bind
                }
            ) == ["log info: b"]
        )
        #expect(logs(line(6, .send, "<presence/>")) == ["log info: s"])
    }

    @Test func `The roster is derived from the stanzas of the session, and forged pushes are ignored`() throws {
        var dryRun = try run(
            "KIND: message\nIN ROSTER GROUP: Friends\nSUBSCRIBED?\nLOG=x\n\nKIND: message\nPENDING SUBSCRIPTION FROM SENDER?\nLOG=y"
        )
        let message = "<message from='Romeo@example.net/o'/>"
        #expect(dryRun.evaluate(line(1, .recv, message)) == nil)
        _ = dryRun.evaluate(line(2, .recv, "<presence type='subscribe' from='romeo@example.net'/>"))
        #expect(dryRun.evaluate(line(3, .recv, message))?.notes.map(\.text) == ["log info: y"])
        _ = dryRun.evaluate(
            line(
                4,
                .recv,
                "<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' subscription='both'><group>Friends</group></item></query></iq>"
            )
        )
        #expect(dryRun.evaluate(line(5, .recv, message))?.notes.map(\.text) == ["log info: x"])
        _ = dryRun.evaluate(
            line(
                6,
                .recv,
                "<iq type='set' id='2'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' subscription='remove'/></query></iq>"
            )
        )
        #expect(dryRun.evaluate(line(7, .recv, message)) == nil)
        func roster(_ attributes: String, _ jid: String) -> String {
            "<iq \(attributes)><query xmlns='jabber:iq:roster'><item jid='\(jid)' subscription='both'><group>Friends</group></item></query></iq>"
        }
        let forged = [
            roster("type='set' from='mallory@example.net/x'", "romeo@example.net"),
            roster("type='get'", "romeo@example.net"),
        ]
        for xml in forged { _ = dryRun.evaluate(line(8, .recv, xml)) }
        _ = dryRun.evaluate(line(8, .send, roster("type='set'", "romeo@example.net")))
        #expect(dryRun.evaluate(line(9, .recv, message)) == nil)
        for number in 0...Roster.capacity {
            _ = dryRun.evaluate(line(10, .recv, "<presence type='subscribe' from='s\(number)@example.net'/>"))
        }
        _ = dryRun.evaluate(line(11, .recv, roster("type='set' from='Juliet@example.net'", "romeo@example.net")))
        #expect(dryRun.evaluate(line(12, .recv, message))?.notes.map(\.text) == ["log info: x"])
        _ = dryRun.evaluate(line(13, .recv, roster("type='result'", "paris@example.net")))
        #expect(dryRun.evaluate(line(14, .recv, message)) == nil)
    }

    @Test func `Conditions read address, transport, round trip and time of day from the records`() throws {
        var dryRun = try run(
            "FROM SUBNET: 2001:db8::/32\nTRANSPORT: tls\nTIME: 0:03-0:04\nDAY: Wed\nROUND TRIP: > 1s\nLOG=x"
        )
        let answer = { (record: inout Record) in record.roundTrip = 2_000_000_000 }
        #expect(dryRun.evaluate(line(3, .send, "<iq type='result' id='1'/>", change: answer)) == nil)
        _ = dryRun.evaluate(line(3, .send, "", kind: .tls) { $0.leg = .client })
        #expect(dryRun.evaluate(line(3, .send, "<iq type='result' id='1'/>", change: answer)) != nil)
        #expect(dryRun.evaluate(line(4, .send, "<iq type='result' id='1'/>", change: answer)) == nil)
        #expect(dryRun.evaluate(line(3, .send, "<iq type='result' id='1'/>")) == nil)
    }

    @Test func `Truncated or unreadable items are counted and skipped`() throws {
        var dryRun = try run("LOG=x")
        #expect(dryRun.evaluate(line(1, .send, "<message><bo", change: { $0.isTruncated = true })) == nil)
        #expect(dryRun.evaluate(line(2, .send, "<message><body></message>")) == nil)
        #expect(dryRun.evaluate(line(3, .send, "<message/>")) != nil)
        #expect(dryRun.skipped == 2 && dryRun.judged == 1)
    }

    @Test func `A dry run of a session's records has the same hits as the live session`() throws {
        let rules = """
            ::deliver
            KIND: message
            SENT DIRECTED PRESENCE TO SENDER?
            LOG=directed

            KIND: message
            LOG=any

            ::send
            KIND: presence
            TO: tybalt@example.net/x
            DROP.

            KIND: message
            INSPECT: body#=x
            SET=body#=a text that makes the stanza longer than the limit of the server
            """

        var options = SessionOptions(level: .trace)
        let live = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime() }
        options.rules = live
        var harness = SessionHarness(options: options)
        var login = Array(Conversations.plainLogin.prefix(10))
        let limits = "<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>80</max-bytes></limits></stream:features>"
        login[7].text = login[7].text.replacing("</stream:features>", with: limits)
        harness.say(login)
        func message(from: String) -> String { "<message from='\(from)'><body>b</body></message>" }
        let (romeo, tybalt) = ("Romeo@example.net/Orchard", "tybalt@example.net/x")
        harness.send("<message to='\(romeo)'><body>x</body></message>")
        harness.recv(message(from: romeo))
        harness.send("<presence to='romeo@Example.net/Orchard'/><presence to='\(tybalt)'/>")
        harness.recv(message(from: romeo) + message(from: tybalt))
        harness.send("<presence type='unavailable' to='\(romeo)'/>")
        harness.recv(message(from: romeo))
        harness.send("<presence to='\(romeo)'/>")
        harness.recv(message(from: romeo))
        harness.send("<presence type='unavailable'/>")
        harness.recv(message(from: romeo))

        var dryRun = RuleDryRun(try RuleSet.test(rules)) { _ in RuleLocalTime() }
        var notes: [String] = []
        for told in harness.told {
            let outcome = dryRun.evaluate(RecordLine(told.record.shown, content: told.content.span))
            #expect(outcome?.edited == nil)
            notes += outcome?.notes.map(\.text) ?? []
        }
        let hits = try #require(live.current).statuses
        #expect(hits.map { $0.hits } == [2, 6, 1, 1])
        #expect(hits.map { $0.hits } == hits.map { UInt64(dryRun.hitCounts[$0.place] ?? 0) })
        #expect(notes.contains { $0.hasPrefix("edit refused: ") && $0.hasSuffix("the receiver accepts at most 80") })
        #expect(!String(decoding: harness.toServer, as: UTF8.self).contains("a text that makes"))
    }

    @Test func `Rules apply to a component's stanzas without a bound address`() throws {
        var dryRun = try run("KIND: message\nREPLY=hi")
        _ = dryRun.evaluate(
            line(
                1,
                .recv,
                "<s:stream xmlns='jabber:component:accept' xmlns:s='http://etherx.jabber.org/streams'>",
                kind: .streamOpen,
                jid: nil
            )
        )
        let outcome = dryRun.evaluate(
            line(2, .recv, "<message from='a@b' to='bot.example'><body>x</body></message>", jid: nil)
        )
        #expect(
            outcome?.notes.map(\.text) == [
                "reply to the server: <message from='bot.example' to='a@b'><body>hi</body></message>"
            ]
        )
    }
}

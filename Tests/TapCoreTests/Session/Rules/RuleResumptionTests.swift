import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules
@testable import TapStreamManagement

private func message(_ number: Int, _ body: String = "hello") -> String {
    "<message id='m\(number)'><body>\(body)</body></message>"
}

/// Tests of rules in resumed sessions: for retransmitted stanzas, and for stanzas of rules that the old connection has
/// not sent.
@Suite struct RuleResumptionTests {
    // MARK: Retransmitted stanzas

    @Test(arguments: ["RECORD=off", "LEVEL=warn"])
    func `RECORD and LEVEL also apply to a stanza that is dropped again after a resumption`(action: String) throws {
        let rules = "::send\n\nKIND: message\n\(action)\nDROP."
        let run = Run()
        var first = try RuleScene(rules, run: run, enablesStreamManagement: true)
        // The server has not handled the presence, so the client sends the later stanzas again too.
        #expect(first.send("<presence/>" + message(1)).server == "<presence/>")
        var second = try first.resumed(rules, run: run)
        #expect(second.send("<presence/>" + message(1)).server == "<presence/>")
        let item = second.harness.told.last { $0.record.kind == .stanza && $0.xml == message(1) }
        #expect(item?.record.level == (action == "RECORD=off" ? nil : .warn))
    }

    @Test(arguments: [true, false])
    func `a retransmitted stanza is judged by its earlier rules, a new one by the current rules`(
        isReloadedBefore: Bool
    ) throws {
        let old = "::send\n\nKIND: message\nEVERY: 2\nDROP.\n\nKIND: message\nSET=body#=old"
        let new = "::send\n\nKIND: message\nSET=body#=new"
        let run = Run()
        var first = try RuleScene(old, run: run, enablesStreamManagement: true)
        #expect(first.send((1...4).map { message($0) }.joined()).server == message(1, "old") + message(3, "old"))
        if isReloadedBefore { _ = first.handle(.rules(try RuleSet.test(new))) }
        var second = try first.resumed(new, run: run)
        let again = second.send((1...5).map { message($0) }.joined()).server
        #expect(again == message(1, "old") + message(3, "old") + message(5, "new"))
    }

    @Test func `earlier rules alter a retransmitted stanza even if the current rules alter nothing`() throws {
        let run = Run()
        var first = try RuleScene("::send\n\nKIND: message\nSET=body#=old", run: run, enablesStreamManagement: true)
        #expect(first.send(message(1)).server == message(1, "old"))
        var second = try first.resumed("::send\n\nKIND: message\nLOG=new", run: run)
        #expect(second.send(message(1)).server == message(1, "old"))
        #expect(second.told("rule-log").isEmpty)
        #expect(second.send(message(2)).server == message(2))
        #expect(second.told("rule-log").count == 1)
        let passes = second.passes(.send)
        #expect(passes)
    }

    @Test func `a stanza delayed during a reload is judged again by its earlier rules after a resumption`() throws {
        let old = "::send\n\nKIND: message\nSET=body#=old\nDELAY=500ms"
        let new = "::send\n\nKIND: message\nSET=body#=new"
        let run = Run()
        var first = try RuleScene(old, run: run, enablesStreamManagement: true)
        #expect(first.send(message(1)).server.isEmpty)
        _ = first.handle(.rules(try RuleSet.test(new)))
        #expect(first.wait(milliseconds: 500).server == message(1, "old"))
        #expect(first.send(message(2)).server == message(2, "new"))
        var second = try first.resumed(new, run: run)
        #expect(second.send(message(1)).server.isEmpty)
        #expect(second.wait(milliseconds: 500).server == message(1, "old"))
        #expect(second.send(message(2)).server == message(2, "new"))
    }

    @Test func `contacts stay known after a resumption`() throws {
        let rules = "::recv\n\nKIND: message\nNOT IN ROSTER?\nDROP."
        func message(from name: String) -> String { "<message from='\(name)@example.net'><body>hello</body></message>" }
        let run = Run()
        var first = try RuleScene(rules, run: run, enablesStreamManagement: true)
        _ = first.send("<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>")
        _ = first.recv(
            "<iq type='result' id='r'><query xmlns='jabber:iq:roster'>"
                + "<item jid='romeo@example.net' subscription='both'/></query></iq>"
        )
        #expect(first.recv(message(from: "romeo")).client == message(from: "romeo"))
        var second = try first.resumed(rules, run: run)
        #expect(second.recv(message(from: "romeo")).client == message(from: "romeo"))
        #expect(second.recv(message(from: "tybalt")).client.isEmpty)
    }

    @Test func `after several reloads each retransmitted stanza is judged by the rules that it first met`() throws {
        let run = Run()
        var first = try RuleScene("::send\n\nKIND: message\nSET=body#=1", run: run, enablesStreamManagement: true)
        var passed = first.send(message(1)).server
        for number in 2...4 {
            _ = first.handle(.rules(try RuleSet.test("::send\n\nKIND: message\nSET=body#=\(number)")))
            passed += first.send(message(number)).server
        }
        #expect(passed == (1...4).map { message($0, "\($0)") }.joined())
        var second = try first.resumed("::send\n\nKIND: message\nSET=body#=5", run: run)
        // The connection is lost again before all stanzas were retransmitted.
        #expect(second.send(message(1)).server == message(1, "1"))
        var third = try second.resumed("::send\n\nKIND: message\nSET=body#=6", run: run)
        #expect(
            third.send((1...5).map { message($0) }.joined()).server
                == (1...4).map { message($0, "\($0)") }.joined() + message(5, "6")
        )
    }

    // MARK: Stanzas of rules

    private static func inject(_ count: Int, _ harness: inout SessionHarness) {
        for number in 1...count {
            let bounce = Array("<message id='b\(number)' type='error'/>".utf8)
            harness.inject(Injection(bounce, to: .server, number: Injection.ruleNumber))
        }
    }

    private static func resumable(_ attributes: String = "resume='true' id='i1'") -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3' \(attributes)/>")
        return harness
    }

    @Test func `a rule's stanza that no later connection can send is reported as lost`() {
        var harness = Self.resumable("max='1'")
        harness.end(.client)
        Self.inject(1, &harness)
        #expect(harness.told(code: "rule-injection-failed").count == 1)
    }

    @Test func `a rule's stanzas over the limit of the queue for the next connection are reported as lost`() {
        let room = StreamManagementLedger.capacity
        var harness = Self.resumable()
        harness.end(.client)
        Self.inject(room + 2, &harness)
        #expect(harness.told(code: "rule-injection-failed").count == 2)

        // Stanzas that wait for an item boundary are reported as lost too.
        harness = Self.resumable()
        harness.send("<message")
        Self.inject(room + 3, &harness)
        harness.end(.client, .reset)
        let lost = harness.told(code: "rule-injection-failed")
        #expect(lost.count == 3 && lost.first?.record.direction == .send && lost.first?.record.level == .warn)
    }
}

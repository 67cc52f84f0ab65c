import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// Tests of the ruling on one item, without a session.
struct RulingTests {
    private static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"

    @Test(arguments: [true, false])
    func `an item judged again after a wait is counted once if its ruling was kept`(isKept: Bool) throws {
        var scene = TLSScene(SessionOptions(level: .trace))
        let set = try RuleSet.test(
            """
            ::handshake

            ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth
            PASS.
            """
        )
        let rules = SessionRules(set, scene.context)
        let event = scene.item(.send, TLSScene.header + Self.auth)
        rules.evaluateForRecord(event, .send, RuleFacts(), scene.context)
        if isKept {
            rules.keepRuling()
            #expect(rules.ruling == nil)
            rules.restoreRuling()
        } else {
            rules.ruling = nil
        }
        rules.evaluateForRecord(event, .send, RuleFacts(), scene.context)
        #expect(rules.ruling != nil)
        #expect(set.statuses.map(\.hits) == [isKept ? 1 : 2])
        _ = rules.effects(.pass, event, .send, RuleFacts(), &scene.context)
        rules.endRuling(event, .send, &scene.context)
        rules.evaluateForRecord(event, .send, RuleFacts(), scene.context)
        #expect(set.statuses.map(\.hits) == [isKept ? 2 : 3])
    }

    @Test func `an item is judged while an item of the other direction waits again`() throws {
        var scene = TLSScene(SessionOptions(level: .trace))
        let set = try RuleSet.test(
            """
            ::handshake

            ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth
            DELAY=1s

            ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}challenge
            DROP.
            """
        )
        let rules = SessionRules(set, scene.context)
        let event = scene.item(.send, TLSScene.header + Self.auth)
        rules.evaluateForRecord(event, .send, RuleFacts(), scene.context)
        rules.keepRuling()
        rules.restoreRuling()
        let waits = rules.delayOrHold(event, .send, .pass, .none, RuleFacts(), &scene.context)
        #expect(waits)
        let answer = scene.item(.recv, TLSScene.header + "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        let decision = rules.intercept(answer, .recv, .pass, RuleFacts(), scene.context)
        guard case .drop = decision else {
            Issue.record("the challenge is not dropped: \(decision)")
            return
        }
    }

    @Test func `a kept ruling of replaced rules does not shape the link`() throws {
        var scene = TLSScene(SessionOptions(level: .trace))
        let set = try RuleSet.test("::handshake\n\nELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth\nTHROTTLE=10")
        let rules = SessionRules(set, scene.context)
        let event = scene.item(.send, TLSScene.header + Self.auth)
        rules.evaluateForRecord(event, .send, RuleFacts(), scene.context)
        #expect(rules.ruling?.shapes == true)
        rules.keepRuling()
        rules.replace(by: RuleSet(), nil)
        rules.restoreRuling()
        #expect(rules.ruling?.shapes == false)
    }

    @Test func `a rule's stanza is reported as lost if the same rule ends the session`() throws {
        let run = Run()
        var scene = try RuleScene(
            "::send\n\nKIND: message\nREPLY=Busy\nRESET.",
            run: run,
            enablesStreamManagement: true
        )
        _ = scene.send("<message from='juliet@example.com' to='romeo@example.net' id='1'><body>Hi</body></message>")
        #expect(scene.harness.closed == true)
        #expect(scene.told("rule-injection-failed").count == 1)
        let resumed = try scene.resumed("::send\n\nKIND: message\nPASS.", run: run)
        #expect(!String(decoding: resumed.harness.toClient, as: UTF8.self).contains("Busy"))
    }

    @Test func `a rule's stanza is kept for the resumption if the session ends at its time limit`() throws {
        let run = Run()
        var options = SessionOptions(level: .trace)
        options.idleTime = 60_000_000_000
        let rules = "::send\n\nKIND: message\nREPLY=Busy"
        var scene = try RuleScene(rules, options, run: run, enablesStreamManagement: true)
        _ = scene.recv("<message><body>a part")
        _ = scene.send("<message to='romeo@example.net' id='1'><body>Hi</body></message>")
        _ = scene.wait(milliseconds: 60_000)
        #expect(scene.harness.closed != nil)
        #expect(scene.told("rule-injection-failed").isEmpty)
        let resumed = try scene.resumed(rules, run: run)
        #expect(String(decoding: resumed.harness.toClient, as: UTF8.self).contains("Busy"))
    }
}

import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// The ruling on one item, without a session.
struct RulingTests {
    private static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"

    @Test(arguments: [true, false])
    func `an item that is decided on again after a wait is judged once`(isKept: Bool) throws {
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
        rules.watch(event, .send, RuleFacts(), scene.context)
        if isKept {
            rules.keepRuling()
            #expect(rules.ruling == nil)
            rules.restoreRuling()
        } else {
            rules.ruling = nil
        }
        rules.watch(event, .send, RuleFacts(), scene.context)
        #expect(rules.ruling != nil)
        #expect(set.rulesWithHits.map(\.hits) == [isKept ? 1 : 2])
        _ = rules.effects(.pass, event, .send, RuleFacts(), &scene.context)
        rules.endRuling(event, .send, &scene.context)
        rules.watch(event, .send, RuleFacts(), scene.context)
        #expect(set.rulesWithHits.map(\.hits) == [isKept ? 2 : 3])
    }
}

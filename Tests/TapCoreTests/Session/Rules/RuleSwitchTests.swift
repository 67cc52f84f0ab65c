import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules
@testable import TapStreamManagement

private func message(_ number: Int) -> String { "<message id='m\(number)'><body>a</body></message>" }

/// Tests of rules that are switched on and off while sessions run.
struct RuleSwitchTests {
    private static func options(_ set: RuleSet) -> SessionOptions {
        var options = SessionOptions(level: .trace)
        options.rules = LiveRules(set) { _ in RuleLocalTime() }
        return options
    }

    private static func place(_ line: Int) -> RulePlace { RulePlace(file: "test.pfw", line: line) }

    @Test func `a rule that is off decides nothing and counts nothing until it is on again`() throws {
        let set = try RuleSet.test("::send\n\nKIND: message\nEVERY: 2\nDROP.\n\nKIND: presence\nDROP.")
        var scene = RuleScene(Self.options(set), run: Run(), enablesStreamManagement: true)
        #expect(set.statuses.map(\.isOn) == [true, true])
        #expect(scene.send(message(1) + message(2) + "<presence/>").server == message(1))
        #expect(set.setRule(at: Self.place(3), on: false))
        #expect(set.statuses.map(\.isOn) == [false, true])
        let passed = (3...5).map(message).joined()
        #expect(scene.send(passed + "<presence/>").server == passed)
        #expect(set.statuses.map(\.hits) == [1, 2])
        #expect(set.setRule(at: Self.place(3), on: true))
        // Only the stanzas that met the rule are counted: this is its third, the next one its fourth.
        #expect(scene.send(message(6) + message(7)).server == message(6))
        #expect(set.statuses.map(\.hits) == [2, 2])
        let counts = scene.harness.session.ledgers
        let ledgers = try #require(counts)
        #expect(ledgers.send.sent == 9 && ledgers.send.delivered == 5)
        #expect(!set.setRule(at: Self.place(4), on: false))
        #expect(!set.setRule(at: RulePlace(file: "other.pfw", line: 3), on: false))
    }

    @Test func `rules in a chain that is jumped to are switched, and so is the rule that jumps`() throws {
        let set = try RuleSet.test(
            """
            ::send

            KIND: message
            JUMP CHAIN=user/texts

            ::user/texts

            INSPECT: body
            SET=body#=changed

            INSPECT: body
            LOG=seen
            """
        )
        var scene = RuleScene(Self.options(set), run: Run())
        func bodies(_ text: String) -> [String] {
            text.split(separator: "<body>").dropFirst().map { String($0.prefix { $0 != "<" }) }
        }
        let places = set.statuses.map(\.place)
        #expect(places.count == 3)
        #expect(bodies(scene.send(message(1)).server) == ["changed"])
        #expect(set.setRule(at: places[1], on: false))
        #expect(bodies(scene.send(message(2)).server) == ["a"])
        #expect(set.setRule(at: places[0], on: false))
        #expect(bodies(scene.send(message(3)).server) == ["a"])
        #expect(set.statuses.map(\.hits) == [2, 1, 2])
        #expect(set.setRule(at: places[0], on: true) && set.setRule(at: places[2], on: false))
        #expect(bodies(scene.send(message(4)).server) == ["a"])
        #expect(set.statuses.map(\.hits) == [3, 1, 2])
    }

    @Test(arguments: [false, true])
    func `a retransmitted stanza is judged anew if rules were switched since`(isSwitched: Bool) throws {
        let set = try RuleSet.test(
            "::send\n\nKIND: message\nNTH: 1\nLOG=first\n\nKIND: message\nNTH: 9\nSET=body#=wrong"
        )
        let run = Run()
        var scene = RuleScene(Self.options(set), run: run, enablesStreamManagement: true)
        #expect(scene.send(message(1)).server == message(1))
        #expect(set.statuses.map(\.hits) == [1, 0])
        if isSwitched { #expect(set.setRule(at: Self.place(3), on: false)) }
        scene.harness.end(.client, .reset)
        scene.harness.close()

        scene = RuleScene(Self.options(set), run: run, turns: 8)
        _ = scene.send("<resume xmlns='urn:xmpp:sm:3' h='0' previd='i1'/>")
        _ = scene.recv("<resumed xmlns='urn:xmpp:sm:3' h='0' previd='i1'/>")
        // The stored result of the first rule must not become that of the second one.
        #expect(scene.send(message(1)).server == message(1))
        #expect(set.statuses.map(\.hits) == [isSwitched ? 1 : 2, 0])
    }
}

import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// Tests of stanzas that rules create, and that a server sends back.
@Suite struct RuleLoopTests {
    /// Two sessions of one account through the same proxy.
    private struct Pair: ~Copyable {
        var first: RuleScene
        var second: RuleScene

        init(_ rules: String) throws {
            var options = SessionOptions(level: .trace)
            options.rules = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime() }
            let run = Run()
            first = RuleScene(options, run: run)
            second = RuleScene(options, run: run)
        }

        /// The bare JID that both sessions have bound.
        var account: String { first.harness.session.info.jid.map { String($0.prefix { $0 != "/" }) } ?? "" }
    }

    private static func message(from: String, to: String, id: String?, _ body: String) -> String {
        let id = id.map { " id='\($0)'" } ?? ""
        return "<message from='\(from)' to='\(to)'\(id)><body>\(body)</body></message>"
    }

    @Test(arguments: ["m1", nil])
    func `a rule does not answer its own reply when the server returns it`(id: String?) throws {
        var pair = try Pair("::deliver\n\nKIND: message\nREPLY=Zzzz.\n\nKIND: message\nLOG=seen")
        let account = pair.account
        let question = Self.message(from: "\(account)/b", to: "\(account)/a", id: id, "there?")
        #expect(pair.first.recv(question).server.contains("<body>Zzzz.</body>"))
        let reply = Self.message(from: "\(account)/a", to: "\(account)/b", id: id, "Zzzz.")
        let out = pair.second.recv(reply)
        #expect(out.client == reply && out.server.isEmpty)
        // Other rules are evaluated for the reply.
        #expect(pair.second.told("rule-log").count == 1)
        // The rule is evaluated for another stanza, and for a repetition of the same stanza.
        let other = Self.message(from: "\(account)/a", to: "\(account)/b", id: "m2", "there?")
        #expect(pair.second.recv(other).server.contains("<body>Zzzz.</body>"))
        #expect(pair.second.recv(reply).server.contains("<body>Zzzz.</body>"))
    }

    @Test(arguments: ["COPY", "FORWARD", "REDIRECT"])
    func `a rule does not copy its own copy when the server returns it`(action: String) throws {
        var pair = try Pair("::deliver\n\nKIND: message\n\(action)=$<@to|bare>")
        let account = pair.account
        let message = Self.message(from: "r@example.net/x", to: "\(account)/a", id: "m1", "a text")
        let copy = pair.first.recv(message).server
        #expect(copy.contains("to='\(account)'"))
        let back = copy.replacing("<message ", with: "<message from='\(account)/a' ", maxReplacements: 1)
        #expect(pair.second.recv(back).server.isEmpty)
        #expect(pair.second.recv(message.replacing("m1", with: "m2")).server.contains("to='\(account)'"))
    }

    @Test func `two rules do not answer each other endlessly`() throws {
        let rules = "::deliver\n\nINSPECT: body#/=a\nREPLY=b\n\nINSPECT: body#/=b\nREPLY=a"
        var pair = try Pair(rules)
        let account = pair.account
        func sent(_ out: String) -> String? { out.firstMatch(of: #/<body>(.*?)<\/body>/#).map { String($0.1) } }
        var said: String? = "a"
        var turns = 0
        while let body = said, turns < 10 {
            let (from, to) = turns.isMultiple(of: 2) ? ("b", "a") : ("a", "b")
            let message = Self.message(from: "\(account)/\(from)", to: "\(account)/\(to)", id: "m1", body)
            said = sent(turns.isMultiple(of: 2) ? pair.first.recv(message).server : pair.second.recv(message).server)
            turns += 1
        }
        #expect(turns == 3)
    }

    @Test func `a loop through another proxy is stopped by a rate limit, with one warning`() throws {
        var scene = try RuleScene("::deliver\n\nKIND: message\nREPLY=Zzzz.")
        func answers(_ id: String, _ count: Int) -> Int {
            (0..<count).count { _ in
                !scene.recv(
                    Self.message(from: "r@example.net/x", to: "", id: id, "Zzzz.").replacing(" to=''", with: "")
                )
                .server.isEmpty
            }
        }
        #expect(answers("m1", 100) == 20)
        let warnings = scene.told("rule-loop")
        #expect(warnings.count == 1 && warnings.first?.record.level == .warn)
        // Each stanza has a separate rate limit.
        #expect((0..<100).reduce(0) { sum, number in sum + answers("n\(number)", 1) } == 100)
        _ = scene.wait(milliseconds: 3000)
        #expect(answers("m1", 10) > 0)
    }

    @Test func `copies of stanzas without an id from many senders are all sent`() throws {
        var scene = try RuleScene("::deliver\n\nKIND: presence\nCOPY=log@example.net")
        let copies = (0..<200).reduce(0) { sum, number in
            sum + scene.recv("<presence from='c\(number)@example.net/x'/>").server.ranges(of: "log@example.net").count
        }
        #expect(copies == 200)
    }

    @Test func `bounces have no rate limit`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nBOUNCE.")
        let requests = String(repeating: "<iq type='get' id='1' to='r@example.net'/>", count: 100)
        #expect(scene.send(requests).client.ranges(of: "<service-unavailable").count == 100)
    }

    @Test func `SENT DIRECTED PRESENCE TO SENDER matches until the presence ends`() throws {
        var scene = try RuleScene("::recv\n\nNOT SENT DIRECTED PRESENCE TO SENDER?\nDROP.")
        let message = "<message from='room@example.net/r' id='1'/>"
        #expect(scene.recv(message).client.isEmpty)
        _ = scene.send("<presence to='Room@example.net/r'/>")
        #expect(scene.recv(message).client == message)
        #expect(scene.recv("<message from='room@example.net/other'/>").client.isEmpty)
        _ = scene.send("<presence to='room@example.net/r' type='unavailable'/>")
        #expect(scene.recv(message).client.isEmpty)
        _ = scene.send("<presence to='room@example.net/r'/><presence type='unavailable'/>")
        #expect(scene.recv(message).client.isEmpty)
        _ = scene.send("<presence to='room@example.net/r' type='subscribe'/>")
        #expect(scene.recv(message).client.isEmpty)
    }
}

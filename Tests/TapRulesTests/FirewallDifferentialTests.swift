import Foundation
import TapTestKit
import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// Evaluates the same scripts and stanzas with Prosody's mod_firewall (Debian's prosody-modules) and with ``RuleSet``,
/// and compares the decisions.
///
/// Compensates for the differences that the reference documents: the account itself sends the forwarded stanzas.
@Suite(.enabled(if: FirewallProgram.folder != nil && LuaProgram.path != nil, "mod_firewall or Lua is missing"))
struct FirewallDifferentialTests {
    private struct Case {
        var chain: String
        var time: RuleLocalTime
        var script: String
        var stanzas: [String]
        var direction: Direction { chain == "deliver" ? .recv : .send }
    }

    private static let scripts = "\(FirewallProgram.folder ?? "")/scripts"

    private static let definitions = """
        %ZONE home: example.net
        %ZONE away: example.com, friar@example.org
        %RATE slow: 0.01 (burst 200)
        %RATE each: 0.01 (burst 100) (entries 3)
        %LIST seen: memory
        %LIST few: memory (limit: 2)
        %SEARCH body: body#
        %SEARCH id: @id
        %PATTERN word: %a+
        %PATTERN url: (https?)://%S+

        """

    private static let conditions = [
        "KIND: message", "KIND: presence, iq", "KIND: iq|message", "TYPE: chat", "TYPE: normal, available",
        "TYPE: get,set",
        "TYPE: subscribe", "PAYLOAD: urn:xmpp:ping", "PAYLOAD: urn:xmpp:receipts", "INSPECT: body",
        "INSPECT: body#=hello",
        "INSPECT: body#/=ell", "INSPECT: body#~=^%l+$", "INSPECT: body#~=%d%d?", "INSPECT: body#$/=$<@id>",
        "INSPECT: @id=a1", "INSPECT: {urn:xmpp:receipts}request", "INSPECT: {urn:x}a/b#=deep",
        "INSPECT: {urn:x}a/b@c=1",
        "INSPECT: subject#~=^$", "FROM: romeo@example.net", "FROM: <*>@example.net", "FROM: <r*o>@<*.net>",
        "FROM: <<%a+>>@<<.*%.com>>", "FROM: romeo@example.net/orchard", "FROM: example.com", "FROM: <*>@<*>/<or?hard>",
        "TO: juliet@example.net", "TO: <*>@<example.*>", "TO: example.net", "FROM_EXACTLY: romeo@example.net/orchard",
        "TO EXACTLY: juliet@example.net", "TO EXACTLY: $<@to|bare>", "TO SELF?", "ENTERING: home", "ENTERING: away",
        "LEAVING: home", "LEAVING: away", "LEAVING: $local", "ENTERING: $local", "LIMIT: slow",
        "LIMIT: each on $<@from|bare>",
        "LIMIT: slow on $<@id>", "ORIGIN MARKED: m", "ORIGIN MARKED: m (60s)",
        "CHECK LIST: seen contains $<@from|bare>",
        "CHECK LIST: few contains $<@from|node>", "SCAN: body for word in seen", "COUNT: word in body > 1",
        "INSPECT: @from$=$<@to>", "INSPECT: body#$=$<@id>", "INSPECT: body#$~=^$<@id>", "TO FULL JID?",
        "USER MARKED: u", "USER MARKED: u (60s)", "TIME: 9:00-17:30", "TIME: 22:15-6:00",
        "TIME: 10pm-11:45pm, 1:00-2:00",
        "DAY: Mon-Fri", "DAY: Sat-Sun", "DAY: sunday, Wednesday", "DAY: Fri-Mon",
        "COUNT: url in body >= 1", "COUNT: word in id == 1", "COUNT: word in body < 3",
    ]
    private static let rosterConditions = [
        "IN ROSTER?", "IN ROSTER: no", "IN ROSTER GROUP: Friends", "IN ROSTER GROUP: Family", "SUBSCRIBED?",
        "PENDING SUBSCRIPTION FROM SENDER?",
    ]
    private static let actions = [
        "MARK ORIGIN=m", "UNMARK ORIGIN=m", "MARK USER=u", "UNMARK USER=u", "REPLY=Not now",
        "ADD TO=seen $<@from|bare>", "ADD TO=seen hello",
        "ADD TO=few $<@from|node>",
        "STRIP=nick http://jabber.org/protocol/nick", "STRIP=thread", "STRIP=*  urn:none",
        "INJECT=<x xmlns='urn:x:y' a='1'>t<y/></x>", "INJECT=<note>text</note>", "COPY=log@example.org",
        "FORWARD=admin@example.org", "LOG=$<@from|host> $<body#||\"none\">",
        "LOG=[agent-x] $<@id>",
    ]
    private static let recvActions = ["UNSUBSCRIBE SENDER."]
    private static let ends = [
        "PASS.", "DROP.", "BOUNCE.", "BOUNCE=policy-violation (Too much)", "BOUNCE=forbidden:cancel",
        "REDIRECT=nurse@example.net",
        "DEFAULT.", "RETURN.", "JUMP CHAIN=user/more", "JUMP CHAIN=user/none",
    ]
    private static let senders = [
        "romeo@example.net/orchard", "romeo@example.net", "paris@example.com/x", "friar@example.org/cell",
        "example.com",
        "sub.example.com", "juliet@example.net/balcony",
    ]
    private static let bodies = [
        "", "<body>hello</body>", "<body>hello there 42</body>",
        "<body>see https://a.example and http://b.example</body>",
        "<body>a1</body>", "<body/>", "<request xmlns='urn:xmpp:receipts'/>",
        "<a xmlns='urn:x'><b c='1'>deep</b><b>no</b></a>",
        "<nick xmlns='http://jabber.org/protocol/nick'>n</nick><body>hello</body>", "<thread>t</thread>",
        "<ping xmlns='urn:xmpp:ping'/>",
    ]

    private static func makeCase(_ generator: inout SeededGenerator) -> Case {
        func pick(_ texts: [String]) -> String { texts.randomElement(using: &generator) ?? "" }
        let chain = pick(["deliver", "deliver", "preroute", "deliver_remote"])
        let direction: Direction = chain == "deliver" ? .recv : .send
        func rule(_ ends: [String]) -> String {
            let pool = direction == .recv ? conditions + rosterConditions : conditions
            let actions = direction == .recv ? actions + recvActions : actions
            var lines = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                (Int.random(in: 0..<4, using: &generator) == 0 ? "NOT " : "") + pick(pool)
            }
            lines += (0..<Int.random(in: 0...2, using: &generator)).map { _ in pick(actions) }
            if !actions.contains(lines.last ?? "") || Bool.random(using: &generator) { lines.append(pick(ends)) }
            // An unreachable action, which mod_firewall accepts.
            if lines.last?.hasPrefix("BOUNCE") == true, Bool.random(using: &generator) { lines.append("MARK ORIGIN=m") }
            if !lines.contains(where: { line in (actions + ends).contains(line) }) { lines.append("PASS.") }
            // Limits the rule to other types, because REPLY does not answer errors and results in xmpptap, but does in
            // mod_firewall.
            if lines.contains("REPLY=Not now") { lines.insert("NOT TYPE: error, result", at: 0) }
            return lines.joined(separator: "\n")
        }
        // mod_firewall evaluates a condition that occurs twice in a chain only once, even if rules in between change
        // its result.
        var asked: Set<String> = []
        func once(_ rule: String) -> String {
            rule.split(separator: "\n").map(String.init).filter { line in
                let name = line.replacing("NOT ", with: "").prefix { $0 != " " }
                guard ["LIMIT:", "ORIGIN", "USER", "CHECK", "SCAN:"].contains(name) else { return true }
                return asked.insert(line.replacing("NOT ", with: "")).inserted
            }.joined(separator: "\n")
        }
        // Random rules rarely set a mark and test it, so some scripts begin with a rule that sets the marks.
        let marks = Int.random(in: 0..<4, using: &generator) == 0 ? ["KIND: message\nMARK USER=u\nMARK ORIGIN=m"] : []
        let rules = marks + (0..<Int.random(in: 1...4, using: &generator)).map { _ in once(rule(ends)) }
        let more = once(rule(ends.filter { !$0.hasPrefix("JUMP") }))
        let script =
            definitions + "\n::" + chain + "\n" + rules.joined(separator: "\n\n") + "\n\n::user/more\n" + more + "\n"
        let stanzas = (0..<6).map { _ in
            let kind = pick(["message", "message", "presence", "iq"])
            let types =
                switch kind {
                case "message": ["", "chat", "groupchat", "error"]
                case "presence": ["", "unavailable", "subscribe"]
                default: ["get", "set", "result", "error"]
                }
            let type = pick(types)
            let own = "juliet@example.net/balcony"
            let other = pick(senders)
            let (from, to) =
                direction == .recv ? (other, pick([own, "juliet@example.net"])) : (own, pick([other, ""]))
            return "<\(kind) xmlns='jabber:client' from='\(from)'" + (to.isEmpty ? "" : " to='\(to)'")
                + (type.isEmpty ? "" : " type='\(type)'")
                + " id='\(pick(["a1", "b 2", "7"]))'>\(pick(bodies))</\(kind)>"
        }
        let time = RuleLocalTime(
            minute: Int.random(in: 0..<1440, using: &generator),
            weekday: Int.random(in: 0..<7, using: &generator)
        )
        return Case(chain: chain, time: time, script: script, stanzas: stanzas)
    }

    /// The decision on a stanza, in a form that can be compared.
    private struct Decision: Equatable, CustomStringConvertible {
        var isDropped: Bool
        var stanza: Element?
        var sent: [Element]

        var description: String {
            func text(_ element: Element) -> String {
                String(decoding: XMLWriter.bytes { $0.element(element, inheriting: "") }, as: UTF8.self)
            }
            return "\(isDropped ? "dropped" : "passed") \(stanza.map(text) ?? "") sent \(sent.map(text))"
        }
    }

    /// Parses a stanza, and optionally removes `from`, which stanzas of the account itself lack.
    private static func element(_ xml: String, withoutSender: Bool = false) throws -> Element {
        let isDeclared = xml.prefix { $0 != ">" }.contains("xmlns=")
        let text = isDeclared ? xml : xml.replacing(/^<(\w+)/) { "<\($0.1) xmlns='jabber:client'" }
        let parser = StanzaParser()
        let element = try parser.parse(Array(text.utf8).span, root: [])
        guard withoutSender else { return element }
        let bytes = XMLWriter.bytes { $0.element(element, inheriting: "", setting: ["from": nil]) }
        return try parser.parse(bytes.span, root: [])
    }

    private static func theirs(_ line: Substring, _ direction: Direction) throws -> Decision? {
        let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 2, !parts[0].hasPrefix("failed") else { return nil }
        let isDropped = parts[0] == "drop"
        let sent = try parts.dropFirst(2).map { xml in
            // An answer to the client names its sender; stanzas from the account do not.
            let isAnswer = xml.contains("<error ") || xml.contains("<body>Not now</body>")
            return try element(xml, withoutSender: direction == .recv || !isAnswer)
        }
        return Decision(isDropped: isDropped, stanza: isDropped ? nil : try element(parts[1]), sent: sent)
    }

    private static func ours(_ verdict: Verdict, _ stanza: String, _ direction: Direction) throws -> Decision {
        var sent: [Element] = []
        for case .inject(let way, let bytes, _) in verdict.actions.map(\.action) {
            sent.append(try element(String(decoding: bytes, as: UTF8.self), withoutSender: way == .send))
        }
        var isDropped = verdict.decision != .pass
        // If the client is the sender, a redirect is an edit of its stanza.
        if let edited = verdict.editedText, edited.contains("to='nurse@example.net'"), !isDropped {
            isDropped = true
            sent.append(try element(edited, withoutSender: true))
        }
        let result = isDropped ? nil : try element(verdict.editedText ?? stanza)
        return Decision(isDropped: isDropped, stanza: result, sent: sent)
    }

    @Test func `mod_firewall's own scripts load, except those with lists over HTTP`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.scripts).filter { $0.hasSuffix(".pfw") }
        #expect(names.contains("spam-blocking.pfw"))
        for name in names {
            let text = try String(contentsOfFile: "\(Self.scripts)/\(name)", encoding: .utf8)
            do throws(RuleSet.LoadError) {
                #expect(try RuleSet.test(text, defaultChain: "deliver").count > 0)
            } catch {
                #expect(error.faults.map(\.found) == ["lists over HTTP are not supported"], "\(name)")
            }
        }
    }

    @Test func `Rules of random scripts decide the same as mod_firewall`() async throws {
        var generator = SeededGenerator(seed: 24)
        var cases = (0..<600).map { _ in Self.makeCase(&generator) }
        // Some cases use the largest script that comes with mod_firewall.
        let own = try String(contentsOfFile: "\(Self.scripts)/spam-blocking.pfw", encoding: .utf8)
        for index in stride(from: 0, to: cases.count, by: 10) where cases[index].chain == "deliver" {
            cases[index].script = own
        }
        let input = cases.map { one in
            "\(one.chain) \(one.time.minute / 60) \(one.time.minute % 60) \(one.time.weekday)\n\(one.script)\n----\n"
                + "\(one.stanzas.joined(separator: "\n"))\n====\n"
        }.joined()
        let script = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent().appending(
            path: "firewall.lua"
        )
        let tool = try ToolProcess(
            try #require(LuaProgram.path),
            [script.path, try #require(FirewallProgram.folder)],
            input: input
        )
        try await tool.ending()
        var lines = tool.lines(of: .standardOutput)[...]
        #expect(lines.count == cases.count * 6, "\(tool.text(of: .standardError).prefix(2000))")
        var (compared, dropped, edited) = (0, 0, 0)
        for one in cases {
            let judge = Judge(try RuleSet.test(one.script))
            judge.context.roster = try Roster.ofTwo()
            judge.context.localTime = one.time
            for stanza in one.stanzas {
                // Evaluates the stanza even if mod_firewall failed on it, because the rules count all stanzas.
                let verdict = try judge.judge(one.direction, stanza)
                guard let line = lines.popFirst(), let theirs = try Self.theirs(line[...], one.direction) else {
                    continue
                }
                let ours = try Self.ours(verdict, stanza, one.direction)
                #expect(ours == theirs, "\(stanza)\nof \(one.stanzas)\n\(one.script.dropFirst(Self.definitions.count))")
                compared += 1
                if theirs.isDropped { dropped += 1 }
                if verdict.edited != nil { edited += 1 }
            }
        }
        #expect(
            compared > 3000 && dropped > 500 && edited > 100,
            "\(compared) compared, \(dropped) dropped, \(edited) edited"
        )
    }
}

/// Prosody's mod_firewall.
enum FirewallProgram {
    /// The folder of mod_firewall; the environment variable `XMPPTAP_MOD_FIREWALL` overrides the default.
    static let folder: String? = [
        ProcessInfo.processInfo.environment["XMPPTAP_MOD_FIREWALL"] ?? "", "/usr/lib/prosody/modules/mod_firewall",
    ].first { FileManager.default.fileExists(atPath: "\($0)/mod_firewall.lua") }
}

import TapTestKit
import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// Tests each condition with stanzas for which it is true, and stanzas for which it is false.
@Suite struct RuleConditionTests {
    static let chat =
        "<message from='romeo@example.net/orchard' to='juliet@example.net/balcony' type='chat' id='m1'><body>hello there, see https://example.org and https://example.com</body><active xmlns='http://jabber.org/protocol/chatstates'/></message>"
    static let ping = "<iq type='get' id='p1' to='example.net'><ping xmlns='urn:xmpp:ping'/></iq>"
    static let plain = "<message to='romeo@example.net'><body>hi</body></message>"

    private static let definitions = """
        %ZONE capulet: example.net
        %ZONE elsewhere: example.com, friar@example.org
        %SEARCH body: body#
        %PATTERN url: https?://%S+
        %PATTERN site (regex): https?://([a-z.]+)
        %PATTERN word: %a+
        %LIST sites: memory
        %LIST words: file:lists/words.txt
        %LIST loud: memory (filter: lower bare)
        """

    @Test(arguments: [
        // Each condition is evaluated for the incoming chat message.
        ("KIND: message", true), ("KIND: presence, iq", false), ("KIND: presence|message", true),
        ("NOT KIND: message", false),
        ("KIND NOT: iq", true), ("TYPE: chat", true), ("TYPE: normal", false),
        ("PAYLOAD: http://jabber.org/protocol/chatstates", true), ("PAYLOAD: urn:xmpp:ping", false),
        ("PAYLOAD: jabber:client", true), ("INSPECT: body", true), ("INSPECT: subject", false),
        ("INSPECT: body#=hello", false), ("INSPECT: body#/=hello", true), ("INSPECT: body#~=^hello", true),
        ("INSPECT: body#~=%d", false), ("INSPECT: subject#~=^$", true), ("INSPECT: subject#=", false),
        ("INSPECT: body#~~=(?i)HELLO\\s+there", true), ("INSPECT: @id=m1", true), ("INSPECT: @xml:lang", false),
        ("INSPECT: {http://jabber.org/protocol/chatstates}active", true), ("INSPECT: active", false),
        ("INSPECT: {http://jabber.org/protocol/chatstates}", true), ("INSPECT: @from$=$<@to>", false),
        ("INSPECT: @from$/=$<@from|node>", true), ("INSPECT: body#$~=^$<@id||\"x\">", false),
        ("FROM: romeo@example.net", true), ("FROM: ROMEO@Example.NET/orchard", true), ("FROM: example.net", false),
        ("FROM: romeo@example.net/elsewhere", false), ("FROM: <*>@example.net", true), ("FROM: <r*o>@<*.net>", true),
        ("FROM: <<r%a+>>@example.net/<or?hard>", true), ("FROM: <<%d+>>@example.net", false),
        ("TO: juliet@example.net", true),
        ("WITH: romeo@example.net", true), ("WITH: juliet@example.net/balcony", true),
        ("WITH: paris@example.net", false),
        ("FROM EXACTLY: romeo@example.net", false), ("FROM EXACTLY: romeo@example.net/orchard", true),
        ("TO EXACTLY: juliet@$<@from|host>/balcony", true), ("FROM FULL JID?", true), ("TO FULL JID?", true),
        ("TO SELF?", false), ("FROM IP: 192.0.2.7", false), ("ENTERING: capulet", false),
        ("ENTERING: elsewhere", false),
        ("LEAVING: $local", false), ("IN ROSTER?", true), ("IN ROSTER: no", false), ("IN ROSTER GROUP: Friends", true),
        ("IN ROSTER GROUP: Family", false), ("SUBSCRIBED?", true), ("PENDING SUBSCRIPTION FROM SENDER?", false),
        ("TIME: 22:00-6:00", true), ("TIME: 10pm-11pm", false), ("TIME: 23:00-23:31", true),
        ("TIME: 23:00-23:30", false),
        ("DAY: Mon-Fri", true), ("DAY: Saturday, Sun", false), ("DAY: Fri-Mon", true),
        ("CHECK LIST: words contains spam", true), ("CHECK LIST: words contains $<@id>", false),
        ("COUNT: url in body > 1", true), ("COUNT: url in body = 3", false), ("COUNT: site in body >= 2", true),
        ("SCAN: body for word in words", false), ("DIRECTION: recv", true), ("DIRECTION: send", false),
        ("PHASE: open", true), ("PHASE: handshake", false), ("SESSION: 3, 4", true), ("SESSION: 5", false),
        ("SESSION: juliet@<*>", true), ("SESSION: romeo@example.net", false), ("ELEMENT: {jabber:client}message", true),
        ("ELEMENT: {urn:x}message", false), ("ELEMENT: {jabber:client}*", true), ("SIZE: > 100", true),
        ("SIZE: > 10kB", false), ("ROUND TRIP: > 1s", false), ("ORIGIN: peer", true), ("ORIGIN: tap", false),
        ("TRANSPORT: tcp", true), ("TRANSPORT: tls", false), ("PROBABILITY: 100%", true), ("PROBABILITY: 0", false),
        ("CROSSING: capulet", false), ("USER MARKED: known", false),
    ])
    func `Conditions are evaluated for a received message`(_ condition: String, _ holds: Bool) throws {
        let judge = try Judge("\(Self.definitions)\n\n\(condition)\nLOG=x\n")
        judge.context.roster = try Roster.ofTwo()
        judge.context.localTime = RuleLocalTime(minute: 23 * 60 + 30, weekday: 1)
        #expect(try judge.holds(.recv, Self.chat) == holds)
    }

    @Test(arguments: [
        ("FROM: juliet@example.net/balcony", true), ("TYPE: normal", true), ("FROM IP: 10.0.0.1 192.0.2.7", true),
        ("FROM SUBNET: 192.0.2.0/24", true), ("FROM SUBNET: 192.0.3.0/24, 2001:db8::/32", false),
        ("LEAVING: $local", true),
        ("ENTERING: elsewhere", true), ("CROSSING: elsewhere", true), ("IN ROSTER?", false), ("NOT IN ROSTER?", true),
        ("PENDING SUBSCRIPTION FROM SENDER?", true), ("SUBSCRIBED?", false), ("FROM FULL JID?", true),
        ("TO FULL JID?", false),
    ])
    func `A missing from attribute means the session's own address`(_ condition: String, _ holds: Bool) throws {
        let judge = try Judge("\(Self.definitions)\n\n\(condition)\nLOG=x\n")
        judge.context.roster = try Roster.ofTwo()
        #expect(try judge.holds(.send, "<message to='paris@example.com'><body>hi</body></message>") == holds)
    }

    @Test func `TO SELF matches stanzas without to and stanzas to the sender's own bare JID`() throws {
        let judge = try Judge("TO EXACTLY: juliet@example.net\nTO SELF?\nLOG=x")
        let query = "<query xmlns='jabber:iq:roster'/></iq>"
        #expect(try judge.holds(.send, "<iq type='get' id='1'>\(query)"))
        #expect(try judge.holds(.send, "<iq type='get' id='1' to='Juliet@example.net'>\(query)"))
        #expect(
            try judge.holds(.recv, "<iq type='get' id='1' from='juliet@example.net/x' to='juliet@example.net'>\(query)")
        )
        let other = try Judge("TO SELF?\nLOG=x")
        for to in ["juliet@example.net/balcony", "romeo@example.net", "example.net"] {
            #expect(try !other.holds(.send, "<iq type='get' id='1' to='\(to)'>\(query)"))
        }
        #expect(
            try !other.holds(.recv, "<iq type='get' id='1' from='romeo@example.net' to='juliet@example.net'>\(query)")
        )
    }

    @Test func `A bare from sent by the client is treated as its full JID`() throws {
        let judge = try Judge("FROM EXACTLY: juliet@example.net/balcony\nFROM FULL JID?\nLOG=$<@from>")
        for from in ["", " from='juliet@example.net'", " from='juliet@example.net/balcony'"] {
            let verdict = try judge.judge(.send, "<message\(from) to='romeo@example.net'/>")
            #expect(verdict.actions.map(\.action) == [.log(.info, "juliet@example.net/balcony")])
        }
        #expect(try !judge.holds(.recv, "<message from='juliet@example.net'/>"))
        #expect(
            try Judge("FROM EXACTLY: juliet@example.net\nLOG=x").holds(.recv, "<message from='juliet@example.net'/>")
        )
    }

    @Test func `A rate limit passes its burst, then stanzas at its rate`() throws {
        let judge = try Judge("%RATE two: 2 (burst 3)\n\nLIMIT: two\nDROP.")
        var dropped = 0
        for _ in 0..<10 where try judge.holds(.send, Self.plain) { dropped += 1 }
        #expect(dropped == 4)
        judge.context.now += 500_000_000
        #expect(try !judge.holds(.send, Self.plain))
        #expect(try judge.holds(.send, Self.plain))
    }

    @Test func `A full rate table limits new values unless overflow is allowed`() throws {
        func over(_ options: String) throws -> [Bool] {
            let judge = try Judge("%RATE one: 1 (entries 2)\(options)\n\nLIMIT: one on $<@to|bare>\nDROP.")
            return try ["a@x", "b@x", "a@x", "c@x", "c@x"].map { try judge.holds(.send, "<message to='\($0)'/>") }
        }
        #expect(try over("") == [false, false, true, true, true])
        #expect(try over(" (allow overflow)") == [false, false, true, false, true])
        let judge = try Judge("%RATE one: 1 (entries 2)\n\nLIMIT: one on $<@to|bare>\nDROP.")
        for name in ["a", "b"] { #expect(try !judge.holds(.send, "<message to='\(name)@x'/>")) }
        judge.context.now += 1_000_000_000
        #expect(try !judge.holds(.send, "<message to='c@x'/>"))
    }

    @Test func `A session mark expires after its time, and UNMARK removes marks`() throws {
        let judge = try Judge(
            """
            KIND: presence
            MARK ORIGIN=seen
            MARK USER=known

            KIND: iq
            UNMARK ORIGIN=seen
            UNMARK USER=known

            ORIGIN MARKED: seen (10s)
            USER MARKED: known
            KIND: message
            DROP.
            """
        )
        #expect(try !judge.holds(.send, Self.plain))
        _ = try judge.judge(.send, "<presence/>")
        judge.context.now += 9_000_000_000
        #expect(try judge.holds(.send, Self.plain))
        judge.context.now += 1_000_000_000
        #expect(try !judge.holds(.send, Self.plain))
        _ = try judge.judge(.send, "<presence/>")
        _ = try judge.judge(.send, Self.ping)
        #expect(try !judge.holds(.send, Self.plain))
    }

    @Test func `ADD TO applies the filters of a list and discards the oldest entry at its limit`() throws {
        let judge = try Judge(
            """
            %LIST known: memory (limit: 2) (filter: lower bare)

            KIND: presence
            ADD TO=known $<@to>

            KIND: message
            CHECK LIST: known contains $<@to>
            DROP.
            """
        )
        for to in ["A@x/1", "b@x", "c@x"] { _ = try judge.judge(.send, "<presence to='\(to)'/>") }
        #expect(try !judge.holds(.send, "<message to='a@x'/>"))
        #expect(try judge.holds(.send, "<message to='B@x/9'/>") && judge.holds(.send, "<message to='c@x'/>"))
    }

    @Test func `SCAN looks up the capture of each match in the list`() throws {
        let judge = try Judge(
            "%SEARCH body: body#\n%PATTERN site: https?://([%w.]+)\n%LIST bad: memory\n\nKIND: presence\nADD TO=bad example.com\n\nSCAN: body for site in bad\nDROP."
        )
        #expect(try !judge.holds(.recv, Self.chat))
        _ = try judge.judge(.send, "<presence/>")
        #expect(try judge.holds(.recv, Self.chat))
    }

    @Test func `EVERY and NTH count only stanzas that match the conditions before them`() throws {
        let judge = try Judge("KIND: message\nEVERY: 3\nLOG=every\n\nKIND: message\nNTH: 2, 5\nLOG=nth")
        var hits: [Int] = []
        for _ in 1...6 {
            _ = try judge.judge(.send, "<presence/>")
            hits.append(try judge.judge(.send, Self.plain).hits.map(\.place.line).reduce(0, +))
        }
        // The rule in line 1 matches every third message, the rule in line 5 the second and the fifth message.
        #expect(hits == [0, 5, 1, 0, 5, 1])
    }

    @Test func `EVERY and NTH count per session, or over all sessions if the rule says so`() throws {
        let rules = try RuleSet.test(
            "EVERY: 3 (all sessions)\nLOG=x\n\nNTH: 1, 5 (all sessions)\nLOG=y\n\nNTH: 2\nLOG=z"
        )
        let (one, other) = (Judge(rules), Judge(rules))
        var lines: [[Int]] = []
        for _ in 1...3 {
            for judge in [one, other] { lines.append(try judge.judge(.send, Self.plain).hits.map(\.place.line)) }
        }
        #expect(lines == [[4], [], [1, 7], [7], [4], [1]])
    }

    @Test func `A counting condition is evaluated even if a later condition does not match`() throws {
        let judge = try Judge(
            "NTH: 2\nKIND: message\nLOG=x\n\n%RATE one: 1\n\nLIMIT: one\nDIRECTION: recv\nKIND: message\nDROP."
        )
        #expect(try !judge.holds(.send, "<presence/>"))
        #expect(try judge.judge(.recv, Self.chat).hits.map(\.place.line) == [1, 7])
    }

    @Test func `PROBABILITY is reproducible for a seed and matches its percentage`() throws {
        func draws() throws -> [Bool] {
            let judge = try Judge("PROBABILITY: 25%\nDROP.")
            return try (0..<2000).map { _ in try judge.holds(.send, Self.plain) }
        }
        let first = try draws()
        #expect(try draws() == first)
        #expect((400...600).contains(first.count(where: \.self)))
    }

    @Test func `A condition with a too complex pattern never matches, negated or not, and is reported`() throws {
        let pattern = String(repeating: "a*", count: 30) + "b"
        let body = String(repeating: "a", count: 200)
        for condition in ["INSPECT: body#~=\(pattern)", "NOT INSPECT: body#~=\(pattern)"] {
            let verdict = try Judge("\(condition)\nDROP.").judge(.send, "<message><body>\(body)</body></message>")
            #expect(verdict.hits.isEmpty && verdict.remarks.map(\.remark) == [.tooComplex])
        }
    }

    @Test func `Extreme clock values do not cause a trap`() throws {
        let judge = try Judge(
            "%RATE one: 1\n\nORIGIN MARKED: x (5s)\nLOG=y\n\nLIMIT: one\nLOG=z\n\nMARK ORIGIN=x"
        )
        for now in [Int64.min, .max, .min, .max] {
            judge.context.now = now
            _ = try judge.judge(.send, Self.plain)
        }
        #expect(try judge.judge(.send, Self.plain).hits.map(\.place.line) == [3, 6, 9])
    }

    @Test func `Texts over the length limit are not stored in lists or rate tables, nor used as patterns`() throws {
        let judge = try Judge(
            "%LIST l: memory\n%RATE r: 1\n\nADD TO=l $<body#>\n\nCHECK LIST: l contains $<body#>\nLOG=x\n\nLIMIT: r on $<body#>\nLOG=y\n\nINSPECT: body#$~=$<body#>\nLOG=z"
        )
        func lines(_ count: Int) throws -> [Int] {
            let body = String(repeating: "a", count: count)
            return try judge.judge(.send, "<message><body>\(body)</body></message>").hits.map(\.place.line)
        }
        #expect(try lines(1000) == [4, 6, 12] && lines(1100) == [4, 6] && lines(3100) == [4, 9])
    }

    @Test func `Conditions on the head do not parse the stanza`() throws {
        let judge = try Judge(
            "KIND: message\nTYPE: chat\nFROM: <*>@example.net\nPAYLOAD: urn:xmpp:carbons:2\nDROP.\n\nSIZE: > 1\nPAYLOAD: urn:xmpp:ping\nLOG=x"
        )
        #expect(try judge.holds(.send, Self.ping))
        _ = try judge.judge(.send, "<presence/>")
        #expect(judge.treesRead == 0)
        _ = try judge.judge(.recv, Self.chat)
        #expect(judge.treesRead == 1)
    }

    @Test func `A path matches the first element of a name, and its text only without child elements`() throws {
        let stanza = "<message><a><b>1</b></a><a><b>2</b><c/></a><d>x<e/></d></message>"
        func holds(_ path: String) throws -> Bool { try Judge("INSPECT: \(path)\nDROP.").holds(.send, stanza) }
        #expect(try holds("a/b#=1") && !holds("a/b#=2") && !holds("a/c"))
        #expect(try !holds("d#=x") && holds("d/e"))
    }
}

import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules
@testable import TapStreamManagement

private let body = "<message to='romeo@example.net' id='m1'><body>hello</body></message>"
private let typing =
    "<message to='romeo@example.net' id='m2'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>"

/// Tests of the decisions of rules on the items of a session.
@Suite struct RuleDecisionTests {
    @Test func `a stanza dropped by a rule is not forwarded, and its record names the rule`() throws {
        var scene = try RuleScene("::send\n\nPAYLOAD: http://jabber.org/protocol/chatstates\nDROP.")
        #expect(scene.send(typing + body).server == body)
        let dropped = scene.harness.told.first { $0.record.action == "dropped" }
        #expect(dropped?.record.rule == "test.pfw:3" && dropped?.xml == typing)
        #expect(scene.item?.record.action == nil && scene.item?.record.rule == nil)
        let hits = scene.told("rule-hit")
        #expect(hits.count == 1)
        #expect(hits.first?.record.rule == "test.pfw:3" && hits.first?.record.part == .rules)
        #expect(hits.first?.record.level == .verbose && hits.first?.xml == typing)
        #expect(hits.first?.record.details?["action"]?.text == "drop")
    }

    @Test func `a rule hit lists the conditions that matched`() throws {
        var scene = try RuleScene("KIND: message\nNOT TYPE: \\\nerror\nLOG=x", SessionOptions(level: .verbose))
        _ = scene.send(body)
        let hit = scene.told("rule-hit").first?.record
        #expect(hit?.details?["conditions"] == .strings(["KIND: message", "NOT TYPE: error"]))
    }

    @Test func `the conditions of a rule hit are not recorded if metadata is redacted`() throws {
        let options = SessionOptions(level: .verbose, redaction: .metadata)
        var scene = try RuleScene("KIND: message\nNOT TYPE: error\nLOG=x", options)
        _ = scene.send(body)
        let hit = scene.told("rule-hit").first?.record
        #expect(hit != nil && hit?.details?["conditions"] == nil)
    }

    @Test func `rule hits are counted over all sessions`() throws {
        let live = LiveRules(try RuleSet.test("KIND: message\nDROP.\n\nKIND: presence\nLOG=there")) { _ in
            RuleLocalTime()
        }
        for _ in 0..<2 {
            var options = SessionOptions(level: .info)
            options.rules = live
            var harness = SessionHarness(options: options)
            harness.say(Array(Conversations.plainLogin.prefix(10)))
            harness.send(typing + body)
        }
        let rules = try #require(live.current)
        #expect(rules.statuses.map(\.hits) == [4, 0])
        #expect(rules.hits(of: 0) == 4 && rules.hits(of: 7) == 0)
        #expect(rules.statuses.map { "\($0.place)" } == ["test.pfw:1", "test.pfw:4"])
    }

    @Test func `an edited stanza is sent instead of the original, and both are recorded`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nSET=body#=bye")
        #expect(
            scene.send(body).server == "<message to='romeo@example.net' id='m1'><body>bye</body></message>"
        )
        let item = scene.item
        #expect(item?.record.action == "edited" && item?.record.rule == "test.pfw:3")
        #expect(item?.xml == body)
        #expect(item?.text(item?.record.edited)?.contains("<body>bye</body>") == true)
    }

    @Test func `a refused edit leaves the stanza unchanged and is reported once`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nSET=@from=mallory@example.net")
        #expect(scene.send(body + body).server == body + body)
        #expect(scene.told("rule-edit-refused").count == 1)
        #expect(scene.told("rule-edit-refused").first?.record.level == .warn)
    }

    @Test(arguments: [
        ("REMOVE=@from", "it has no from; in this stream each stanza has from and to"),
        ("REMOVE=@to", "it has no to; in this stream each stanza has from and to"),
        (
            "SET=@from=x@other.example",
            "from='x@other.example' is not of plays.example.org, the domain of this stream; the server would close it "
                + "(invalid-from)"
        ),
        ("SET=@from=hamlet@plays.example.org", nil), ("SET=@to=other@example.net", nil),
    ])
    func `an edit of a component's stanza must keep both addresses and its own domain`(
        action: String,
        problem: String?
    ) throws {
        var options = SessionOptions(level: .trace)
        options.rules = LiveRules(try RuleSet.test("::send\n\nKIND: message\n\(action)")) { _ in RuleLocalTime() }
        var harness = SessionHarness(options: options)
        harness.say(Conversations.component)
        let before = harness.toServer.count
        let stanza = "<message from='plays.example.org' to='juliet@example.org'/>"
        harness.send(stanza)
        #expect((String(decoding: harness.toServer[before...], as: UTF8.self) == stanza) == (problem != nil))
        let words = harness.told.compactMap(\.record.messageText).filter { $0.contains("edit refused") }
        #expect(words.count == (problem == nil ? 0 : 1) && words.allSatisfy { $0.contains(problem ?? "") }, "\(words)")
    }

    @Test func `a bounce is returned to the sender and counted on both sides`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nBOUNCE=not-allowed", enablesStreamManagement: true)
        let out = scene.send("<iq type='get' id='q1' to='romeo@example.net'><ping xmlns='urn:xmpp:ping'/></iq>")
        #expect(out.server.isEmpty)
        #expect(out.client.contains("<not-allowed") && out.client.contains("id='q1'"))
        let counts = scene.harness.session.ledgers
        let ledgers = try #require(counts)
        #expect(ledgers.send.sent == 1 && ledgers.send.delivered == 0)
        #expect(ledgers.recv.sent == 0 && ledgers.recv.delivered == 1)
        let injected = scene.harness.told.filter { $0.record.origin == .tap && $0.record.kind == .stanza }
        #expect(injected.count == 1 && injected.first?.record.direction == .recv)
        // The item's record comes first, with the original content.
        #expect(scene.item?.xml?.contains("id='q1'") == true && scene.item?.record.action == "dropped")
    }

    @Test func `each of many bounced requests gets an answer`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nBOUNCE.")
        let requests = (0..<1500).map { "<iq type='get' id='q\($0)'/>" }
        let out = scene.send(requests.joined())
        #expect(out.client.components(of: "service-unavailable") == 1500)
        #expect(scene.told("rule-injection-failed").isEmpty)
    }

    @Test func `REPLY, COPY and REDIRECT of a received message send a stanza to the server`() throws {
        var scene = try RuleScene(
            """
            ::recv

            KIND: message
            INSPECT: body#=a
            REPLY=Busy

            KIND: message
            INSPECT: body#=b
            COPY=log@example.net

            KIND: message
            INSPECT: body#=c
            REDIRECT=nurse@example.net
            """
        )
        func message(_ text: String) -> String { "<message from='r@example.net/x'><body>\(text)</body></message>" }
        var out = scene.recv(message("a"))
        #expect(out.client == message("a"))
        #expect(out.server.contains("to='r@example.net/x'") && out.server.contains("<body>Busy</body>"))
        out = scene.recv(message("b"))
        #expect(out.client == message("b") && out.server.contains("to='log@example.net'"))
        out = scene.recv(message("c"))
        #expect(out.client.isEmpty && out.server.contains("to='nurse@example.net'"))
    }

    @Test func `the answer to a copied request is dropped, the answer to the original is forwarded`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nTYPE: get\nCOPY=log@example.net")
        let request = "<iq type='get' id='q1' to='romeo@example.net'><ping xmlns='urn:xmpp:ping'/></iq>"
        #expect(scene.send(request).server.components(of: "id='q1'") == 2)
        #expect(scene.recv("<iq type='result' id='q1' from='log@example.net'/>").client.isEmpty)
        let answer = "<iq type='result' id='q1' from='romeo@example.net'/>"
        #expect(scene.recv(answer).client == answer)
    }

    @Test func `a dropped request is reported once as a blackhole`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nDROP.")
        #expect(scene.send("<iq type='get' id='1'/><iq type='get' id='2'/>").server.isEmpty)
        #expect(scene.told("rule-blackhole").count == 1)
    }

    @Test func `LOG writes a record, and DUPLICATE sends copies after the stanza`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nLOG=[warn] to $<@to>\nDUPLICATE=2")
        #expect(scene.send(body + "<presence/>").server == body + body + body + "<presence/>")
        #expect(scene.told("rule-log").first?.record.message.map { "\($0)" } == "to romeo@example.net")
        #expect(scene.told("rule-log").first?.record.level == .warn)
        #expect(scene.harness.told.filter { $0.record.origin == .tap }.count == 2)
    }

    @Test func `conditions can use the account, the phase, the roster and the time`() throws {
        var scene = try RuleScene(
            "::send\n\nPHASE: open\nFROM: juliet@example.net\nNOT IN ROSTER?\nTIME: 9:00-11:00\nKIND: message\nDROP."
        )
        let jid = try #require(scene.harness.session.info.jid)
        scene.harness.session.sharedState.info.jid = "juliet@example.net/balcony"
        #expect(scene.send(body).server.isEmpty)
        _ = scene.recv(
            "<iq type='result' id='r'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net'/></query></iq>"
        )
        #expect(scene.send(body).server == body)
        scene.harness.session.sharedState.info.jid = jid
    }

    @Test func `ROUND TRIP compares the time between a request and its answer`() throws {
        var scene = try RuleScene("::recv\n\nROUND TRIP: > 1s\nDROP.")
        _ = scene.send("<iq type='get' id='1'/><iq type='get' id='2'/>")
        #expect(scene.recv("<iq type='result' id='1'/>").client == "<iq type='result' id='1'/>")
        _ = scene.wait(milliseconds: 1500)
        #expect(scene.recv("<iq type='result' id='2'/>").client.isEmpty)
        #expect(scene.item?.record.roundTrip != nil)
    }

    // MARK: Injected stanzas

    @Test func `rules with an ORIGIN condition judge injected stanzas`() throws {
        var scene = try RuleScene(
            "KIND: message\nLOG=any\n\nORIGIN: tap\nKIND: message\nLOG=[warn] injected to $<@to>\nLEVEL=warn\n\n"
                + "::recv\n\nNOT ORIGIN: peer\nLOG=other direction"
        )
        scene.harness.inject(Injection(Array(body.utf8), to: .server))
        #expect(scene.told("rule-log").map { "\($0.record.message ?? "")" } == ["injected to romeo@example.net"])
        let item = scene.harness.told.first { $0.record.origin == .tap && $0.record.kind == .stanza }
        #expect(item?.xml == body && item?.record.level == .warn && item?.record.rule == nil)
        #expect(scene.told("rule-hit").map(\.record.rule) == ["test.pfw:4"])
        _ = scene.send(body)
        #expect(scene.told("rule-log").last?.record.message.map { "\($0)" } == "any")
        #expect(scene.harness.session.ruleHits.map(\.hits) == [1, 1, 0])
    }

    @Test func `RECORD and REDACT apply to the record of an injected stanza`() throws {
        var scene = try RuleScene(
            "ORIGIN: tap\nINSPECT: body#=off\nRECORD=off\n\nORIGIN: tap\nREDACT=body#\n\nKIND: message\nREDACT=subject#"
        )
        for text in ["off", "very secret"] {
            let stanza = "<message><body>\(text)</body><subject>shown</subject></message>"
            scene.harness.inject(Injection(Array(stanza.utf8), to: .client))
        }
        #expect(String(decoding: scene.harness.toClient, as: UTF8.self).hasSuffix("shown</subject></message>"))
        let items = scene.harness.told.filter { $0.record.origin == .tap && $0.record.kind == .stanza }
        #expect(items.count == 1 && items.first?.xml?.contains("[redacted:rule]") == true)
        #expect(items.first?.xml?.contains("shown") == true)
        #expect(!(try scene.harness.written().contains("secret")))
    }

    @Test func `an injected stanza is sent unchanged, whatever the rules say`() throws {
        var scene = try RuleScene(
            "ORIGIN: tap\nREPLY=no\nSET=body#=edited\nDELAY=1s\nDROP.\n\nKIND: message\nDROP."
        )
        let before = scene.harness.toServer.count
        scene.harness.inject(Injection(Array(body.utf8), to: .server, number: 7))
        scene.harness.inject(Injection(Array(body.utf8), to: .server, number: 8))
        #expect(String(decoding: scene.harness.toServer[before...], as: UTF8.self) == body + body)
        let remarks = scene.told("rule-not-here")
        #expect(remarks.count == 1)
        #expect(remarks.first?.record.message.map { "\($0)" }?.contains("xmpptap sends") == true)
    }

    // MARK: Replacing rules

    @Test func `lists, rates and user marks survive a reload if their definitions are unchanged`() throws {
        let rules = """
            %LIST seen: memory
            %LIST other: memory
            %RATE slow: 0.001 (burst 1000)

            INSPECT: body#=add
            ADD TO=seen x
            ADD TO=other x
            MARK USER=known

            INSPECT: body#=ask
            LOG=asked

            LIMIT: slow
            LOG=limit

            CHECK LIST: seen contains x
            LOG=seen

            CHECK LIST: other contains x
            LOG=other

            USER MARKED: known
            LOG=known
            """
        let live = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime() }
        var options = SessionOptions(level: .info)
        options.rules = live
        var scene = RuleScene(options, run: Run())
        scene.harness.session.sharedState.info.jid = "juliet@example.net/balcony"
        _ = scene.send("<message><body>add</body></message>")
        let before = scene.told("rule-log").count
        let changed = rules.replacing("%LIST other: memory", with: "%LIST new: memory\n%LIST other: memory (limit: 5)")
        live.replace(by: try RuleSet.test(changed))
        _ = scene.handle(.rules(live.current))
        _ = scene.send("<message><body>ask</body></message>")
        let logs = scene.told("rule-log").dropFirst(before).map { "\($0.record.message ?? "")" }
        #expect(logs == ["asked", "limit", "seen", "known"])
    }

    // MARK: Modes

    @Test func `a direction that no rule can alter is forwarded at once, and its hits are still recorded`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDROP.\n\n::recv\n\nKIND: message\nLOG=in")
        let (send, recv) = (scene.passes(.send), scene.passes(.recv))
        #expect(!send && recv)
        #expect(scene.recv("<message><bo").client == "<message><bo")
        #expect(scene.recv("dy>a</body></message>").client == "dy>a</body></message>")
        #expect(scene.told("rule-log").count == 1 && scene.told("rule-hit").count == 1)
        #expect(scene.send("<presence").server.isEmpty)
        #expect(scene.send("/>").server == "<presence/>")
    }

    @Test func `replaced or removed rules take effect from the next stanza`() throws {
        var scene = try RuleScene("::send\n\nKIND: presence\nLOG=seen")
        var passes = scene.passes(.send)
        #expect(passes)
        #expect(scene.send("<message><bo").server == "<message><bo")
        _ = scene.handle(.rules(try RuleSet.test("::send\n\nKIND: message\nDROP.")))
        passes = scene.passes(.send)
        #expect(!passes)
        #expect(scene.send("dy/></message>" + body).server == "dy/></message>")
        _ = scene.handle(.rules(nil))
        passes = scene.passes(.send)
        #expect(passes)
        #expect(scene.send(body).server == body)
    }

    @Test func `a session that began without rules applies rules that are loaded later`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.handle(.rules(try RuleSet.test("KIND: message\nDROP.")))
        let before = harness.toServer.count
        harness.send(body + "<presence/>")
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "<presence/>")
    }

    private static let large =
        "<message to='r@example.net'><body>\(String(repeating: "x", count: 2000))</body></message>"

    private static var smallItems: SessionOptions {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        return options
    }

    @Test(arguments: [1, 7, 100_000])
    func `a stanza over the size limit is relayed without evaluation, with a warning`(piece: Int) throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDROP.", Self.smallItems)
        var out = ""
        var rest = Array((Self.large + body + Self.large + "<presence/>").utf8)[...]
        while !rest.isEmpty {
            out += scene.send(String(decoding: rest.prefix(piece), as: UTF8.self)).server
            rest = rest.dropFirst(piece)
        }
        #expect(out == Self.large + Self.large + "<presence/>")
        #expect(scene.harness.closed == nil)
        let warnings = scene.told("rules-not-evaluated")
        #expect(warnings.count == 2 && warnings.allSatisfy { $0.record.level == .warn })
        let words = "rules were not evaluated for a stanza larger than 400 bytes, the limit of an item; it is relayed"
        #expect(warnings.first?.record.messageText?.hasPrefix(words) == true)
        let passes = scene.passes(.send)
        #expect(!passes)
    }

    @Test func `a stanza over the size limit is relayed while stanzas are held`() throws {
        var harness = SessionHarness(options: Self.smallItems)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.handle(.pause(try StanzaPause(.send)))
        let before = harness.toServer.count
        harness.send(Self.large + body)
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == Self.large)
        #expect(harness.session.heldItems.count == 1 && harness.closed == nil)
        #expect(harness.told(code: "rules-not-evaluated").count == 1)
    }

    @Test func `a rule that alters nothing is also not evaluated for a stanza over the size limit`() throws {
        var scene = try RuleScene("KIND: message\nLOG=seen", Self.smallItems)
        #expect(scene.send(Self.large).server == Self.large)
        #expect(scene.told("rules-not-evaluated").count == 1 && scene.told("rule-log").isEmpty)
    }

    @Test func `no warning is logged for an oversized stanza to which no rule applies`() throws {
        var scene = try RuleScene("::send\n\nKIND: iq\nDROP.", Self.smallItems)
        #expect(scene.send(Self.large).server == Self.large)
        #expect(scene.told("rules-not-evaluated").isEmpty)
    }

    @Test(arguments: ["::send\n\nKIND: message\nDROP.", "KIND: iq\nLOG=seen"])
    func `onOversize refuse ends the session at a stanza over the size limit`(rules: String) throws {
        var options = Self.smallItems
        options.onOversize = .refuse
        var scene = try RuleScene(rules, options)
        let out = scene.send(Self.large)
        #expect(!out.server.contains("xxx") && out.client.contains("<policy-violation"))
        #expect(scene.harness.closed == false)
    }

    // MARK: Records

    @Test func `RECORD=off omits stanzas from the records, and LEVEL sets their level`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nRECORD=off\n\nKIND: presence\nLEVEL=warn")
        let passes = scene.passes(.send)
        #expect(passes)
        let count = scene.harness.told.count { $0.record.kind == .stanza }
        #expect(scene.send(body).server == body)
        #expect(scene.harness.told.count { $0.record.kind == .stanza } == count)
        #expect(scene.send("<presence/>").server == "<presence/>")
        #expect(scene.item?.record.level == .warn)
    }

    @Test func `a stanza that a rule raises to the log level is recorded`() throws {
        var scene = try RuleScene("::send\n\nKIND: presence\nLEVEL=warn", SessionOptions(level: .warn))
        _ = scene.send(body + "<presence/>")
        #expect(scene.harness.told.filter { $0.record.kind == .stanza }.map(\.xml) == ["<presence/>"])
    }

    @Test(arguments: [
        "REDACT=body#", "REDACT=body", "REDACT=body#\nSET=body#=also secret", "REDACT=body#\nCOPY=a@example.net",
    ])
    func `content that a rule redacts is not in any record`(actions: String) throws {
        var scene = try RuleScene("::send\n\nKIND: message\n\(actions)")
        let text = "<message to='r@example.net' id='m1'><body>very secret</body><subject>shown</subject></message>"
        #expect(scene.send(text).server.contains("secret"))
        #expect(!(try scene.harness.written().contains("secret")))
        #expect(scene.item?.xml?.contains("shown") == true)
        #expect(scene.item?.xml?.contains("[redacted:rule]") == true)
        #expect(scene.item?.text(scene.item?.record.id) == "m1")
    }

    @Test func `LOG does not show secrets of a stanza`() throws {
        var scene = try RuleScene(
            """
            ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth
            LOG=$(stanza)

            PAYLOAD: jabber:iq:auth
            LOG=$(stanza)

            KIND: message
            REDACT=body#
            LOG=$<body#>
            """
        )
        #expect(scene.told("rule-log").count == 1)
        _ = scene.send(
            "<iq type='set' id='a'><query xmlns='jabber:iq:auth'><username>u</username>"
                + "<password>Calli0pe</password></query></iq>" + body
        )
        let logs = scene.told("rule-log").map { "\($0.record.message ?? "")" }
        #expect(logs.count == 3 && logs.allSatisfy { $0.contains("the text is left out") })
        let written = try scene.harness.written()
        for secret in ["AGp1bGlldABSMG0zMG15cjBtMzA=", "Calli0pe", "hello"] { #expect(!written.contains(secret)) }
    }

    @Test(arguments: [SessionOptions(level: .trace), SessionOptions(level: .trace, redaction: .none)])
    func `LOG shows secrets only if the redaction policy shows them`(options: SessionOptions) throws {
        var scene = try RuleScene("KIND: iq\nLOG=$(stanza)", options, turns: 8)
        let text = "<iq type='set' id='a'><query xmlns='jabber:iq:auth'><password>Calli0pe</password></query></iq>"
        _ = scene.send(text)
        #expect(try scene.harness.written().contains("Calli0pe") == (options.redaction == .none))
    }

    @Test func `redacted content stays hidden if the stanza is dropped again after a resumption`() throws {
        let rules = "::send\n\nKIND: message\nREDACT=body#\nDROP."
        let run = Run()
        var first = try RuleScene(rules, run: run, enablesStreamManagement: true)
        #expect(first.send("<presence/>" + body).server == "<presence/>")
        var second = try first.resumed(rules, run: run)
        #expect(second.send("<presence/>" + body).server == "<presence/>")
        #expect(second.item?.record.action == "dropped" && second.item?.xml?.contains("[redacted:rule]") == true)
        #expect(!(try second.harness.written().contains("hello")))
    }

    @Test(arguments: ["error", "error/text", "error/text#"])
    func `REDACT also hides the text of a stanza error`(path: String) throws {
        var scene = try RuleScene("::recv\n\nKIND: iq\nREDACT=\(path)")
        _ = scene.recv(
            "<iq type='error' id='e'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>very secret</text></error></iq>"
        )
        #expect(scene.item?.record.condition == "item-not-found" && scene.item?.record.message == nil)
        #expect(!(try scene.harness.written().contains("secret")))
    }

    @Test func `after a resumption new stanzas are bounced, and retransmitted ones are not copied again`() throws {
        let rules = "::send\n\nKIND: iq\nBOUNCE.\n\nKIND: message\nCOPY=log@example.net"
        let run = Run()
        var first = try RuleScene(rules, run: run, enablesStreamManagement: true)
        #expect(first.send(body).server.contains("log@example.net"))
        _ = first.send("<presence/>")
        var second = try first.resumed(rules, run: run)
        #expect(second.send(body).server == body)
        #expect(second.send("<iq type='get' id='new'/>").client.contains("id='new'"))
    }

    @Test func `a partly forwarded stanza is not bounced by rules that are loaded meanwhile`() throws {
        var scene = try RuleScene("::send\n\nKIND: presence\nLOG=seen")
        #expect(scene.send("<iq type='get' ").server == "<iq type='get' ")
        _ = scene.handle(.rules(try RuleSet.test("::send\n\nKIND: iq\nBOUNCE.")))
        let out = scene.send("id='q1'/>")
        #expect(out.server == "id='q1'/>" && out.client.isEmpty)
    }
}

extension String {
    /// Returns the number of occurrences of a text.
    fileprivate func components(of text: String) -> Int {
        var (count, rest) = (0, self[...])
        while let range = rest.firstRange(of: text) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}

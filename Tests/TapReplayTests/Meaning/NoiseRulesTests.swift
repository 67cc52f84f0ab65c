import TapRecord
import Testing
import XMPPCore

@testable import TapReplay

private let occurrenceWords = "may be absent, any number or any order"

@Suite struct NoiseRulesTests {
    private func occurrences(_ rules: String, _ xml: String) throws -> NoiseRules.Occurrences {
        let form = try #require(StanzaForm(Array(xml.utf8), parser: StanzaParser()))
        return NoiseRules(try NoiseFile.rules(rules, file: "x")).occurrences(of: form.element)
    }

    @Test(
        arguments: [
            ("iq[@type=get][{urn:x}q]", "<iq type='get'><q xmlns='urn:x'/></iq>", true),
            ("iq[@type=get][{urn:x}q]", "<iq type='set'><q xmlns='urn:x'/></iq>", false),
            ("iq[@type=get][{urn:x}q]", "<iq type='get'><q xmlns='urn:y'/></iq>", false),
            ("message[{urn:x}*]", "<message><body/><a xmlns='urn:x'/></message>", true),
            ("message[body]", "<message><body/></message>", true),
            ("message[not(@id)]", "<message/>", true), ("message[not(@id)]", "<message id=''/>", false),
            // Rules of files also apply to stanzas of other clients; built-in rules do not.
            (
                "iq[{jabber:iq:version}query]", "<iq type='get' from='a@b/c'><query xmlns='jabber:iq:version'/></iq>",
                true
            ),
            ("iq[{urn:x}q]", "<iq type='get' from='a@b/c'><query xmlns='jabber:iq:version'/></iq>", false),
            ("iq[{urn:x}q]", "<iq type='get' from='b'><query xmlns='jabber:iq:version'/></iq>", true),
        ]
    )
    func `the conditions of a noise rule select stanzas`(_ place: String, _ xml: String, _ isMeant: Bool) throws {
        #expect(try occurrences("\(place) any number # XEP-9999", xml).isAnyNumber == isMeant)
    }

    @Test func `noise rules for occurrence are printed as they were read, with their source`() throws {
        let lines = [
            "message/{urn:x}a may be absent # XEP-0001 §2", "message/@a may be absent",
            "iq[@type=get][{urn:x}q] any number",
            "message[{urn:x}a] any order",
        ]
        let rules = try NoiseFile.rules(lines.joined(separator: "\n"), file: "x")
        #expect(rules.map(\.description) == lines && rules.map(\.source) == ["XEP-0001 §2", nil, nil, nil])
    }

    @Test func `the built-in rules are parsed`() throws {
        let rules = try NoiseFile.rules(BuiltInNoise.text, file: "built-in")
        #expect(rules.count == BuiltInNoise.rules.count && rules.count > 50)
        #expect(
            try NoiseFile.rules(NoiseFile.text(rules), file: "again").map(\.description) == rules.map(\.description)
        )
    }

    @Test(arguments: [
        ("iq/@id", "<iq id='1'/>", true),
        (
            "iq/{jabber:iq:roster}query/item/@jid", "<iq><query xmlns='jabber:iq:roster'><item jid='a'/></query></iq>",
            true
        ),
        ("iq/{jabber:iq:roster}query/item/@jid", "<iq><query xmlns='urn:x'><item jid='a'/></query></iq>", false),
        (
            "iq/{jabber:iq:roster}query/item/@jid",
            "<message><query xmlns='jabber:iq:roster'><item jid='a'/></query></message>", false
        ),
        ("**/{urn:x}y/@z", "<message><a xmlns='urn:a'><y xmlns='urn:x' z='1'/></a></message>", true),
        ("message/**/{urn:x}y/@z", "<message><y xmlns='urn:x' z='1'/></message>", true),
        ("message/**/{urn:x}y/@z", "<iq><y xmlns='urn:x' z='1'/></iq>", false),
        ("message/*/@z", "<message><a z='1'/></message>", true),
        ("message/{urn:x}*/@z", "<message><a xmlns='urn:x' z='1'/></message>", true),
        ("message/{}a/@z", "<message><a xmlns='urn:x' z='1'/></message>", true),
        ("message/a/@z", "<message><a xmlns='urn:x' z='1'/></message>", false),
    ])
    func `a locator matches its places`(locator: String, xml: String, isFound: Bool) throws {
        var path = [try form(xml).element]
        while let child = path[path.count - 1].firstChild { path.append(child) }
        #expect(try Locator(locator).matches(path) == isFound)
    }

    @Test(
        arguments: [
            (
                "iq/@id",
                "x:1:7: expected ignore, present, regex, number, bind, bind-suffix, follow, jid, \(occurrenceWords)"
            ),
            ("iq/a/text() may be absent", "x:1:13: may be absent needs a place that ends in an element or @NAME"),
            ("iq/@id any order", "x:1:8: any order needs a place that ends in an element"),
            ("iq may be", "x:1:4: expected may be absent, any number or any order"),
            ("iq[@type any number", "x:1:4: expected @NAME=VALUE"),
            ("iq[@type=get any number", "x:1:13: expected \"]\""),
            ("iq[not(id)] any number", "x:1:4: expected @NAME=VALUE, not(@NAME) or a child element"),
            ("iq/x[@id=1] ignore", "x:1:5: expected a condition only after the first step"),
            (
                "iq/@id perhaps",
                "x:1:8: expected ignore, present, regex, number, bind, bind-suffix, follow, jid, \(occurrenceWords)"
            ),
            ("@id ignore", "x:1:1: expected an element before @"),
            ("iq//x ignore", "x:1:4: expected the name of an element, \"*\" or \"**\""),
            ("iq/{urn:x ignore", "x:1:10: expected \"}\""),
            ("iq/@id/x ignore", "x:1:7: expected nothing after an attribute"),
            ("iq/** ignore", "x:1:6: expected an element after \"**\""),
            ("  iq/@id ignore it", "x:1:17: expected the end of the line after ignore"),
            ("iq regex a", "x:1:4: regex needs a place that ends in @NAME or text()"),
            ("iq/@id regex (", nil),
            ("iq/@id number 5", "x:1:15: expected ± and a number, such as ± 0.5"),
            ("iq/@id number ± -1", "x:1:15: expected ± and a number, such as ± 0.5"),
            ("iq/@id number ± inf", "x:1:15: expected ± and a number, such as ± 0.5"),
        ] as [(String, String?)]
    )
    func `a mistake is reported with its position`(line: String, expected: String?) {
        let faults = #expect(throws: NoiseFile.Faults.self) { try NoiseFile.rules(line, file: "x") }
        if let expected { #expect(faults?.faults.map(\.description) == [expected]) }
    }

    @Test func `lines may end with LF or CRLF`() throws {
        #expect(try NoiseFile.rules("# a\r\niq/@a ignore\r\n\r\niq/@b present\r\n", file: "x").count == 2)
        let faults = #expect(throws: NoiseFile.Faults.self) { try NoiseFile.rules("# a\r\nbad\r\n", file: "x") }
        #expect(faults?.faults.map(\.line) == [2])
    }

    @Test(arguments: ["urn:a b", "urn:a}b", "urn:a"])
    func `names that a noise file cannot contain are not learned`(namespace: String) throws {
        let recordings = ["1", "2"].map {
            Recording([(.recv, "<message><a xmlns='\(namespace)'>\($0)</a></message>")])
        }
        var learner = NoiseLearner()
        for divergence in try recordings[0].divergences(from: recordings[1]) { learner.learn(divergence) }
        #expect(learner.rules.count + learner.unlearned.count == 1)
        #expect(try NoiseFile.rules(NoiseFile.text(learner.rules), file: "x").count == learner.rules.count)
        #expect(learner.rules.isEmpty == (namespace != "urn:a"))
    }

    @Test(arguments: [
        ("<iq type='result' id='1'/>", "<iq type='error' id='1'><error/></iq>"),
        (
            "<message from='a@b' to='c@d'><body>1</body></message>",
            "<message from='x@b' to='c@d'><body>2</body></message>"
        ),
        ("<presence from='a@b' to='c@d'/>", "<presence from='a@b' to='d@d'/>"),
    ])
    func `a different stanza is not learned as noise`(recorded: String, live: String) throws {
        let request = (Direction.send, "<iq type='get' id='1'/>")
        let recording = Recording([request, (.recv, recorded)])
        var learner = NoiseLearner()
        for divergence in try recording.divergences(from: Recording([request, (.recv, live)])) {
            learner.learn(divergence)
        }
        #expect(learner.rules.isEmpty && !learner.unlearned.isEmpty, "\(learner.rules)")
    }

    @Test func `all mistakes are reported`() {
        let faults = #expect(throws: NoiseFile.Faults.self) {
            try NoiseFile.rules("# fine\niq/@id ignore\n\nbad\n  worse", file: "a.noise")
        }
        #expect(faults?.faults.map { "\($0.line):\($0.column)" } == ["4:4", "5:8"])
    }

    @Test func `the user's rules take precedence over built-in ones`() throws {
        var bindings = ValueBindings()
        let (one, other) = (try form("<iq id='1'/>"), try form("<iq id='abc'/>"))
        let strict = NoiseRules(try NoiseFile.rules("iq/@id regex ^[0-9]+$", file: "x"))
        #expect(
            StanzaComparison.compare(recorded: one, live: other, bindings: &bindings, rules: strict).map(\.reason)
                == [.pattern]
        )
        #expect(StanzaComparison.compare(recorded: one, live: other, bindings: &bindings, rules: NoiseRules()) == [])
    }
}

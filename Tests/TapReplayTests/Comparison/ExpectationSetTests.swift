import Testing
import XMPPCore

@testable import TapReplay

@Suite struct ExpectationSetTests {
    private typealias Stanza = ComparedStanza<Int>
    private typealias Findings = [String]

    private static func live(_ form: StanzaForm, _ context: Stanza.Context, tag: Int) -> Stanza {
        Stanza(live: form, form.canonical, parser: StanzaParser(), context, tag: tag)
    }

    @Test func `unexpected items beyond a maximum are only counted, unless they may match expected ones`()
        throws
    {
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>(mostUnexpected: 2)
        let recorded = Stanza(recorded: try form("<message from='a@x'><body>0</body></message>"), context, tag: 0)
        set.expect(recorded, recorded.lane)
        for number in 1...5 {
            let live = try form("<message from='a@x'><subject>\(number)</subject></message>")
            let stanza = Self.live(live, context, tag: number)
            #expect(set.receive(stanza, stanza.lane, &context) == .unexpected)
        }
        #expect(set.omitted == 2)
        let findings = set.finish()
        guard case .changed(_, let live) = findings.first else {
            Issue.record("\(findings)")
            return
        }
        #expect(findings.count == 3 && live.form?.element.child("subject", .client)?.text == "1", "\(findings)")
    }

    @Test func `a replay's unexpected items beyond the maximum are counted by class`() {
        var findings = ReplayFindings()
        for number in 0..<(ReplayFindings.maximumUnexpected + 3) {
            findings.add(Divergence(number.isMultiple(of: 2) ? .state : .behaviour, .unexpected), of: 0)
        }
        findings.add(Divergence(.behaviour, .missing), of: 0)
        #expect(findings.divergences.count == ReplayFindings.maximumUnexpected + 1)
        #expect(findings.omitted == [.state: 2, .behaviour: 1])
    }

    /// Returns the findings for live stanzas, compared with recorded ones in one window.
    private func run(_ recorded: [String], _ live: [String], closing: Bool = false) throws -> [String] {
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>()
        for (number, xml) in recorded.enumerated() {
            let stanza = Stanza(recorded: try form(xml), context, tag: number)
            set.expect(stanza, stanza.lane)
        }
        if closing { set.close(0) }
        for (number, xml) in live.enumerated() {
            let stanza = Self.live(try form(xml), context, tag: number)
            _ = set.receive(stanza, stanza.lane, &context)
        }
        return set.finish().map {
            switch $0 {
            case .missing(let item): "missing \(item.tag)"
            case .unexpected(let item): "unexpected \(item.tag)"
            case .changed(let recorded, let live): "changed \(recorded.tag) \(live.tag)"
            case .reordered(let recorded, let live): "reordered \(recorded.tag) \(live.tag)"
            case .late(let recorded, let live): "late \(recorded.tag) \(live.tag)"
            }
        }
    }

    private func message(_ text: String, from: String = "a@x/1", id: String = "1") -> String {
        "<message from='\(from)' to='b@x' id='\(id)'><body>\(text)</body></message>"
    }

    @Test func `presence is expected in any order`() throws {
        let (a, b, c) = ("<presence from='a@x/1'/>", "<presence from='b@x/1'/>", "<presence from='c@x/1'/>")
        #expect(try run([a, b, c], [c, a, b]) == [])
        #expect(try run([a, b], [b]) == ["missing 0"])
        #expect(try run([a], [a, a]) == ["unexpected 1"])
    }

    @Test func `messages between the same addresses are expected in order`() throws {
        let (one, two) = (message("one", id: "1"), message("two", id: "2"))
        #expect(try run([one, two], [one, two]) == [])
        #expect(try run([one, two], [two, one]) == ["reordered 0 1"])
        let other = message("three", from: "c@x/1", id: "3")
        #expect(try run([one, other, two], [other, one, two]) == [])
    }

    @Test func `the order also applies to messages that are expected later`() throws {
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>()
        let (one, two) = (try form(message("one", id: "1")), try form(message("two", id: "2")))
        let (first, second) = (
            Stanza(recorded: one, context, tag: 0), Stanza(recorded: two, context, tag: 1)
        )
        set.expect(first, first.lane)
        for form in [two, one] {
            let live = Self.live(form, context, tag: 0)
            _ = set.receive(live, live.lane, &context)
        }
        set.compact()
        set.expect(second, second.lane)
        var outcomes: [ExpectationSet<Stanza>.Outcome] = []
        set.retry(&context) { _, outcome, _ in outcomes.append(outcome) }
        #expect(outcomes == [.reordered(0)])
    }

    @Test func `an answer is matched to its request`() throws {
        let (one, two) = (
            "<iq type='result' id='1'><a xmlns='urn:a'/></iq>", "<iq type='result' id='2'><b xmlns='urn:b'/></iq>"
        )
        #expect(try run([one, two], [two, one]) == [])
        #expect(try run([one], ["<iq type='error' id='1'/>"]) == ["changed 0 0"])
    }

    @Test func `a similar stanza is reported as changed`() throws {
        #expect(try run([message("one")], [message("two")]) == ["changed 0 0"])
        #expect(
            try run(["<presence from='a@x/1'/>"], ["<presence from='a@x/1' type='unavailable'/>"]) == ["changed 0 0"]
        )
        #expect(try run(["<presence from='a@x/1'/>"], [message("one")]) == ["missing 0", "unexpected 0"])
    }

    @Test func `a stanza after its window is late`() throws {
        #expect(try run(["<presence from='a@x/1'/>"], ["<presence from='a@x/1'/>"], closing: true) == ["late 0 0"])
    }

    @Test func `a window is complete when all its stanzas have arrived`() throws {
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>()
        let stanza = Stanza(recorded: try form("<presence from='a@x'/>"), context, tag: 0)
        #expect(set.isComplete(3))
        set.expect(stanza, stanza.lane, window: 3)
        #expect(!set.isComplete(3))
        #expect(set.close(2).isEmpty && set.close(3).map(\.tag) == [0])
        #expect(set.receive(stanza, stanza.lane, &context) == .late(0))
        #expect(set.isComplete(3))
    }

    @Test func `a candidate that does not match binds no values`() throws {
        let recorded = [message("one", id: "1"), message("two", id: "2")]
        #expect(
            try run(recorded, [message("two", id: "b"), message("one", id: "a"), message("three", id: "1")]).count == 2
        )
        #expect(
            try run(recorded + [receipt("1")], [message("one", id: "a"), message("two", id: "b"), receipt("b")]) == [
                "changed 2 2"
            ]
        )
    }

    @Test func `known values are preferred to values that could be bound`() throws {
        func presence(_ resource: String) -> String { "<presence from='a@x/\(resource)'><show>away</show></presence>" }
        func leave(_ resource: String) -> String { "<presence from='a@x/\(resource)' type='unavailable'/>" }
        // First equal texts in another order, then values that only one of two stanzas can have.
        #expect(try run([presence("1"), presence("2")], [presence("2"), presence("1")]) == [])
        #expect(
            try run(
                [leave("1"), presence("1"), presence("2"), receipt("1")],
                [leave("b"), presence("a"), presence("b"), receipt("1")]
            ) == []
        )
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>()
        for number in 1...2 {
            let stanza = Stanza(recorded: try form(presence("\(number)")), context, tag: number)
            set.expect(stanza, stanza.lane)
        }
        try context.bindings.bind("a@x/2", to: "a@x/b", .resource)
        let live = Self.live(try form(presence("b")), context, tag: 0)
        #expect(set.receive(live, live.lane, &context) == .matched(1))
    }

    @Test func `identical pushes bind their values`() throws {
        var context = Stanza.Context()
        var set = ExpectationSet<Stanza>()
        for number in 1...2 {
            let stanza = Stanza(recorded: try form("<presence from='a@x/\(number)'/>"), context, tag: number)
            set.expect(stanza, stanza.lane)
        }
        let live = Self.live(try form("<presence from='a@x/2'/>"), context, tag: 0)
        #expect(set.receive(live, live.lane, &context) == .matched(1))
    }

    private func receipt(_ id: String) -> String {
        "<message from='c@x/1' to='b@x'><received xmlns='urn:xmpp:receipts' id='\(id)'/></message>"
    }
}

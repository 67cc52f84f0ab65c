import TapRecord
import Testing
import XMPPCore

@testable import TapReplay

@Suite struct DivergenceCauseTests {
    private func form(_ xml: String?) throws -> StanzaForm? {
        try xml.map { try #require(StanzaForm(Array($0.utf8), parser: StanzaParser()), "\($0)") }
    }

    /// Creates a divergence at a time, with its subject.
    private func divergence(
        _ code: Divergence.Code,
        at time: Int64,
        recorded: String? = nil,
        live: String? = nil,
        request: String? = nil,
        asked: Int64? = nil
    ) throws -> Divergence {
        func item(_ xml: String) -> Divergence.Item {
            Divergence.Item(session: 1, sequence: UInt64(time), at: time, direction: .recv, text: xml)
        }
        let stanzas = DivergenceSubject.Stanzas(
            recorded: try form(recorded),
            live: try form(live),
            request: try form(request),
            account: try JID(parsing: "romeo@localhost/x")
        )
        var divergence = Divergence(.behaviour, code, recorded: recorded.map(item), live: live.map(item))
        divergence.subject = DivergenceSubject(code, stanzas, [])
        divergence.asked = asked
        if recorded == nil { divergence.after = time }
        return divergence
    }

    private func causes(_ divergences: [Divergence], _ sessions: [String] = ["a"]) -> [DivergenceCause] {
        let cases = sessions.map { DivergenceReport.Case(name: $0, divergences: divergences) }
        return DivergenceCause.causes(of: cases, failing: [.behaviour])
    }

    private static let archive = "<query xmlns='urn:xmpp:mam:2'/>"

    private func features(_ names: [String]) -> String {
        let features = names.map { "<feature var='\($0)'/>" }.joined()
        return
            "<iq type='result' from='localhost'><query xmlns='http://jabber.org/protocol/disco#info'>\(features)</query></iq>"
    }

    private var refusal: String {
        "<iq type='error'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    }

    @Test func `a removed feature is the cause of refused requests and missing messages in all sessions`() throws {
        let gone = try divergence(
            .changed,
            at: 1,
            recorded: features(["urn:xmpp:mam:2", "urn:x"]),
            live: features(["urn:x"])
        )
        let refused = try divergence(
            .changed,
            at: 2,
            recorded: "<iq type='result'><fin xmlns='urn:xmpp:mam:2'/></iq>",
            live: refusal,
            request: "<iq type='set'>\(Self.archive)</iq>"
        )
        let missing = try divergence(.missing, at: 3, recorded: "<message><result xmlns='urn:xmpp:mam:2'/></message>")
        let other = try divergence(.missing, at: 4, recorded: "<message from='juliet@localhost'><body/></message>")
        let found = causes([gone, refused, missing, other], ["a", "b"])
        #expect(
            found.map(\.title) == [
                "localhost no longer offers urn:xmpp:mam:2", "no message with <body/> from juliet@localhost",
            ]
        )
        #expect(found.map(\.count) == [2, 2] && found.map(\.followed.count) == [4, 0])
        #expect(found.first?.sessions == ["a", "b"])
    }

    @Test func `a room's refusal of a client is the cause of presence missing before the answer arrives`() throws {
        let seen = try divergence(
            .missing,
            at: 5,
            recorded: "<presence from='v@muc.localhost/J'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>"
        )
        let refused = try divergence(
            .changed,
            at: 6,
            recorded: "<presence from='v@muc.localhost/J'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>",
            live:
                "<presence from='v@muc.localhost/J' type='error'><error type='auth'><registration-required xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>",
            asked: 4
        )
        let found = causes([seen, refused])
        #expect(found.map(\.title) == ["v@muc.localhost/J refuses the presence: registration-required"])
        #expect(found.first?.followed.count == 1)
    }

    @Test func `a difference in a data form is named by the field's variable`() throws {
        func form(_ fields: [(String, String)]) throws -> StanzaForm {
            let fields = fields.map { "<field var='\($0)'><value>\($1)</value></field>" }.joined()
            let query =
                "<query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data'>\(fields)</x></query>"
            return try #require(try self.form("<iq type='result' from='v@muc.localhost'>\(query)</iq>"))
        }
        func title(_ recorded: StanzaForm, _ live: StanzaForm) -> String {
            var bindings = ValueBindings()
            let differences = StanzaComparison.compare(
                recorded: recorded,
                live: live,
                bindings: &bindings,
                rules: NoiseRules()
            )
            let stanzas = DivergenceSubject.Stanzas(recorded: recorded, live: live)
            return DivergenceSubject(.changed, stanzas, differences).title
        }
        let (open, closed) = (try form([("a", "1"), ("open", "1")]), try form([("open", "0"), ("a", "1")]))
        #expect(title(open, closed) == "v@muc.localhost: the field open differs")
        let long = try form([("b", "1"), ("a", "1"), ("open", "1")])
        #expect(title(open, long) == "v@muc.localhost: the field b differs")
    }

    @Test func `a refused request to the server is not the cause of other differences`() throws {
        let version = "<query xmlns='jabber:iq:version'/>"
        let refused = try divergence(
            .changed,
            at: 1,
            recorded: "<iq type='result' from='localhost'>\(version)</iq>",
            live: refusal,
            request: "<iq type='get' to='localhost'>\(version)</iq>"
        )
        let other = try divergence(
            .missing,
            at: 2,
            recorded: "<iq type='result' from='localhost'><query xmlns='jabber:iq:last'/></iq>",
            request: "<iq type='get' to='localhost'><query xmlns='jabber:iq:last'/></iq>"
        )
        #expect(
            causes([refused, other]).map(\.title) == [
                "localhost refuses <query xmlns='jabber:iq:version'/>: service-unavailable",
                "localhost does not answer <query xmlns='jabber:iq:last'/>",
            ]
        )
    }

    @Test func `each report lists a cause once, and marks the differences in the XML`() throws {
        let xml = "<message><a x='1'/><a x='2'/><body>one</body></message>"
        let live = "<message><a x='1'/><a x='3'/><body>two</body></message>"
        var changed = try divergence(.changed, at: 1, recorded: xml, live: live)
        changed.differences = [
            ValueDifference(path: "message/a[2]/@x", recorded: "2", live: "3", reason: .value),
            ValueDifference(path: "message/body/text()", recorded: "one", live: "two", reason: .value),
        ]
        var report = DivergenceReport(command: "diff", recorded: "a", live: "b", failingClasses: [.behaviour])
        for name in ["one", "two", "three"] { report.add(DivergenceReport.Case(name: name, divergences: [changed])) }
        // Every second piece is marked.
        let page = report.page(hasBoth: true)
        #expect(page.contains(#"["<message><a x='1'/><a x='","2","'/><body>","one","</body></message>"]"#), "\(page)")
        #expect(page.contains(#"["<message><a x='1'/><a x='","3","'/><body>","two","</body></message>"]"#))
        #expect(page.ranges(of: #""differences":"#).count == 1)
        let lines = report.lines(coloured: true)
        #expect(lines.contains { $0.contains("\u{1B}[7m3\u{1B}[27m") }, "\(lines)")
        #expect(lines.last == "3 sessions, 0 items compared: 3 changed; 1 cause")
        #expect(lines.contains { $0.contains("changed (behaviour) RECV, 3 times in one and 2 more") })
        #expect(report.junit().contains("tests=\"1\" failures=\"1\""))
        let json = report.json()
        #expect(json.contains("\"causes\":[{\"title\":"))
        // The value of the second attribute, and the text of the body.
        func marks(of value: String, before end: String) throws -> Range<Int> {
            let place = try #require(xml.firstRange(of: value + end)).lowerBound
            let start = xml[..<place].utf8.count
            return start..<start + value.utf8.count
        }
        let marks = [try marks(of: "2", before: "'"), try marks(of: "one", before: "</body>")]
        let text = marks.map { "{\"start\":\($0.lowerBound),\"end\":\($0.upperBound)}" }.joined(separator: ",")
        #expect(json.contains("\"marks\":[\(text)]"), "\(json)")
    }

    @Test(arguments: [
        (
            "<message type='chat'/>", "<message type='normal'/>", "    - #1                ^^^^",
            "    + #1                ^^^^^^"
        ),
        // Lines that a terminal may wrap, or with characters of two columns, have no carets.
        (
            "<message type='chat'><a x='\(String(repeating: "x", count: 100))'/></message>",
            "<message type='normal'/>", nil, "    + #1                ^^^^^^"
        ),
        (
            "<message type='chat'><body>日本</body></message>", "<message type='normal'/>", nil,
            "    + #1                ^^^^^^"
        ),
    ]) func `plain text marks the changed parts of short lines with carets`(
        _ recorded: String,
        _ live: String,
        _ first: String?,
        _ second: String
    ) throws {
        var changed = try divergence(.changed, at: 1, recorded: recorded, live: live)
        changed.differences = [ValueDifference(path: "message/@type", recorded: "chat", live: "normal", reason: .value)]
        var report = DivergenceReport(command: "diff", recorded: "a", live: "b", failingClasses: [.behaviour])
        report.add(DivergenceReport.Case(name: "one", divergences: [changed]))
        func blank(_ line: String) -> String { String(line.map { $0 == "^" ? $0 : " " }) }
        let carets = report.lines(coloured: false).filter { $0.contains("^") }
        #expect(carets == [first, second].compactMap { $0.map(blank) }, "\(carets)")
        #expect(!report.lines(coloured: true).contains { $0.contains("^") })
    }

    @Test func `optional differences are notes, and do not cause a failure`() throws {
        var missing = try divergence(
            .missing,
            at: 1,
            recorded: "<iq type='get'><query xmlns='jabber:iq:version'/></iq>"
        )
        missing.setOptional(StanzaOption("XEP-0092 §3"))
        var report = DivergenceReport(command: "replay", recorded: "a", live: "b", failingClasses: [.behaviour])
        report.add(DivergenceReport.Case(name: "one", divergences: [missing, missing]))
        report.add([OptionalElement(path: "message/{urn:xmpp:sid:0}stanza-id", isMissing: true, "XEP-0359 §3"): 3])
        #expect(!report.hasFailed && report.causes.isEmpty)
        #expect(
            report.lines(coloured: false) == [
                "note: no iq get with <query xmlns='jabber:iq:version'/> from localhost (XEP-0092 §3), 2 times",
                "note: message/{urn:xmpp:sid:0}stanza-id is absent (XEP-0359 §3), 3 times",
                "1 session, 0 items compared: no differences; 2 notes",
            ]
        )
        #expect(report.junit().contains("failures=\"0\""))
    }
}

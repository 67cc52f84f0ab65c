import TapRecord
import Testing

@testable import TapReplay

@Suite struct ReportRedactorTests {
    private func item(_ text: String) -> Divergence.Item {
        Divergence.Item(session: 1, sequence: 2, at: 0, direction: .recv, text: text)
    }

    private func register(_ password: String, _ user: String = "romeo") -> String {
        "<iq type='result' id='1'><query xmlns='jabber:iq:register'><username>\(user)</username>"
            + "<password>\(password)</password></query></iq>"
    }

    private func changed(_ recorded: String, _ live: String) throws -> Divergence {
        let recording = Recording([(.send, "<iq type='get' id='1'/>"), (.recv, recorded)])
        let other = Recording([(.send, "<iq type='get' id='1'/>"), (.recv, live)])
        return try #require(recording.divergences(from: other).first)
    }

    private func forms(_ divergence: Divergence) -> [String: String] {
        var report = DivergenceReport(command: "diff", recorded: "a", live: "b", failingClasses: [.behaviour])
        report.add(DivergenceReport.Case(name: "session 1", divergences: [divergence]))
        return [
            "text": report.lines(coloured: false).joined(separator: "\n"), "JSON": report.json(),
            "JUnit": report.junit(), "HTML": report.page(hasBoth: true),
        ]
    }

    @Test(arguments: ["text", "JSON", "JUnit", "HTML"])
    func `No report format has a password, neither in items nor in differences`(_ form: String) throws {
        let divergence = try changed(register("hunter2"), register("swordfish", "juliet"))
        #expect(divergence.differences.count == 2)
        let text = try #require(forms(divergence)[form])
        #expect(!text.contains("hunter2") && !text.contains("swordfish"), "\(text)")
        #expect(text.contains("[redacted:password#1]") && text.contains("[redacted:password#2]"))
        // Other values are shown.
        #expect(text.contains("juliet"))
    }

    @Test(arguments: ["text", "JSON", "JUnit", "HTML"])
    func `No report format has login data`(_ form: String) throws {
        let secret = "AGp1bGlldABodW50ZXIy"
        let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>"
        let text = try #require(forms(Divergence(.behaviour, .unexpected, live: item(auth)))[form])
        #expect(!text.contains(secret), "\(text)")
    }

    @Test func `An element that contains a secret is not shown as a value`() throws {
        let redactor = ReportRedactor()
        let divergence = try changed("<iq type='result' id='1'/>", register("hunter2"))
        let shown = redactor.disclosed(divergence)
        #expect(!"\(shown)".contains("hunter2"))
        #expect(divergence.differences.map(\.path) == shown.differences.map(\.path))
    }

    @Test func `An item without secrets is unchanged, whatever namespaces its stream declares`() {
        let redactor = ReportRedactor()
        for text in [
            "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
            "<message><body>Hi</body></message>", "",
        ] {
            #expect(redactor.disclosed(Divergence(.behaviour, .missing, recorded: item(text))).recorded?.text == text)
        }
    }
}

import Foundation
import TapRecord
import Testing
import XMPPCore

@testable import TapReplay

@Suite struct DivergenceReportTests {
    private func item(_ text: String) -> Divergence.Item {
        Divergence.Item(session: 1, sequence: 2, at: 0, direction: .recv, text: text)
    }

    @Test(arguments: [("unexpected", "state"), ("missing", "behaviour"), ("changed", "behaviour")])
    func `an unexpected delayed stanza is a divergence of state`(_ code: String, _ expected: String) throws {
        let delayed =
            "<message from='a@b'><body>x</body><delay xmlns='urn:xmpp:delay' stamp='2026-11-22T10:00:00Z'/></message>"
        var divergence = Divergence(.behaviour, try #require(Divergence.Code(rawValue: code)))
        divergence.classify(StanzaForm(Array(delayed.utf8), parser: StanzaParser()), nil)
        #expect(divergence.divergenceClass.rawValue == expected)
    }

    @Test func `An HTML report escapes stanzas and is self-contained`() throws {
        let attack = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u{0}\u{1B}[2J"
        var report = DivergenceReport(command: attack, recorded: attack, live: attack, failingClasses: [.behaviour])
        var divergence = Divergence(
            .behaviour,
            .changed,
            recorded: item(attack),
            live: item(attack),
            differences: [ValueDifference(path: attack, recorded: attack, live: attack, reason: .value)],
            message: attack
        )
        divergence.scriptStep = Divergence.ScriptStep(file: attack, line: 1)
        report.add(DivergenceReport.Case(name: attack, divergences: [divergence]))
        let page = report.page(hasBoth: true)
        #expect(!page.contains("\u{0}") && !page.contains("\u{1B}"))
        let object = try JSONSerialization.jsonObject(with: Data(page.utf8)) as? [String: Any]
        #expect(object?["recorded"] as? String == attack)
        let junit = report.junit()
        #expect(!junit.contains("<script") && !junit.contains("\u{1B}") && !junit.contains("\u{0}"))
        #expect(!report.lines(coloured: false).joined().contains("\u{1B}"))
    }

    @Test func `Latencies of several reports are combined into one distribution`() throws {
        func report(_ times: [String: [Int64]]) -> DivergenceReport {
            var report = DivergenceReport(command: "replay", recorded: "a", live: "b", failingClasses: [])
            report.add(times: times)
            return report
        }
        var all = report([:])
        #expect(all.latencies.isEmpty && !all.json().contains("latencies"))
        all.addFigures(of: report(["message": Array(1...60), "iq query": [5]]))
        all.addFigures(of: report(["message": Array((61...100).reversed())]))
        all.addFigures(of: report([:]))
        let whole = report(["message": Array(1...100), "iq query": [5]])
        #expect(all.json() == whole.json())
        #expect(all.latencies.map(\.kind) == ["iq query", "message"] && all.latencies.map(\.count) == [1, 100])
        #expect(all.latencies.map(\.maximum) == [5, 100])
        #expect(all.latencies.last?.percentiles.map(\.nanoseconds) == [51, 96, 100])
        #expect(all.latencyLines.first?.hasPrefix("iq query: 1 answers, p50 ") == true, "\(all.latencyLines)")
    }

    @Test func `Every report format shows undecided items`() throws {
        var report = DivergenceReport(command: "diff", recorded: "a", live: "b", failingClasses: [.behaviour])
        report.undecided = 7
        report.add(
            DivergenceReport.Case(
                name: "session 1",
                divergences: [Divergence(.redacted, .undecided, recorded: item("<iq/>"), message: "iq/@x")]
            )
        )
        for form in [report.lines(coloured: false).joined(separator: "\n"), report.junit(), report.page(hasBoth: true)]
        {
            #expect(form.contains("7 items not decided") && form.contains("iq/@x"), "\(form)")
        }
        #expect(report.json().contains("\"undecided\":7") && report.json().contains("\"code\":\"undecided\""))
    }
}

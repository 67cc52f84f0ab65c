import Testing

@testable import TapNetwork
@testable import TapRecord
@testable import XMPPCore
@testable import xmpptap

/// How what a probe has found is shown.
@Suite struct ProbeTextTests {
    private func report(_ change: (inout ProbeReport) -> Void = { _ in }) throws -> ProbeReport {
        var report = ProbeReport(account: try JID(parsing: "juliet@example.org"))
        report.add(.connection, .ok, ["192.0.2.7:5222"], took: 12_000_000)
        change(&report)
        return report
    }

    @Test func `Colours appear only on request`() throws {
        let report = try report()
        let plain = ProbeText(style: .plain).lines(report)
        #expect(plain.first == "juliet@example.org")
        #expect(plain.contains("  ✓ connection           12 ms  192.0.2.7:5222"))
        let painted = ProbeText(style: OutputStyle(paint: Paint(isOn: true))).lines(report)
        #expect(painted.first == "\u{1B}[1mjuliet@example.org\u{1B}[0m")
        #expect(painted.contains { $0.hasPrefix("  \u{1B}[32m✓\u{1B}[0m connection") })
    }

    @Test func `A server's text cannot control the terminal`() throws {
        let report = try report { $0.add(.server, .ok, ["Evil\u{1B}[2J\u{9B}5n"]) }
        let lines = ProbeText(style: .plain).lines(report)
        #expect(lines.contains { $0.contains("Evil") })
        #expect(!lines.contains { $0.contains("\u{1B}") || $0.contains("\u{9B}") })
    }

    @Test func `Long texts are wrapped, and a rule's name is not split`() {
        let text = ProbeText.sentence(String(repeating: "word ", count: 5) + "end", rule: "RFC 6120 §5.3.1")
        #expect(Columns.wrapped(text, to: 30) == ["word word word word word end", "(RFC 6120 §5.3.1)"])
        #expect(Columns.wrapped("    set in", to: 20) == ["    set in"])
        #expect(Columns.wrapped("", to: 20) == [""])
        #expect(Columns.wrapped("muchtoolongforit", to: 5) == ["mucht", "oolon", "gfori", "t"])
    }

    @Test func `A server that was not reached has no grade`() throws {
        let report = try report()
        #expect(report.grades.isEmpty && report.grade == nil)
        #expect(ProbeText(style: .plain).lines(report).last?.contains("the probe did not complete") == true)
    }

    @Test func `JSON has one object per line, and indented lines are joined to the line before`() throws {
        let report = try report { $0.add(.certificate, .ok, ["for example.org", "SHA-256 AA:", "        BB"]) }
        let lines = ProbeJSON(report: report).lines
        #expect(lines.count == 4)
        #expect(lines[0].hasPrefix(#"{"kind":"probe","account":"juliet@example.org","tool":"xmpptap "#))
        #expect(
            lines[1] == #"{"kind":"step","step":"connection","outcome":"ok","text":"192.0.2.7:5222","duration":0.012}"#
        )
        #expect(
            lines[2] == #"{"kind":"step","step":"certificate","outcome":"ok","text":"for example.org; SHA-256 AA:BB"}"#
        )
        #expect(lines[3] == #"{"kind":"result","outcome":"failed"}"#)
    }
}

import TapRecord
import Testing

@testable import xmpptap

@Suite struct OutputStyleTests {
    @Test func `rows have a mark and a name, and are wrapped below them`() {
        let style = OutputStyle(width: 30)
        #expect(
            style.rows(.warned, "one two three four five", name: "names", column: 10) == [
                "!  names     one two three", "             four five",
            ]
        )
        // A name that is longer than its column has a row.
        #expect(
            style.rows(.done, "one", name: "example.org", column: 8) == ["✓  example.org", "           one"]
        )
        #expect(style.rule("漢字") == "── 漢字 ──────────────────────")
        #expect(Columns.count(style.rule(String(repeating: "x", count: 99))) == 30)
    }

    @Test func `a result of doctor is a line in a pipe, and rows on a terminal`() {
        let result = CheckResult.note("logs", "cannot write to /: put them elsewhere\u{1B}[2J")
        #expect(result.lines() == ["note  logs         cannot write to /: put them elsewhere\\u{1b}[2J"])
        for width in [20, 30, 39, 40, 60, 100] {
            let style = OutputStyle(width: width, paint: Paint(isOn: true))
            let plain = result.lines(style).map { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "") }
            #expect(plain[0].hasPrefix("!  logs"))
            #expect(plain.allSatisfy { Columns.count($0) <= width && !$0.utf8.contains(0x1B) }, "\(plain)")
        }
    }

    @Test func `colours appear as requested`() {
        #expect(Paint(isOn: true)("x", .red) == "\u{1B}[1;31mx\u{1B}[0m")
        #expect(Paint(isOn: true)("x", nil) == "x" && Paint(isOn: true)("", .red).isEmpty)
        #expect(Paint(isOn: false)("x", .red) == "x")
        #expect(ColourChoice.always.isColoured(in: Surroundings(isTerminal: false, wantsColour: false)))
    }
}

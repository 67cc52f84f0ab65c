internal import TapCore
internal import TapNetwork

/// A probe's ladder and that of a recorded client, side by side.
struct ProbeComparison {
    let path: RecordedPaths.Path
    let comparison: LadderComparison
    /// Whether the probe got to the top: else there is no path that works to compare with.
    let isReady: Bool

    init(_ report: ProbeReport, _ path: RecordedPaths.Path) {
        self.path = path
        comparison = LadderComparison(working: report.rungs, other: path.rungs)
        isReady = report.outcome == .ready
    }

    private var title: String { "session \(path.number)\(path.who.map { ", \($0)" } ?? "")" }

    /// Where the client left the path that works, as a sentence.
    var sentence: String {
        guard isReady else {
            return "the probe did not get to the top itself, so that there is no path to compare with"
        }
        guard let difference = comparison.difference else {
            return path.isReady ? "the client went the same way, and got there" : "the client went the same way so far"
        }
        return path.isReady ? "\(difference); it got there all the same" : difference
    }

    // MARK: Text

    /// For people.
    func lines(_ paint: Paint) -> [String] {
        let width = 44
        var lines = ["", "  \(paint("the probe".padded(to: width), .bold))\(paint(Console.escaped(title), .bold))"]
        for row in comparison.rows {
            let working = Self.cell(row.working, width - 2, paint)
            let other = Self.cell(row.other, 0, paint)
            let mark = row.isDifference ? paint("≠ ", .red) : "  "
            lines.append("  \(working)\(mark)\(other)\(row.isDifference ? paint("  ← here they part", .red) : "")")
        }
        lines.append("")
        let isBad = !path.isReady
        lines += ProbeStory.wrapped(Console.escaped(sentence), to: 98).enumerated().map { number, line in
            "\(number == 0 ? (isBad ? paint("✗", .red) : paint("✓", .green)) : " ") \(paint(line, .bold))"
        }
        guard let verdict = path.verdict else { return lines }
        let more = [ProbeStory.sentence(verdict.finding, rule: verdict.rule), "try: \(verdict.advice)"]
        return lines + more.flatMap { ProbeStory.wrapped(Console.escaped($0), to: 98) }.map { "  \($0)" }
    }

    private static func cell(_ rung: LadderComparison.Rung?, _ width: Int, _ paint: Paint) -> String {
        guard let rung else { return String(repeating: " ", count: max(0, width)) }
        let (mark, colour): (String, Paint.Colour) =
            switch rung.outcome {
            case "ok": ("✓", .green)
            case "failed": ("✗", .red)
            default: ("–", .dim)
            }
        let words = Console.escaped(rung.words)
        return "\(paint(mark, colour)) \(words.padded(to: width - 2))"
    }

    // MARK: JSON

    /// For programs; see ``ProbeJSON``.
    var json: [String] {
        let rungs = comparison.rows.map { row in
            ProbeJSON.object("rung") {
                if let rung = row.working { $0.field("probe", "\(rung.words): \(rung.outcome)") }
                if let rung = row.other { $0.field("client", "\(rung.words): \(rung.outcome)") }
                $0.field("differs", row.isDifference)
            }
        }
        return rungs + [
            ProbeJSON.object("comparison") {
                $0.field("session", path.number)
                $0.field("ready", path.isReady)
                $0.field("text", sentence)
            }
        ]
    }
}

internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord

/// The login steps of a probe and of a recorded client, side by side.
struct ProbeComparison {
    let path: SessionTimelines.Timeline
    let comparison: TimelineComparison
    /// Whether the probe's login completed; otherwise there is nothing to compare with.
    let isReady: Bool

    init(_ report: ProbeReport, _ path: SessionTimelines.Timeline) {
        self.path = path
        comparison = TimelineComparison(working: report.timeline, other: path.steps)
        isReady = report.outcome == .ready
    }

    private var title: String { "session \(path.number)\((path.owner.jid ?? path.owner.user).map { ", \($0)" } ?? "")" }

    /// The first difference, as a sentence.
    var sentence: String {
        guard isReady else {
            return "the probe's own login failed, so there is nothing to compare with"
        }
        guard let difference = comparison.difference else {
            return path.isReady
                ? "the client took the same steps, and its login completed" : "the client took the same steps so far"
        }
        return path.isReady ? "\(difference); its login completed nevertheless" : difference
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
            lines.append("  \(working)\(mark)\(other)\(row.isDifference ? paint("  ← first difference", .red) : "")")
        }
        lines.append("")
        let isBad = !path.isReady
        lines += ProbeText.wrapped(Console.escaped(sentence), to: 98).enumerated().map { number, line in
            "\(number == 0 ? (isBad ? paint("✗", .red) : paint("✓", .green)) : " ") \(paint(line, .bold))"
        }
        guard let diagnosis = path.diagnosis else { return lines }
        let more =
            [ProbeText.sentence("\(diagnosis.finding)", rule: diagnosis.rule)]
            + (diagnosis.advice.map { ["try: \($0)"] } ?? [])
        return lines + more.flatMap { ProbeText.wrapped(Console.escaped($0), to: 98) }.map { "  \($0)" }
    }

    private static func cell(_ step: TimelineComparison.Step?, _ width: Int, _ paint: Paint) -> String {
        guard let step else { return String(repeating: " ", count: max(0, width)) }
        let (mark, colour): (String, Paint.Colour) =
            switch step.result {
            case .ok: ("✓", .green)
            case .failed: ("✗", .red)
            case .skipped: ("–", .dim)
            }
        let words = Console.escaped(step.words)
        return "\(paint(mark, colour)) \(words.padded(to: width - 2))"
    }

    // MARK: JSON

    /// For programs; see ``ProbeJSON``.
    var json: [String] {
        let steps = comparison.rows.map { row in
            ProbeJSON.object("comparison-step") {
                if let step = row.working { $0.field("probe", "\(step.words): \(step.result.rawValue)") }
                if let step = row.other { $0.field("client", "\(step.words): \(step.result.rawValue)") }
                $0.field("differs", row.isDifference)
            }
        }
        return steps + [
            ProbeJSON.object("comparison") {
                $0.field("session", path.number)
                $0.field("ready", path.isReady)
                $0.field("text", sentence)
            }
        ]
    }
}

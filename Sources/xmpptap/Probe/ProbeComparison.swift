internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord

/// A comparison of a probe's login steps with those of a recorded client.
struct ProbeComparison {
    let path: SessionTimelines.Timeline
    let comparison: TimelineComparison
    /// Whether the probe's login completed; if not, there is nothing to compare with.
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

    /// Returns the text for users.
    func lines(_ style: OutputStyle) -> [String] {
        let columns = style.width ?? ProbeText.usualWidth
        let paint = style.paint
        // Two columns; the first is as wide as its text usually is.
        let width = min(44, max(10, columns / 2))
        var lines = ["", "  \(paint("the probe".padded(to: width), .bold))\(paint(Console.escaped(title), .bold))"]
        let remark = columns < 80 ? "" : "  ← first difference"
        for row in comparison.rows {
            let working = Self.cell(row.working, width - 2, in: width - 2, paint)
            let other = Self.cell(row.other, 0, in: columns - width - 2 - Columns.count(remark), paint)
            let mark = row.isDifference ? paint("≠ ", .red) : "  "
            lines.append("  \(working)\(mark)\(other)\(row.isDifference ? paint(remark, .red) : "")")
        }
        lines.append("")
        let isBad = !path.isReady
        lines += Columns.wrapped(Console.escaped(sentence), to: columns - 2).enumerated().map { number, line in
            "\(number == 0 ? (isBad ? paint("✗", .red) : paint("✓", .green)) : " ") \(paint(line, .bold))"
        }
        guard let diagnosis = path.diagnosis else { return lines.map(style.drawn) }
        let more =
            [ProbeText.sentence("\(diagnosis.finding)", rule: diagnosis.rule)]
            + (diagnosis.advice.map { ["try: \($0)"] } ?? [])
        lines += more.flatMap { Columns.wrapped(Console.escaped($0), to: columns - 2) }.map { "  \($0)" }
        return lines.map(style.drawn)
    }

    /// Returns the cell of a step, `width` columns wide; its text is cut to fit into `room` columns.
    private static func cell(_ step: TimelineComparison.Step?, _ width: Int, in room: Int, _ paint: Paint) -> String {
        guard let step else { return String(repeating: " ", count: max(0, width)) }
        let mark: OutputStyle.Mark =
            switch step.result {
            case .ok: .done
            case .failed: .failed
            case .skipped: .skipped
            }
        let text = Columns.cut(Console.escaped(step.title), to: max(1, room - 2))
        return "\(paint(mark.rawValue, mark.colour)) \(text.padded(to: width - 2))"
    }

    // MARK: JSON

    /// The JSON lines for programs; see ``ProbeJSON``.
    var json: [String] {
        let steps = comparison.rows.map { row in
            ProbeJSON.object("comparison-step") {
                if let step = row.working { $0.field("probe", "\(step.title): \(step.result.rawValue)") }
                if let step = row.other { $0.field("client", "\(step.title): \(step.result.rawValue)") }
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

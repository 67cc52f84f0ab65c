internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

/// A probe's report as JSON, one object per line, distinguished by `kind`.
///
/// | kind | fields |
/// |---|---|
/// | `probe` | first: `account`, `tool`, `time` |
/// | `step` | `step`, `outcome` (`ok`, `note`, `failed`, `skipped`), `text`, `duration` (seconds), `details` |
/// | `grade` | `subject`, `grade` (`A`, `B`, `C`, `F`; absent if unknown), `text`, `rule` |
/// | `comparison-step` | of a comparison: `probe`, `client`, `differs` |
/// | `comparison` | `session`, `ready`, `text` |
/// | `result` | last: `outcome` (`ready`, `offered`, `failed`), `grade`, `jid`, `duration`, and if it failed `cause`, `step`, `side`, `rule`, `text`, `try` |
struct ProbeJSON {
    let report: ProbeReport
    /// The comparison with a recorded client, if requested.
    var comparison: ProbeComparison?

    var lines: [String] {
        [header] + report.steps.map(Self.line) + report.grades.map(Self.line) + (comparison?.json ?? []) + [diagnosis]
    }

    private var header: String {
        Self.object("probe") {
            $0.field("account", report.account.description)
            $0.field("tool", "xmpptap \(Version.program)")
            $0.field("time", report.began.text)
        }
    }

    private static func line(_ step: ProbeReport.Step) -> String {
        object("step") {
            $0.field("step", step.name.rawValue)
            $0.field("outcome", step.outcome.rawValue)
            $0.field("text", text(of: step))
            if let duration = step.duration { $0.field("duration", seconds: duration) }
            if !step.details.isEmpty { $0.field("details", step.details) }
        }
    }

    /// Returns the lines of a step, joined to one; an indented line continues the previous one.
    private static func text(of step: ProbeReport.Step) -> String {
        step.lines.dropFirst().reduce(step.lines.first ?? "") { text, line in
            line.hasPrefix(" ") ? text + line.drop { $0 == " " } : "\(text); \(line)"
        }
    }

    private static func line(_ grade: ProbeGrade) -> String {
        object("grade") {
            $0.field("subject", grade.subject.rawValue)
            if let letter = grade.letter { $0.field("grade", letter.rawValue) }
            $0.field("text", grade.reason)
            $0.field("rule", grade.rule)
        }
    }

    private var diagnosis: String {
        Self.object("result") {
            $0.field("outcome", "\(report.outcome)")
            if let grade = report.grade { $0.field("grade", grade.rawValue) }
            if let jid = report.jid { $0.field("jid", jid) }
            if let time = report.timeToReady { $0.field("duration", seconds: time) }
            guard let diagnosis = report.diagnosis else { return }
            $0.field("cause", diagnosis.cause.rawValue)
            $0.field("step", diagnosis.loginStep.rawValue)
            $0.field("side", diagnosis.side.rawValue)
            if let rule = diagnosis.rule { $0.field("rule", rule) }
            $0.field("text", "\(diagnosis.finding)")
            $0.field("try", diagnosis.probeAdvice(isDirect: report.isDirect))
        }
    }

    static func object(_ kind: String, _ content: (inout LineBuffer) -> Void) -> String {
        LineBuffer.object {
            $0.field("kind", kind)
            content(&$0)
        }
    }
}

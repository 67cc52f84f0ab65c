internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

/// A probe's report as text: steps, grades and diagnosis.
struct ProbeText: Sendable {
    /// Maximum width of a line without a terminal; longer text is wrapped.
    static let usualWidth = 100

    let style: OutputStyle

    private var paint: Paint { style.paint }
    private var width: Int { style.width ?? Self.usualWidth }
    /// Whether the terminal is too narrow for text beside names.
    private var isNarrow: Bool { width < 64 }
    /// The column in which the text of a step begins.
    private var indent: Int { isNarrow ? 4 : 32 }
    /// The column in which the text of a grade begins.
    private var gradeIndent: Int { isNarrow ? 4 : 27 }

    func head(_ account: JID) -> [String] { drawn([paint(Console.escaped(account.description), .bold), ""]) }

    private func drawn(_ lines: [String]) -> [String] { lines.map(style.drawn) }

    /// Returns texts with a head, which is in the line of the first text, or above it on a narrow terminal.
    private func lines(_ head: String, _ texts: [String], indent: Int) -> [String] {
        let blank = String(repeating: " ", count: indent)
        let lines = drawn(texts.enumerated().map { ($0 == 0 && !isNarrow ? head : blank) + $1 })
        return isNarrow ? [style.drawn(head)] + lines : lines
    }

    /// Returns the part after the steps: grades and diagnosis.
    func rest(_ report: ProbeReport) -> [String] {
        let grades = report.grades
        let rows = grades.isEmpty ? [] : [""] + grades.flatMap(row)
        return rows + [""] + drawn(diagnosis(report))
    }

    func lines(_ report: ProbeReport) -> [String] {
        head(report.account) + report.steps.flatMap(lines) + rest(report)
    }

    // MARK: Timeline

    func lines(_ step: ProbeReport.Step) -> [String] {
        let mark = Self.mark(step.outcome)
        let name = step.name.rawValue.replacing("-", with: " ").padded(to: 17)
        let time = step.duration.map(LineBuffer.duration) ?? ""
        let head =
            "  \(paint(mark.rawValue, mark.colour)) \(name) \(paint(String(repeating: " ", count: max(0, 8 - time.count)) + time, .dim))"
            + "  "
        let texts = step.lines.flatMap { Columns.wrapped(Console.escaped($0), to: width - indent) }
        return lines(
            head,
            texts.enumerated().map { step.outcome == .failed && $0 == 0 ? paint($1, .red) : $1 },
            indent: indent
        )
    }

    private static func mark(_ outcome: ProbeReport.Step.Outcome) -> OutputStyle.Mark {
        switch outcome {
        case .ok: .done
        case .note: .warned
        case .failed: .failed
        case .skipped: .skipped
        }
    }

    // MARK: Grades

    private func row(_ grade: ProbeGrade) -> [String] {
        let name = Self.name(of: grade.subject).padded(to: 20)
        let head = "  \(paint(grade.letter?.rawValue ?? "?", Self.colour(of: grade.letter)))  \(name)  "
        let text = Self.sentence(Console.escaped(grade.reason), rule: grade.rule)
        return lines(head, Columns.wrapped(text, to: width - gradeIndent), indent: gradeIndent)
    }

    static func name(of subject: ProbeGrade.Subject) -> String {
        switch subject {
        case .tlsVersion: "TLS version"
        case .requiredTLS: "required TLS"
        case .directTLS: "direct TLS"
        default: subject.rawValue.replacing("-", with: " ")
        }
    }

    private static func colour(of letter: ProbeGrade.Letter?) -> Colour {
        switch letter {
        case .a: .green
        case .b, .c: .yellow
        case .f: .red
        case nil: .dim
        }
    }

    // MARK: Diagnosis

    private func diagnosis(_ report: ProbeReport) -> [String] {
        let who = Console.escaped(report.account.description)
        switch report.outcome {
        case .ready:
            let time = report.timeToReady.map { ", ready after \(LineBuffer.duration($0))" } ?? ""
            return statement(.done, "\(who) can log in", time) + weakest(report)
        case .offered:
            let statementText = "the server can be reached and offers what clients need"
            return statement(.done, statementText, "; use --password-file to test the login too") + weakest(report)
        case .failed:
            guard let diagnosis = report.diagnosis else { return statement(.failed, "the probe did not complete") }
            let title = diagnosis.isOfNetwork ? "cannot reach a server of \(who)" : "\(who) cannot log in"
            let lines = [
                Self.sentence(Console.escaped("\(diagnosis.finding)"), rule: diagnosis.rule), diagnosis.place,
                "try: \(Console.escaped(diagnosis.probeAdvice(isDirect: report.isDirect)))",
            ]
            return statement(.failed, "\(title): \(diagnosis.step) failed")
                + lines.enumerated().flatMap { number, lines in
                    Columns.wrapped(lines, to: width - 2).map { "  \(paint($0, number == 0 ? .red : nil))" }
                }
        }
    }

    /// Returns the lines of the result: `text` in bold, followed by `more`.
    private func statement(_ mark: OutputStyle.Mark, _ text: String, _ more: String = "") -> [String] {
        let lines = Columns.wrapped(text + more, to: width - 2)
        let isWhole = lines[0].hasPrefix(text)
        let first = isWhole ? paint(text, .bold) + lines[0].dropFirst(text.count) : paint(lines[0], .bold)
        return ["\(paint(mark.rawValue, mark.colour)) \(first)"] + lines.dropFirst().map { "  \($0)" }
    }

    /// Returns the overall grade and its reason.
    private func weakest(_ report: ProbeReport) -> [String] {
        guard let worst = report.grade else { return [] }
        let subjects = report.grades.filter { $0.letter == worst }.map { Self.name(of: $0.subject) }
        let because = worst == .a ? "in all checks" : "for \(subjects.joined(separator: ", "))"
        return Columns.wrapped(because, to: width - 10).enumerated().map { number, line in
            (number == 0 ? "  grade \(paint(worst.rawValue, Self.colour(of: worst))) " : "          ") + line
        }
    }

    // MARK: Text

    /// Returns a reason, followed by its rule, which is not broken across lines.
    static func sentence(_ reason: String, rule: String?) -> String {
        rule.map { "\(reason) (\($0.replacing(" ", with: "\u{A0}")))" } ?? reason
    }
}

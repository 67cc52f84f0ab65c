internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

/// A probe's report as text: the timeline, the grades, the diagnosis.
struct ProbeText: Sendable {
    /// Columns of a line; longer text is wrapped.
    private static let width = 100
    /// The column where text begins.
    private static let indent = 32
    /// The same for grades.
    private static let gradeIndent = 27

    let paint: Paint

    func head(_ account: JID) -> [String] { [paint(Console.escaped(account.description), .bold), ""] }

    /// The part after the steps: grades and diagnosis.
    func rest(_ report: ProbeReport) -> [String] {
        let grades = report.grades
        let rows = grades.isEmpty ? [] : [""] + grades.flatMap(row)
        return rows + [""] + diagnosis(report)
    }

    func lines(_ report: ProbeReport) -> [String] {
        head(report.account) + report.steps.flatMap(lines) + rest(report)
    }

    // MARK: Timeline

    func lines(_ step: ProbeReport.Step) -> [String] {
        let (mark, colour) = Self.mark(step.outcome)
        let name = step.name.rawValue.replacing("-", with: " ").padded(to: 17)
        let time = step.duration.map(LineBuffer.duration) ?? ""
        let head =
            "  \(paint(mark, colour)) \(name) \(paint(String(repeating: " ", count: max(0, 8 - time.count)) + time, .dim))"
            + "  "
        var rows: [String] = []
        for line in step.lines.flatMap({ Self.wrapped(Console.escaped($0)) }) {
            let text = step.outcome == .failed ? paint(line, rows.isEmpty ? .red : nil) : line
            rows.append((rows.isEmpty ? head : String(repeating: " ", count: Self.indent)) + text)
        }
        return rows
    }

    private static func mark(_ outcome: ProbeReport.Step.Outcome) -> (String, Paint.Colour) {
        switch outcome {
        case .ok: ("✓", .green)
        case .note: ("!", .yellow)
        case .failed: ("✗", .red)
        case .skipped: ("–", .dim)
        }
    }

    // MARK: Grades

    private func row(_ grade: ProbeGrade) -> [String] {
        let name = Self.name(of: grade.subject).padded(to: Self.gradeIndent - 7)
        let head = "  \(paint(grade.letter?.rawValue ?? "?", Self.colour(of: grade.letter)))  \(name)  "
        let lines = Self.wrapped(
            Self.sentence(Console.escaped(grade.reason), rule: grade.rule),
            to: Self.width - Self.gradeIndent
        )
        return lines.enumerated().map { number, line in
            (number == 0 ? head : String(repeating: " ", count: Self.gradeIndent)) + line
        }
    }

    static func name(of subject: ProbeGrade.Subject) -> String {
        switch subject {
        case .tlsVersion: "TLS version"
        case .requiredTLS: "required TLS"
        case .directTLS: "direct TLS"
        default: subject.rawValue.replacing("-", with: " ")
        }
    }

    private static func colour(of letter: ProbeGrade.Letter?) -> Paint.Colour {
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
            return ["\(paint("✓", .green)) \(paint("\(who) can log in", .bold))\(time)"] + weakest(report)
        case .offered:
            let words = "the server can be reached and offers what clients need"
            return ["\(paint("✓", .green)) \(paint(words, .bold)); use --password-file to test the login too"]
                + weakest(report)
        case .failed:
            guard let diagnosis = report.diagnosis else {
                return ["\(paint("✗", .red)) \(paint("the probe did not complete", .bold))"]
            }
            let title = diagnosis.isOfNetwork ? "cannot reach a server of \(who)" : "\(who) cannot log in"
            let words = [
                Self.sentence(Console.escaped("\(diagnosis.finding)"), rule: diagnosis.rule), diagnosis.place,
                "try: \(Console.escaped(diagnosis.probeAdvice(isDirect: report.isDirect)))",
            ]
            return ["\(paint("✗", .red)) \(paint("\(title): \(diagnosis.step) failed", .bold))"]
                + words.enumerated().flatMap { number, words in
                    Self.wrapped(words, to: Self.width - 2).map { "  \(paint($0, number == 0 ? .red : nil))" }
                }
        }
    }

    /// The overall grade and its reason.
    private func weakest(_ report: ProbeReport) -> [String] {
        guard let worst = report.grade else { return [] }
        let subjects = report.grades.filter { $0.letter == worst }.map { Self.name(of: $0.subject) }
        let because = worst == .a ? "in all checks" : "for \(subjects.joined(separator: ", "))"
        return ["  grade \(paint(worst.rawValue, Self.colour(of: worst))) \(because)"]
    }

    // MARK: Words

    /// A reason with its rule, which is not wrapped.
    static func sentence(_ reason: String, rule: String?) -> String {
        rule.map { "\(reason) (\($0.replacing(" ", with: "\u{A0}")))" } ?? reason
    }

    /// Wraps a text between words.
    static func wrapped(_ text: String, to width: Int = Self.width - Self.indent) -> [String] {
        var lines: [String] = []
        var line = text.prefix { $0 == " " }.description
        for word in text.split(separator: " ") {
            let isFirst = line.allSatisfy { $0 == " " }
            if !isFirst, line.count + 1 + word.count > width {
                lines.append(line)
                line = String(word)
            } else {
                line += (isFirst ? "" : " ") + word
            }
        }
        return (lines + [line]).map { $0.replacing("\u{A0}", with: " ") }
    }
}

extension String {
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

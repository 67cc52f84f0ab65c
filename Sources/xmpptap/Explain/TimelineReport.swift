internal import TapDiagnosis
internal import TapRecord

/// The login timelines of the sessions in a file, as text. For each session, it first says whether the login completed
/// or why it failed, and why the session ended; the steps follow.
struct TimelineReport {
    var timelines: SessionTimelines
    var style = OutputStyle.plain

    /// Returns the lines, with control characters escaped.
    func lines() -> [String] {
        var lines: [String] = []
        for session in timelines.all {
            if !lines.isEmpty { lines.append("") }
            let ofRun = timelines.runCount > 1 ? " of run \(session.run)" : ""
            let earlier = session.resumes.map { ", resumed session \($0)" } ?? ""
            let who = Self.who(session) + earlier
            let steps = session.steps.compactMap { Step($0, since: session.began) }
            if style.width == nil {
                lines.append(Console.escaped("session \(session.number)\(ofRun), \(who)"))
                lines += Self.outcome(session).map { statement in
                    "  " + style.paint(style.wrapped(Console.escaped(statement.text)).joined(), statement.colour)
                }
                lines += steps.isEmpty ? ["  " + Self.noSteps] : table(steps)
            } else {
                lines.append(style.rule("\(session.number)\(ofRun) · \(who)"))
                lines += Self.outcome(session).flatMap { style.rows($0.mark, $0.text, colour: $0.colour) }
                lines.append("")
                lines += steps.isEmpty ? style.rows(.none, Self.noSteps) : grid(steps)
            }
        }
        return lines
    }

    private static let noSteps = "no login steps recorded; record with --capture or --log verbose"

    private static func who(_ session: SessionTimelines.Timeline) -> String {
        let owner = session.owner
        if let jid = owner.jid { return jid }
        let address = owner.remote ?? (owner.user == nil ? nil : owner.domain) ?? "an unknown address"
        let isServer = session.end?.details?["kind"]?.text == "server"
        return "\(owner.user ?? (isServer ? "the initiating server" : "the client")) at \(address)"
    }

    // MARK: Outcome

    /// A sentence about a session.
    private struct Statement {
        var mark: OutputStyle.Mark
        var text: String
        var colour: Colour?
    }

    /// Returns the outcome of the login and the end of the session. Without a diagnosis, the login completed, or the
    /// recording does not show its outcome.
    private static func outcome(_ session: SessionTimelines.Timeline) -> [Statement] {
        var all: [Statement] = []
        if let diagnosis = session.diagnosis {
            all += statements(diagnosis)
        } else if session.isReady {
            let ready = session.steps.last { $0.details?[LoginStep.code]?.text == LoginStep.Name.ready.rawValue }
            let time = ready?.roundTrip.map { " after \(LineBuffer.duration($0))" } ?? ""
            all.append(Statement(mark: .done, text: "ready\(time)", colour: .green))
        } else if session.end?.details?[Record.Detail.closeReason]?.text ?? "unrecorded" == "unrecorded" {
            let last = session.steps.last { $0.details?[LoginStep.outcomeDetail]?.text == "ok" }
            let place = last?.details?[LoginStep.code].map { ", after \($0.text)" } ?? ""
            // The recording does not show whether the login failed.
            all.append(Statement(mark: .neutral, text: "the recording ends here\(place): no verdict"))
        }
        // Client logs may lack times.
        let began = session.time.nanoseconds == 0 ? "" : "began \(session.time.stamp(in: .system)), "
        all.append(Statement(mark: .neutral, text: began + (session.end.map(ending) ?? "its end is not in the file")))
        return all
    }

    private static func ending(_ end: Record) -> String {
        let reason = end.details?[Record.Detail.closeReason].map { " (\($0.text))" } ?? ""
        return "ended after \(LineBuffer.duration(end.roundTrip ?? 0)): \(end.message ?? "no reason recorded")\(reason)"
    }

    /// Returns the diagnosis: the finding, the side at fault, and the advice.
    private static func statements(_ diagnosis: LoginDiagnosis) -> [Statement] {
        let rule = diagnosis.rule.map { " (\($0.replacing(" ", with: "\u{A0}")))" } ?? ""
        let party = diagnosis.party ?? diagnosis.side.rawValue
        let place =
            switch diagnosis.isProxyTheCause {
            case true?: "cause: xmpptap"
            case false?: "cause: \(party), not xmpptap"
            case nil: "cause: \(party); the recording does not show whether a proxy contributed"
            }
        let failure = "failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)"
        return [Statement(mark: .failed, text: failure, colour: .red), Statement(mark: .none, text: place)]
            + diagnosis.certificates.map { Statement(mark: .none, text: "certificate of \($0)") }
            + (diagnosis.advice.map { [Statement(mark: .none, text: "try: \($0)", colour: .bold)] } ?? [])
    }

    // MARK: The steps

    /// A row of the timeline: one step.
    private struct Step {
        let name: String
        let began: String
        let duration: String
        let result: String
        /// The reason why the step failed or was skipped.
        let reason: String
        let details: String

        init?(_ step: Record, since start: Int64) {
            guard let name = step.details?[LoginStep.code]?.text else { return nil }
            let duration = step.roundTrip ?? 0
            // The step `ready` takes no time: its recorded duration is that of the whole login.
            let isTop = name == LoginStep.Name.ready.rawValue
            self.name = Console.escaped(name)
            began = LineBuffer.duration(step.monotonic &- (isTop ? 0 : duration) &- start)
            self.duration = LineBuffer.duration(duration)
            result = Console.escaped(step.details?[LoginStep.outcomeDetail]?.text ?? "")
            reason = Console.escaped(
                [step.condition, step.details?[LoginStep.reasonDetail]?.text].compactMap { $0 }.joined(separator: ", ")
            )
            details = Console.escaped(
                (step.details?.entries ?? []).filter { !LoginStep.messageDetails.contains($0.name) }
                    .map { "\($0.name) \($0.value.text)" }.joined(separator: "; ")
            )
        }

        var outcome: String {
            [result, reason].filter { !$0.isEmpty }.joined(separator: ", ") + (details.isEmpty ? "" : " (\(details))")
        }

        /// The cells of the columns before the outcome.
        var cells: [String] { [name, began, duration] }

        var mark: OutputStyle.Mark {
            switch LoginStep.Result(rawValue: result) {
            case .ok: .done
            case .failed: .failed
            case .skipped: .skipped
            case nil: .neutral
            }
        }
    }

    private static let header = ["step", "at", "took"]

    private static func widths(_ steps: [Step]) -> [Int] {
        header.indices.map { column in
            ([header] + steps.map(\.cells)).map { Columns.count($0[column]) }.max() ?? 0
        }
    }

    /// Returns a row's name, followed by right-aligned figures.
    private static func head(_ cells: [String], _ widths: [Int]) -> String {
        var line = Columns.padded(cells[0], to: widths[0])
        for column in 1..<cells.count {
            line += "  " + String(repeating: " ", count: max(0, widths[column] - Columns.count(cells[column])))
            line += cells[column]
        }
        return line
    }

    /// Returns a table with a header, in columns as wide as necessary.
    private func table(_ steps: [Step]) -> [String] {
        let widths = Self.widths(steps)
        return ["  \(Self.head(Self.header, widths))  outcome"]
            + steps.map { "  \(Self.head($0.cells, widths))  \($0.outcome)" }
    }

    /// Returns the table for a terminal: marks replace the results. Text that does not fit is cut, except the reason of
    /// a failed step.
    private func grid(_ steps: [Step]) -> [String] {
        let width = style.width ?? 80
        // On narrow terminals, omit the times.
        let widths = Array(Self.widths(steps).prefix(width < 48 ? 1 : 3))
        let header = Self.head(Array(Self.header.prefix(widths.count)), widths)
        let column = OutputStyle.markColumns + Columns.count(header) + 2
        // On even narrower ones, write the text below the name.
        let isStacked = width - column < 16
        let indent = isStacked ? OutputStyle.markColumns : column
        let title = String(repeating: " ", count: OutputStyle.markColumns) + (isStacked ? "step" : "\(header)  outcome")
        return [style.drawn(style.paint(title, .dim))]
            + steps.flatMap { step in
                let head = Self.head(Array(step.cells.prefix(widths.count)), widths)
                let mark = style.paint(step.mark.rawValue, step.mark.colour)
                let first = "\(mark)  \(style.paint(head, step.mark == .failed ? .red : nil))"
                var rows = texts(step, columns: width - indent)
                let begin = isStacked || rows.isEmpty ? [first] : ["\(first)  \(rows.removeFirst())"]
                return (begin + rows.map { String(repeating: " ", count: indent) + $0 }).map(style.drawn)
            }
    }

    /// Returns the lines of a step's outcome.
    private func texts(_ step: Step, columns: Int) -> [String] {
        guard step.mark == .failed else {
            let text = [step.reason, step.details].filter { !$0.isEmpty }.joined(separator: "; ")
            return text.isEmpty ? [] : [style.paint(Columns.cut(text, to: columns), .dim)]
        }
        let reason = step.reason.isEmpty ? [] : Columns.wrapped(step.reason, to: columns)
        let details = step.details.isEmpty ? [] : [style.paint(Columns.cut(step.details, to: columns), .dim)]
        return reason.map { style.paint($0, .red) } + details
    }
}

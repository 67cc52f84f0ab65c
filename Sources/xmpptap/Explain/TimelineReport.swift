internal import TapDiagnosis
internal import TapRecord

/// The timelines of the sessions in a file, in lines: what each went through until stanzas flowed, or until it failed and
/// why, and why it ended.
struct TimelineReport {
    var timelines: SessionTimelines

    func lines() -> [String] {
        var lines: [String] = []
        for session in timelines.all {
            if !lines.isEmpty { lines.append("") }
            let ofRun = timelines.runCount > 1 ? " of run \(session.run)" : ""
            let earlier = session.resumes.map { ", resumed session \($0)" } ?? ""
            lines.append("session \(session.number)\(ofRun), \(Self.who(session.owner))\(earlier)")
            let rows = session.steps.compactMap { Self.row($0, since: session.began) }
            lines +=
                rows.isEmpty ? ["  no login steps recorded; record with --capture or --log verbose"] : Self.table(rows)
            if let diagnosis = session.diagnosis { lines += Self.words(diagnosis) }
            lines.append("  " + (session.end.map(Self.ending) ?? "its end is not in the file"))
        }
        return lines
    }

    private static func who(_ owner: Record) -> String {
        if let jid = owner.jid { return jid }
        let address = owner.remote ?? (owner.user == nil ? nil : owner.domain) ?? "an unknown address"
        return "\(owner.user ?? "the client") at \(address)"
    }

    private static func ending(_ end: Record) -> String {
        let reason = end.details?[Record.Detail.closeReason].map { " (\($0.text))" } ?? ""
        return "ended after \(LineBuffer.duration(end.roundTrip ?? 0)): \(end.message ?? "no reason recorded")\(reason)"
    }

    private static func row(_ step: Record, since start: Int64) -> [String]? {
        guard let name = step.details?[LoginStep.code]?.text else { return nil }
        let duration = step.roundTrip ?? 0
        let reason = step.details?[LoginStep.reasonDetail]?.text
        var outcome = [step.details?[LoginStep.outcomeDetail]?.text, step.condition, reason].compactMap { $0 }
            .joined(separator: ", ")
        let details = (step.details?.entries ?? []).filter { !LoginStep.toldDetails.contains($0.name) }
        if !details.isEmpty {
            outcome += " (" + details.map { "\($0.name) \($0.value.text)" }.joined(separator: "; ") + ")"
        }
        // The last step is a moment: it is reached when all before it are, and its time is that of the whole way.
        let isTop = name == LoginStep.Name.ready.rawValue
        let began = step.monotonic - (isTop ? 0 : duration) - start
        return [name, LineBuffer.duration(began), LineBuffer.duration(duration), outcome]
    }

    /// A diagnosis: the cause, the side at fault, what to try.
    private static func words(_ diagnosis: LoginDiagnosis) -> [String] {
        let rule = diagnosis.rule.map { " (\($0))" } ?? ""
        let place =
            switch diagnosis.isProxyTheCause {
            case true?: "cause: xmpptap"
            case false?: "cause: \(diagnosis.side.rawValue), not xmpptap"
            case nil: "cause: \(diagnosis.side.rawValue); the recording does not show whether a proxy contributed"
            }
        return [
            "  failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)", "  \(place)",
        ] + (diagnosis.advice.map { ["  try: \($0)"] } ?? [])
    }

    /// Rows under a head, in columns as wide as they need to be.
    private static func table(_ rows: [[String]]) -> [String] {
        let all = [["step", "at", "took", "outcome"]] + rows
        let widths = (0..<3).map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            var line = "  " + row[0] + spaces(widths[0] - row[0].count)
            for column in 1..<3 { line += "  " + spaces(widths[column] - row[column].count) + row[column] }
            return line + "  " + row[3]
        }
    }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}

internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// The timelines of the sessions in a file: what each went through until stanzas flowed, or until it failed and why, and
/// why it ended.
struct TimelineReport {
    /// One session of one run.
    private struct Session {
        let number: UInt64
        /// Nanoseconds of the run at which it began; of a file that does not tell, when it is first mentioned.
        let began: Int64
        var who: String
        var isReady = false
        /// The number of the session that it continues.
        var resumes: String?
        var rows: [[String]] = []
        var diagnosis: LoginDiagnosis?
        var ending: String?
    }

    private struct Key: Hashable {
        let run: Int
        let number: UInt64
    }

    private let wanted: Set<UInt64>
    private var run = 0
    /// The number of each run, in the order in which they are first told of; parts of several may take turns.
    private var runs: [String: Int] = [:]
    private var order: [Key] = []
    private var sessions: [Key: Session] = [:]

    /// The story of these sessions; of none is of all.
    init(of wanted: Set<UInt64>) { self.wanted = wanted }

    /// Takes a header: each run counts its sessions from 1.
    mutating func note(_ header: RecordHeader) {
        run = runs[header.run, default: runs.count + 1]
        runs[header.run] = run
    }

    /// Takes a record; most say nothing of the timeline.
    mutating func note(_ record: Record) {
        guard record.session > 0, wanted.isEmpty || wanted.contains(record.session) else { return }
        let key = Key(run: run, number: record.session)
        if sessions[key] == nil {
            order.append(key)
            sessions[key] = Session(
                number: record.session,
                began: record.monotonic,
                who: "the client at \(record.remote ?? "an unknown address")"
            )
        }
        if let jid = record.jid {
            sessions[key]?.who = jid
        } else if let user = record.user {
            sessions[key]?.who = "\(user) at \(record.remote ?? record.domain ?? "an unknown address")"
        }
        switch record.code {
        case LoginStep.code: noteStep(record, key)
        case Record.Code.sessionReady:
            sessions[key]?.isReady = true
            sessions[key]?.resumes = record.details?[Record.Detail.resumes]?.text
        case Record.Code.loginFailed: sessions[key]?.diagnosis = LoginDiagnosis(record)
        case Record.Code.sessionEnded:
            let reason = record.details?["close_reason"].map { " (\($0.text))" } ?? ""
            let span = Self.words(record.roundTrip ?? 0)
            sessions[key]?.ending = "ended after \(span): \(record.message ?? "no reason is told")\(reason)"
        default: break
        }
    }

    private mutating func noteStep(_ record: Record, _ key: Key) {
        guard let name = record.details?[LoginStep.code]?.text, let session = sessions[key] else { return }
        let duration = record.roundTrip ?? 0
        let took = Self.words(duration)
        // The words that stand for the step in the log, without its name.
        var outcome = record.message ?? record.details?[LoginStep.outcomeDetail]?.text ?? ""
        if outcome.hasPrefix("\(name): ") { outcome.removeFirst(name.count + 2) }
        // Steps on the way to the server say what they were about, and what was found.
        if let subject = record.details?["subject"]?.text, outcome.hasPrefix("\(name) \(subject): ") {
            outcome.removeFirst(name.count + subject.count + 3)
            outcome = "\(record.details?[LoginStep.outcomeDetail]?.text ?? ""), \(outcome)"
        }
        let details = (record.details?.entries ?? []).filter {
            $0.name != LoginStep.code && $0.name != LoginStep.outcomeDetail
        }
        if !details.isEmpty {
            outcome += " (" + details.map { "\($0.name) \($0.value.text)" }.joined(separator: "; ") + ")"
        }
        // The last step is a moment: it is reached when all before it are, and its time is that of the whole way.
        let isTop = name == LoginStep.Name.ready.rawValue
        let began = record.monotonic - (isTop ? 0 : duration) - session.began
        sessions[key]?.rows.append([name, Self.words(began), took, outcome])
    }

    /// Whether any session was found.
    var isEmpty: Bool { order.isEmpty }

    /// Whether any of the sessions became ready for stanzas.
    var hasReady: Bool { sessions.values.contains(where: \.isReady) }

    /// The story, a line each.
    func lines() -> [String] {
        var lines: [String] = []
        for key in order {
            guard let session = sessions[key] else { continue }
            if !lines.isEmpty { lines.append("") }
            let ofRun = runs.count > 1 ? " of run \(key.run)" : ""
            let earlier = session.resumes.map { ", resumed session \($0)" } ?? ""
            lines.append("session \(session.number)\(ofRun), \(session.who)\(earlier)")
            lines +=
                session.rows.isEmpty
                ? ["  no steps are told: they are recorded from verbose on"] : Self.table(session.rows)
            if let diagnosis = session.diagnosis { lines += Self.words(diagnosis) }
            lines.append("  " + (session.ending ?? "its end is not in the file"))
        }
        return lines
    }

    /// A diagnosis in the order in which one asks: why, whose fault, what now.
    private static func words(_ diagnosis: LoginDiagnosis) -> [String] {
        let rule = diagnosis.rule.map { " (\($0))" } ?? ""
        let place =
            switch diagnosis.isProxyTheCause {
            case true?: "cause: xmpptap"
            case false?: "cause: \(diagnosis.side.rawValue), not xmpptap"
            case nil: "cause: \(diagnosis.side.rawValue); a client's log cannot show whether a proxy contributed"
            }
        return [
            "  failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)", "  \(place)",
            "  try: \(diagnosis.advice)",
        ]
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

    private static func words(_ nanoseconds: Int64) -> String {
        var line = LineBuffer()
        line.append(duration: nanoseconds)
        return String(decoding: line.bytes, as: UTF8.self)
    }
}

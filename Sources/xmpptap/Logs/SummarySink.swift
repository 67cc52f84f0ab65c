internal import Synchronization
internal import TapDiagnosis
internal import TapRecord

/// Counts what a run came to, beside the log of a terminal, and says it at the end.
final class SummarySink: Sink {
    let level: Level
    private let summary = Mutex(RunSummary())

    /// Of records up to the level that the terminal shows, which are made anyway.
    init(level: Level) { self.level = level }

    var isCongested: Bool { false }

    func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let record = redacted.record
        summary.withLock { $0.note(record, content: content) }
    }

    /// What the run has come to so far.
    var soFar: RunSummary { summary.withLock { $0 } }

    /// The lines to end with; none where there was no session.
    var lines: [String] { Self.lines(summary.withLock { $0 }) }

    static func lines(_ summary: RunSummary) -> [String] {
        guard summary.sessions > 0 else { return [] }
        var rows = [("sessions", counts(summary.endings, of: summary.sessions))]
        if !summary.failedLogins.isEmpty {
            rows.append(("failed logins", counts(summary.failedLogins, of: summary.failedLogins.values.reduce(0, +))))
        }
        let kinds = summary.statistics.kinds.map { kind, figures in
            "\(kind.rawValue) \(figures.sent + figures.received)"
        }
        if !kinds.isEmpty { rows.append(("items", kinds.joined(separator: ", "))) }
        let trips = summary.statistics.roundTrips
        if let slowest = summary.slowest, trips.count > 0 {
            var words =
                "p50 \(LineBuffer.duration(trips.percentile(50))), p99 \(LineBuffer.duration(trips.percentile(99))), "
                + "slowest \(LineBuffer.duration(slowest.roundTrip))"
            if let summary = slowest.summary { words += " (\(summary))" }
            rows.append(("round trips", words))
        }
        if summary.unanswered > 0 {
            rows.append(("unanswered", "\(Plural.of(Int(clamping: summary.unanswered), "request"))"))
        }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { name, words in
            name + String(repeating: " ", count: width + 2 - name.count) + words
        }
    }

    /// `3: closed 2, lost 1`, the most frequent first.
    private static func counts(_ names: [String: UInt64], of total: UInt64) -> String {
        let parts = names.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key) \($0.value)" }
        return "\(total): \(parts.joined(separator: ", "))"
    }
}

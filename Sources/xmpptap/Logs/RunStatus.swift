internal import TapDiagnosis
internal import TapRecord

/// The state of a run, as the text at the bottom of the terminal.
///
/// Example: `2 sessions · 120 stanzas/s · 1 failed login · slowest iq 1.2 s: roster: 2 contacts`
struct RunStatus {
    /// Number of samples over which the rate is computed.
    private static let samples = 4
    /// The number of stanzas at earlier times, in nanoseconds of a monotonic clock; the latest last.
    private var seen: [(stanzas: UInt64, time: Int64)] = []

    /// Returns the text for the state of a run at a time.
    mutating func line(_ summary: RunSummary, at time: Int64) -> String {
        let stanzas = summary.statistics.stanzas
        seen.append((stanzas, time))
        if seen.count > Self.samples { seen.removeFirst() }
        let open = summary.begun - min(summary.begun, summary.sessions)
        var parts = [Plural.of(Int(clamping: open), "session")]
        if let first = seen.first, time > first.time {
            let rate = Double(stanzas - min(stanzas, first.stanzas)) * 1e9 / Double(time - first.time)
            parts.append("\(Int(min(rate.rounded(.up), 1e15))) stanzas/s")
        } else {
            parts.append("0 stanzas/s")
        }
        let failed = summary.failedLogins.values.reduce(0) { $0 &+ $1 }
        if failed > 0 { parts.append(Plural.of(Int(clamping: failed), "failed login")) }
        if let slowest = summary.slowest {
            let summary = slowest.summary.map { ": \($0)" } ?? ""
            parts.append("slowest iq \(LineBuffer.duration(slowest.roundTrip))\(summary)")
        }
        return parts.joined(separator: " · ")
    }
}

package import TapRecord

/// A summary of a run for the last lines of a command: ends of sessions, failed logins, items and latencies. Its memory
/// does not grow with the run.
package struct RunSummary: Sendable {
    /// Counts, sizes and round trips of items.
    package private(set) var statistics = RecordStatistics()
    /// Number of sessions that began.
    package private(set) var begun: UInt64 = 0
    /// Number of sessions that ended.
    package private(set) var sessions: UInt64 = 0
    /// Number of sessions by ``Record/Detail/closeReason``.
    package private(set) var endings: [String: UInt64] = [:]
    /// Number of failed logins by ``Record/Detail/cause``.
    package private(set) var failedLogins: [String: UInt64] = [:]
    /// Number of requests that were unanswered when their session ended.
    package private(set) var unanswered: UInt64 = 0
    /// The iq with the longest round trip; nil if none was answered.
    package private(set) var slowest: (roundTrip: Int64, session: UInt64, summary: Prose?)?

    /// Maximum number of distinct names; causes may contain text from servers.
    private static let maximumNames = 32
    private static let others = "(others)"

    package init() {}

    /// Adds a record with its content.
    package mutating func add(_ record: Record, content: Span<UInt8>) {
        statistics.add(record, content: content)
        if record.kind == .stanza, let time = record.roundTrip, time > slowest?.roundTrip ?? -1 {
            slowest = (time, record.session, record.summary)
        }
        switch record.code {
        case Record.Code.loginFailed:
            Self.count(record.details?[Record.Detail.cause]?.text ?? record.condition ?? "unknown", in: &failedLogins)
        case Record.Code.sessionBegan: begun += 1
        case Record.Code.sessionEnded:
            sessions += 1
            Self.count(record.details?[Record.Detail.closeReason]?.text ?? "unknown", in: &endings)
            if case .integer(let count) = record.details?[Record.Detail.unanswered] {
                unanswered &+= UInt64(max(0, count))
            }
        default: break
        }
    }

    private static func count(_ name: String, in names: inout [String: UInt64]) {
        names[names[name] != nil || names.count < maximumNames ? name : others, default: 0] += 1
    }
}

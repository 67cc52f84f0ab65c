public import TapRecord

/// What a run came to, for the lines that a command ends with: how sessions ended, why logins failed, what passed, and how
/// long answers took. Its memory does not grow with the run.
public struct RunSummary: Sendable {
    /// Counts, sizes and round trips of items.
    public private(set) var statistics = RecordStatistics()
    /// Sessions that have begun.
    public private(set) var begun: UInt64 = 0
    /// Sessions that have ended.
    public private(set) var sessions: UInt64 = 0
    /// How often sessions ended in each way, by the ``Record/Detail/closeReason``.
    public private(set) var endings: [String: UInt64] = [:]
    /// How often logins failed of each cause, by the ``Record/Detail/cause``.
    public private(set) var failedLogins: [String: UInt64] = [:]
    /// Requests without an answer when their session ended.
    public private(set) var unanswered: UInt64 = 0
    /// The iq with the longest round trip; nil where none was answered.
    public private(set) var slowest: (roundTrip: Int64, session: UInt64, summary: Prose?)?

    /// Words of servers may be among the causes: more than this many are counted as one.
    private static let mostNames = 32
    private static let others = "(others)"

    /// Of a run that has just begun.
    public init() {}

    /// Takes a record whose texts are in `content`.
    public mutating func note(_ record: Record, content: Span<UInt8>) {
        statistics.note(record, content: content)
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
        names[names[name] != nil || names.count < mostNames ? name : others, default: 0] += 1
    }
}

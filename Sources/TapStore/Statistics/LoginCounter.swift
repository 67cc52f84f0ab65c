internal import TapRecord

/// Counts failed logins by their cause.
struct LoginCounter {
    private struct Cause {
        var count = 0
        var accounts: [String: Int] = [:]
        var latest: AuditSession?
    }

    private var causes: [String: Cause] = [:]

    mutating func add(_ session: AuditSession) {
        guard let cause = session.cause else { return }
        causes[cause, default: Cause()].count += 1
        if let account = session.account { causes[cause]?.accounts[account, default: 0] += 1 }
        if causes[cause]?.latest.map({ $0.place < session.place }) ?? true { causes[cause]?.latest = session }
    }

    var all: [AuditStatistics.FailedLogins] {
        causes.map { name, cause in
            AuditStatistics.FailedLogins(
                cause: name,
                count: cause.count,
                accounts: cause.accounts.map { .init(name: $0.key, count: $0.value) }
                    .sorted { ($1.count, $0.name) < ($0.count, $1.name) },
                last: cause.latest?.time,
                finding: cause.latest?.finding
            )
        }
        .sorted { ($1.count, $0.cause) < ($0.count, $1.cause) }
    }
}

extension AuditSession {
    /// The time at which the session began, or the nearest one that is known.
    var time: Timestamp? { began ?? ended }

    /// Orders sessions by time.
    fileprivate var place: (Timestamp, String, UInt64) { (time ?? Timestamp(nanoseconds: .min), run, number) }
}

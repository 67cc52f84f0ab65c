internal import Synchronization

/// Notices accounts that log in again and again, over all sessions of a run.
final class LoginWatch: Sendable {
    /// So many logins within ``span`` are a loop.
    static let threshold = 5
    /// In nanoseconds.
    static let span: Int64 = 60_000_000_000
    /// Accounts that are remembered; beyond it those that have been quiet for longest are forgotten.
    static let capacity = 4096

    private let logins = Mutex<[String: [Int64]]>([:])

    /// Notes a login; gives how many there were in how long where that is a loop: at the threshold, and each time it has
    /// been passed as often again, so that a loop is not told at every turn.
    func note(_ account: String, at monotonic: Int64) -> (count: Int, span: Int64)? {
        logins.withLock { logins in
            if logins.count >= Self.capacity, logins[account] == nil {
                logins = logins.filter { monotonic - ($0.value.last ?? 0) < Self.span }
                guard logins.count < Self.capacity else { return nil }
            }
            var times: [Int64] = []
            // Changed where it is kept, so that it is not copied at each login.
            swap(&times, &logins[account, default: []])
            defer { swap(&times, &logins[account, default: []]) }
            times.removeFirst(times.firstIndex { monotonic - $0 < Self.span } ?? times.count)
            // Nobody needs to know more exactly how fast a loop is.
            if times.count >= 100 { times.removeFirst() }
            times.append(monotonic)
            guard times.count.isMultiple(of: Self.threshold), let first = times.first else { return nil }
            return (times.count, monotonic - first)
        }
    }
}

internal import Synchronization

/// Notices accounts that log in again and again, over all sessions of a run.
final class LoginWatch: Sendable {
    /// So many logins within ``span`` are a loop.
    static let threshold = 5
    /// In nanoseconds.
    static let span: Int64 = 60_000_000_000
    /// Accounts that are remembered; beyond it those that have been quiet for longest are forgotten.
    static let capacity = 4096

    /// The logins of one account.
    fileprivate struct Account {
        /// When the last ones were: ``threshold`` of them at most.
        var times: [Int64] = []
        /// How many there were one after the other without the loop's end, and since when.
        var count = 0
        var start: Int64 = 0
        /// The count at which it is told next.
        var next = threshold
    }

    private let accounts = Mutex<[String: Account]>([:])

    /// Notes a login; gives how many there were in how many nanoseconds where that is a loop: at the threshold, and each
    /// time there were twice as many, so that a loop is not told at every turn.
    func note(_ account: String, at monotonic: Int64) -> (count: Int, span: Int64)? {
        accounts.withLock { accounts in
            if accounts.count >= Self.capacity, accounts[account] == nil {
                accounts = accounts.filter { monotonic - ($0.value.times.last ?? 0) < Self.span }
                guard accounts.count < Self.capacity else { return nil }
            }
            return accounts[account, default: Account()].note(monotonic)
        }
    }
}

extension LoginWatch.Account {
    fileprivate mutating func note(_ monotonic: Int64) -> (count: Int, span: Int64)? {
        times.removeFirst(times.firstIndex { monotonic - $0 < LoginWatch.span } ?? times.count)
        times.append(monotonic)
        if times.count > LoginWatch.threshold { times.removeFirst() }
        count += 1
        if times.count < LoginWatch.threshold {
            // Too few lately: there is no loop, or none any more.
            count = times.count
            start = times.first ?? monotonic
            next = LoginWatch.threshold
        }
        guard count >= next else { return nil }
        next = count * 2
        return (count, monotonic - start)
    }
}

internal import Synchronization

/// Notices accounts that log in again and again, over all sessions of a run.
///
/// Bounded by ``capacity`` accounts of at most ``longestAccount`` bytes, with ``threshold`` times each. A login is O(1),
/// however many accounts are known.
final class LoginWatch: Sendable {
    /// So many logins within ``span`` are a loop.
    static let threshold = 5
    /// In nanoseconds.
    static let span: Int64 = 60_000_000_000
    /// Accounts that are remembered; beyond it those that have been quiet for longest are forgotten.
    static let capacity = 4096
    /// Maximum length of a bare JID in bytes (RFC 7622 §3.2, §3.3). Longer names are ignored.
    static let longestAccount = 2047

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

    private let accounts = Mutex(LRUCache<String, Account>(capacity: capacity))

    /// Notes a login; gives how many there were in how many nanoseconds where that is a loop: at the threshold, and each
    /// time there were twice as many, so that a loop is not told at every turn.
    func note(_ account: String, at monotonic: Int64) -> (count: Int, span: Int64)? {
        guard account.utf8.count <= Self.longestAccount else { return nil }
        return accounts.withLock { $0.update(account, default: Account()) { $0.note(monotonic) } }
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

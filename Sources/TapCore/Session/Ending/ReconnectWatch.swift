internal import Synchronization
internal import TapRecord
internal import XMPPCore

/// Detects clients whose sessions repeatedly drop soon after login, or whose logins repeatedly fail, over all sessions
/// of a run.
///
/// Bounded: at most ``capacity`` clients are stored, each with ``threshold`` times; the least recently dropped client
/// is evicted first. Each call takes constant time.
final class ReconnectWatch: Sendable {
    /// The number of drops within ``span`` that counts as a loop.
    static let threshold = 5
    /// The time, in nanoseconds, within which ``threshold`` drops count as a loop; default one minute.
    let span: Int64
    /// The time limit in nanoseconds: a session that ends sooner after its login counts as dropped. 30 s.
    static let soon: Int64 = 30_000_000_000
    /// The largest number of stored clients.
    static let capacity = 4096

    /// The properties that distinguish the clients of one account.
    struct Client {
        /// The bare JID.
        var account: String
        /// The resource that the client requests, or its Bind2 tag; nil if the server chooses the resource.
        var resource: String?
        /// The client's SASL2 user agent (XEP-0388 §2.2).
        var agent: String?
        /// The client's address, `HOST:PORT`. The port changes with each connection and is ignored.
        var remote: String?

        /// The hash that identifies the client.
        var key: Key {
            let host = remote.map { remote in remote.utf8.lastIndex(of: 0x3A).map { remote[..<$0] } ?? remote[...] }
            var hasher = Hasher()
            hasher.combine(Address(account).comparableBare)
            hasher.combine(resource)
            hasher.combine(agent)
            hasher.combine(host)
            return Key(hash: hasher.finalize())
        }
    }

    /// The identity of a client: a hash with a random seed of this process.
    struct Key: Hashable, Sendable {
        fileprivate let hash: Int
    }

    fileprivate struct Drops {
        /// The times of the last drops, at most ``threshold``.
        var times: [Int64] = []
        /// The number of drops in the current loop, and the time of the first.
        var count = 0
        var start: Int64 = 0
        /// The count at which the next warning is logged.
        var next = threshold
    }

    private let table = Mutex(LRUCache<Key, Drops>(capacity: capacity))

    init(span: Int64 = 60_000_000_000) { self.span = span }

    /// The number of stored clients.
    var count: Int { table.withLock { $0.count } }

    /// Counts a dropped session. Returns the number of drops and their span in nanoseconds if they are a loop, and nil
    /// otherwise. To limit the warnings, it returns them at the threshold, and then each time the number has doubled.
    func recordDrop(of client: Key, at monotonic: Int64) -> (count: Int, span: Int64)? {
        table.withLock { $0.update(client, default: Drops()) { $0.add(monotonic, within: span) } }
    }
}

extension ReconnectWatch.Drops {
    fileprivate mutating func add(_ monotonic: Int64, within span: Int64) -> (count: Int, span: Int64)? {
        times.removeFirst(times.firstIndex { monotonic - $0 < span } ?? times.count)
        times.append(monotonic)
        if times.count > ReconnectWatch.threshold { times.removeFirst() }
        count += 1
        if times.count < ReconnectWatch.threshold {
            // Too few recent drops: no loop, or the loop has ended.
            count = times.count
            start = times.first ?? monotonic
            next = ReconnectWatch.threshold
        }
        guard count >= next else { return nil }
        next = count * 2
        return (count, monotonic - start)
    }
}

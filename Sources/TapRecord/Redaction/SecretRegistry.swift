internal import Synchronization

/// Numbers the secrets of a run: the same value has the same number everywhere.
///
/// Values are not stored, only a hash of each under a random key of this process. The number of values is limited: the
/// least recently used values are evicted first, and get a new number when they occur again; a number is never reused.
/// The registry also stores, as hashes, the addresses of upload slots (XEP-0363): a user who shares a link to one also
/// shares its token.
package final class SecretRegistry: Sendable {
    private struct Table {
        var numbers: LRUCache<Int, UInt32>
        var last: UInt32 = 0
        /// Hashes of the upload slots' URLs and hosts.
        var slots: LRUCache<Int, Void>
        var placeholders: [SecretKind: UInt64] = [:]
    }

    /// The state that several registries can share.
    private final class Store: Sendable {
        let salt = UInt64.random(in: .min ... .max)
        let table: Mutex<Table>

        init(_ table: sending Table) { self.table = Mutex(table) }
    }

    private let store: Store
    /// Called before the values are accessed; see ``init(sharing:inTurn:)``.
    private let awaitTurn: (@Sendable () -> Void)?

    /// Creates an empty registry.
    ///
    /// - Parameters:
    ///   - capacity: Maximum number of known values; default 65,536.
    ///   - slotCapacity: Maximum number of known URLs and hosts of upload slots, default 16,384. The query of a link
    ///     to an evicted slot is shown, unless the query is known as a value.
    package init(capacity: Int = 1 << 16, slotCapacity: Int = 1 << 14) {
        store = Store(Table(numbers: LRUCache(capacity: capacity), slots: LRUCache(capacity: slotCapacity)))
        awaitTurn = nil
    }

    /// Creates a registry that shares the values of another one, for one of several threads that process the sessions
    /// of a recording.
    ///
    /// - Parameter awaitTurn: Returns when the other threads have finished all earlier work, so that the numbers are
    ///   the same as with one thread.
    package init(sharing other: SecretRegistry, inTurn awaitTurn: @escaping @Sendable () -> Void) {
        store = other.store
        self.awaitTurn = awaitTurn
    }

    /// The shared state, returned when the other threads have finished all earlier work.
    private var known: Store {
        awaitTurn?()
        return store
    }

    /// Returns the number of a value, from 1; a new one if the value is unknown.
    package func number(of value: Span<UInt8>) -> UInt32 {
        let hash = hash(value)
        return known.table.withLock { table in
            // Numbers begin at 1: 0 marks a new value.
            var last = table.last
            let number = table.numbers.update(hash, default: 0) { number in
                if number == 0 {
                    last &+= 1
                    number = last
                }
                return number
            }
            table.last = last
            return number
        }
    }

    /// Returns whether a value is known as a secret.
    package func knows(_ value: Span<UInt8>) -> Bool {
        let hash = hash(value)
        return known.table.withLock { $0.numbers.contains(hash) }
    }

    /// The number of placeholders for secrets of each kind.
    package var placeholders: [SecretKind: UInt64] { known.table.withLock { $0.placeholders } }

    /// Counts a placeholder for a secret.
    func count(_ kind: SecretKind) { known.table.withLock { $0.placeholders[kind, default: 0] += 1 } }

    /// The number of known values.
    package var count: Int { known.table.withLock { $0.numbers.count } }

    // MARK: Upload slots

    /// Stores the URL of an upload slot, without its query, and its host if queries of the host are tokens.
    func remember(slotAt host: Span<UInt8>, path: Span<UInt8>, withQuery: Bool) {
        let url = hash(host: host, path: path)
        let host = withQuery ? hash(host: host, path: nil) : nil
        known.table.withLock { table in
            table.slots.update(url, default: ()) { _ in }
            if let host { table.slots.update(host, default: ()) { _ in } }
        }
    }

    /// Returns whether a URL without its query belongs to an upload slot; if `path` is nil, whether slots of the host
    /// had queries.
    func knowsSlot(host: Span<UInt8>, path: Span<UInt8>? = nil) -> Bool {
        let hash = hash(host: host, path: path)
        return known.table.withLock { table in
            guard table.slots.contains(hash) else { return false }
            table.slots.update(hash, default: ()) { _ in }
            return true
        }
    }

    /// Returns the hash of a URL. Ignores the case of the host, and decodes the percent-encoding of the path.
    private func hash(host: Span<UInt8>, path: Span<UInt8>?) -> Int {
        var hasher = Hasher()
        hasher.combine(store.salt)
        for index in host.indices { hasher.combine(host[index].lowered) }
        hasher.combine(path == nil)
        if let path { PercentEncoding.forEach(path) { hasher.combine($0) } }
        return hasher.finalize()
    }

    private func hash(_ value: Span<UInt8>) -> Int {
        // Hasher is keyed at random for each process; the salt makes two runs of one process differ too.
        var hasher = Hasher()
        hasher.combine(store.salt)
        value.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(value.count)
        return hasher.finalize()
    }
}

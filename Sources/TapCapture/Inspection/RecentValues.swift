/// A dictionary of limited size that forgets its oldest entries.
///
/// It has two generations. When the newer one is full, the older one is dropped: the newest half of the entries that fit
/// is always there.
struct RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Maximum number of entries of a generation.
    private let limit: Int
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]
    /// The position at which the newer generation began.
    private var start = 0

    /// Creates an empty dictionary.
    ///
    /// - Parameter limit: Maximum number of entries.
    init(limit: Int) { self.limit = max(1, limit / 2) }

    /// Number of entries.
    var count: Int { newer.count + older.count }

    subscript(key: Key) -> Value? { newer[key] ?? older[key] }

    /// Stores the value for a key.
    ///
    /// - Parameter position: The position of the record to which the entry belongs; never smaller than before.
    mutating func store(_ value: Value, for key: Key, at position: Int) {
        if newer.count >= limit, newer[key] == nil { beginGeneration(at: position) }
        newer[key] = value
    }

    @discardableResult
    mutating func removeValue(for key: Key) -> Value? {
        let old = older.removeValue(forKey: key)
        return newer.removeValue(forKey: key) ?? old
    }

    /// Forgets entries of records that are gone: each of them at the second call with a later `position`, or before.
    ///
    /// - Parameters:
    ///   - position: The position of the first record that is left.
    ///   - end: The position of the next record.
    mutating func forget(before position: Int, end: Int) {
        guard position > start, count > 0 else { return }
        beginGeneration(at: end)
    }

    private mutating func beginGeneration(at position: Int) {
        older = newer
        newer = [:]
        start = position
    }
}

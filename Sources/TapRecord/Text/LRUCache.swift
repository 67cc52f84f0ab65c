/// A bounded cache with approximate LRU eviction.
///
/// The cache has two generations. An access moves a value to the newer generation. When the newer generation holds half
/// of ``capacity``, it becomes the older one, and the values of the previous older one are evicted. An access takes
/// amortised O(1) time, regardless of the number of values. A value survives at least `capacity / 2` accesses to other
/// new keys.
package struct LRUCache<Key: Hashable, Value> {
    /// Maximum number of values, at least 2.
    let capacity: Int
    private var recent: [Key: Value] = [:]
    private var older: [Key: Value] = [:]

    package init(capacity: Int) { self.capacity = max(2, capacity) }

    package var count: Int { recent.count + older.count }

    /// Returns whether the key has a value; does not count as an access.
    func contains(_ key: Key) -> Bool { recent[key] != nil || older[key] != nil }

    /// Returns the value of `key`; does not count as an access.
    package func peek(_ key: Key) -> Value? { recent[key] ?? older[key] }

    /// Returns the value of `key`, and counts as an access; nil if there is none.
    package mutating func value(_ key: Key) -> Value? { peek(key).map { value in update(key, default: value) { $0 } } }

    /// Inserts or replaces the value of a key; counts as an access.
    package mutating func set(_ value: Value, for key: Key) { update(key, default: value) { $0 = value } }

    /// Calls `body` with the value of `key`, or with a new value that is inserted; counts as an access.
    package mutating func update<Outcome>(
        _ key: Key,
        default new: @autoclosure () -> Value,
        _ body: (inout Value) -> Outcome
    ) -> Outcome {
        if let known = recent.index(forKey: key) { return body(&recent.values[known]) }
        var value = older.removeValue(forKey: key) ?? new()
        if recent.count >= capacity / 2 {
            older = recent
            recent = [:]
        }
        let outcome = body(&value)
        recent[key] = value
        return outcome
    }
}

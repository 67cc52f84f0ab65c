/// A bounded cache with approximate LRU eviction.
///
/// It has two generations. An access moves a value to the newer one; when that holds half of ``capacity``, it becomes the
/// older one, and the values of the previous older one are evicted. An access is O(1) amortised however full the cache is.
/// A value survives at least `capacity / 2` accesses to other new keys.
package struct LRUCache<Key: Hashable, Value> {
    /// Maximum number of values, at least 2.
    let capacity: Int
    private var recent: [Key: Value] = [:]
    private var older: [Key: Value] = [:]

    /// Creates an empty cache.
    package init(capacity: Int) { self.capacity = max(2, capacity) }

    package var count: Int { recent.count + older.count }

    /// Whether the key has a value. This is not an access.
    func contains(_ key: Key) -> Bool { recent[key] != nil || older[key] != nil }

    /// Returns the value of `key`. This is not an access.
    package func peek(_ key: Key) -> Value? { recent[key] ?? older[key] }

    /// Accesses the value of `key`; nil if there is none.
    package mutating func value(_ key: Key) -> Value? { peek(key).map { value in update(key, default: value) { $0 } } }

    /// Inserts or replaces the value of a key. This is an access.
    package mutating func set(_ value: Value, for key: Key) { update(key, default: value) { $0 = value } }

    /// Accesses the value of `key`, or inserts a new one, and lets `body` change it.
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

internal import TapRecord

/// Values by name, of a limited number of names. If there are too many, the less important half is removed.
struct Tally<Value: Sendable>: Sendable {
    /// Maximum number of names.
    private let limit: Int
    private let importance: @Sendable (Value) -> UInt64
    private var values: [String: Value] = [:]
    /// Number of names that were removed; those that came back are counted, too.
    private var removed = 0

    /// Creates an empty tally.
    ///
    /// - Parameters:
    ///   - limit: Maximum number of names.
    ///   - importance: The names with the largest value are kept and shown.
    init(limit: Int, by importance: @escaping @Sendable (Value) -> UInt64) {
        self.limit = max(2, limit)
        self.importance = importance
    }

    /// Changes the value of a name.
    mutating func change(_ name: String, from initial: Value, _ body: (inout Value) -> Void) {
        let name = name.cut(to: RecordSurvey.maximumText)
        if values.count >= limit, values[name] == nil {
            let kept = ordered.prefix(limit / 2)
            removed += values.count - kept.count
            values = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
        }
        body(&values[name, default: initial])
    }

    private var ordered: [(key: String, value: Value)] {
        values.sorted { importance($0.value) > importance($1.value) }
    }

    /// Returns the most important values, and the number of names that are left out.
    func first(_ count: Int) -> (shown: ArraySlice<(key: String, value: Value)>, leftOff: Int) {
        let shown = ordered.prefix(count)
        return (shown, values.count - shown.count + removed)
    }
}

internal import TapRules

/// The stored results of the filters that were used last.
struct FilteredLists {
    /// Maximum number of filters.
    private static let maximumCount = 8

    private var lists: [String: FilteredList] = [:]
    private var uses = 0
    /// The number of the list made last; 0 is the list of all records.
    private var last = 0

    /// Searches more of the table with a filter, and returns what was found so far.
    ///
    /// - Parameter deadline: When to stop.
    mutating func list(
        of filter: RecordFilter,
        in table: RecordTable,
        until deadline: ContinuousClock.Instant
    ) -> FilteredList {
        var list = lists.removeValue(forKey: filter.text) ?? makeList(of: filter, in: table)
        list.extend(in: table, until: deadline)
        uses += 1
        list.lastUse = uses
        lists[filter.text] = list
        return list
    }

    private mutating func makeList(of filter: RecordFilter, in table: RecordTable) -> FilteredList {
        if lists.count >= Self.maximumCount,
            let oldest = lists.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            lists.removeValue(forKey: oldest.key)
        }
        last += 1
        return FilteredList(filter, number: last, from: table.range.lowerBound)
    }
}

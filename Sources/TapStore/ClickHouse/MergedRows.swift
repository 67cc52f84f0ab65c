internal import TapRecord

/// The rows of all shards that meet conditions, each once, in the order of time.
struct MergedRows {
    private var pages: [RowPages]
    private var last: RowOrder?

    init(_ pages: [RowPages]) { self.pages = pages }

    /// Returns the next row; nil at the end.
    mutating func next() throws(StoreFault) -> AuditRow? {
        // An account's rows are on one shard, unless the number of shards was changed.
        while true {
            var first: (shard: Int, order: RowOrder)?
            for shard in pages.indices {
                guard let order = try pages[shard].next else { continue }
                if first.map({ order < $0.order }) ?? true { first = (shard, order) }
            }
            guard let first else { return nil }
            let row = pages[first.shard].take()
            // A batch may have been sent twice, or to two shards.
            guard first.order != last else { continue }
            last = first.order
            return row
        }
    }
}

/// The rows of a conversation from a time on.
struct LaterRows: RowSource {
    /// The number of rows that are returned at once.
    static let count = 64

    private var rows: MergedRows
    private var isAtEnd = false

    init(_ rows: MergedRows) { self.rows = rows }

    mutating func next() throws(StoreFault) -> [AuditRow]? {
        var next: [AuditRow] = []
        while !isAtEnd, next.count < Self.count {
            guard let row = try rows.next() else {
                isAtEnd = true
                break
            }
            next.append(row)
        }
        return next.isEmpty ? nil : next
    }
}

/// The rows of a conversation before a time, and those of the time itself, backwards.
struct EarlierRows: RowSource {
    private let shards: [ClickHouseServer]
    private let conditions: RowConditions
    private let limit: Int
    private var count: Int
    /// The earliest row so far.
    private var first: RowOrder?
    private var isAtEnd = false

    /// - Parameters:
    ///   - conditions: The conditions, with that of the time.
    ///   - limit: The maximum number of rows in an answer.
    init(_ shards: [ClickHouseServer], _ conditions: RowConditions, limit: Int) {
        (self.shards, self.conditions, self.limit) = (shards, conditions, max(1, limit))
        count = min(LaterRows.count, self.limit)
    }

    mutating func next() throws(StoreFault) -> [AuditRow]? {
        guard !isAtEnd else { return nil }
        let all = conditions.and(first.map { RowPages.condition($0, "<") })
        var rows: [AuditRow] = []
        // From here on, the rows of all shards are known.
        var known: RowOrder?
        for shard in shards {
            var reader = try RowPages.read(shard, all, isBackwards: true, limit: count)
            var read: [AuditRow] = []
            var texts = ClickHouseSchema.RowTexts()
            while !reader.isAtEnd {
                guard let row = ClickHouseSchema.row(&reader, &texts) else {
                    throw StoreFault(code: .corrupt, path: shard.path)
                }
                read.append(row)
            }
            if read.count == count, let earliest = read.last?.order { known = max(known ?? earliest, earliest) }
            rows += read
        }
        isAtEnd = known == nil
        rows = rows.filter { row in known.map { row.order >= $0 } ?? true }.sorted { $0.order < $1.order }
        var last: RowOrder?
        rows.removeAll { row in
            defer { last = row.order }
            return row.order == last
        }
        first = rows.first?.order ?? first
        count = min(count * 4, limit)
        return rows.isEmpty ? nil : rows
    }
}

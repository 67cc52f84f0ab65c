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
            var first: (shard: Int, row: AuditRow)?
            for shard in pages.indices {
                guard let row = try pages[shard].next else { continue }
                if first.map({ row.order < $0.row.order }) ?? true { first = (shard, row) }
            }
            guard let (shard, row) = first else { return nil }
            pages[shard].advance()
            // A batch may have been sent twice, or to two shards.
            guard row.order != last else { continue }
            last = row.order
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
    private let conditions: [String]
    private var count = LaterRows.count
    /// The earliest row so far.
    private var first: AuditRow?
    private var isAtEnd = false

    /// - Parameter conditions: The conditions, with that of the time.
    init(_ shards: [ClickHouseServer], _ conditions: [String]) { (self.shards, self.conditions) = (shards, conditions) }

    mutating func next() throws(StoreFault) -> [AuditRow]? {
        guard !isAtEnd else { return nil }
        let all = conditions + [first.map { RowPages.condition($0, "<") }].compactMap(\.self)
        var rows: [AuditRow] = []
        // From here on, the rows of all shards are known.
        var known: RowOrder?
        for shard in shards {
            var reader = try RowPages.read(shard, all.joined(separator: " AND "), isBackwards: true, limit: count)
            var read: [AuditRow] = []
            while !reader.isAtEnd {
                guard let row = ClickHouseSchema.row(&reader) else {
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
        first = rows.first ?? first
        count = min(count * 4, 20_000)
        return rows.isEmpty ? nil : rows
    }
}

/// A minute in which stanzas of a run were seen, with the range of the numbers of their rows.
///
/// Rows are stored in the order of their records, which is almost that of their times. By the table of minutes, those of a
/// period are found, and put in order minute by minute. An index of the times would need 20 bytes a row.
enum StoreMinute {
    /// Nanoseconds.
    static let length: Int64 = 60_000_000_000

    /// Returns the time at which the minute of a time begins.
    static func start(of seen: Int64) -> Int64 {
        let rest = seen % length
        let (start, isTooEarly) = seen.subtractingReportingOverflow(rest < 0 ? rest + length : rest)
        return isTooEarly ? .min : start
    }

    /// The rows of minutes: a join of the table of minutes with that of the rows, for a `FROM` clause. SQLite would make an index of
    /// its own otherwise, from all rows.
    static let rows =
        "minute CROSS JOIN stanza NOT INDEXED ON stanza.id BETWEEN minute.first AND minute.last "
        + "AND stanza.seen BETWEEN minute.start AND minute.start + \(length - 1)"
}

/// Keeps the table of minutes while rows are added.
final class MinuteWriter {
    private struct Range {
        let start: Int64
        let run: Int64
        var first: Int64
        var last: Int64
    }

    private let insertion: SQLiteStatement
    /// The range that is not yet in the table.
    private var current: Range?

    init(_ database: SQLiteDatabase) throws(StoreFault) {
        insertion = try database.prepare(
            """
            INSERT INTO minute(start, run, first, last) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
            """
        )
    }

    /// Adds a row. A transaction must be open.
    func add(_ id: Int64, _ run: Int64, seen: Int64) throws(StoreFault) {
        let start = StoreMinute.start(of: seen)
        if let range = current, range.start == start, range.run == run {
            current?.first = min(range.first, id)
            current?.last = max(range.last, id)
        } else {
            try write()
            current = Range(start: start, run: run, first: id, last: id)
        }
    }

    /// Writes what is not yet in the table. A transaction must be open.
    func write() throws(StoreFault) {
        guard let range = current else { return }
        insertion.bind(1, range.start)
        insertion.bind(2, range.run)
        insertion.bind(3, range.first)
        insertion.bind(4, range.last)
        try insertion.run()
        current = nil
    }

    /// Forgets what is not yet in the table, after its transaction was rolled back.
    func forget() { current = nil }
}

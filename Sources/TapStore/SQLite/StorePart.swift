/// A part of a store: the stanzas that were seen in a period, of a day or less.
///
/// Each part has its own index of words, so that old words are deleted with their index, at once and without a trace. A
/// deletion of single rows would leave their words in the index until it is merged.
struct StorePart: Hashable {
    let number: Int64
    /// The earliest time at which a stanza of the part was seen, in nanoseconds.
    let start: Int64
    /// The end of the times: the start of the next part.
    let end: Int64

    /// The table with the words.
    var table: String { "word_\(number)" }

    /// The rows with the words that the parameter `?3` is an expression of, for a `FROM` clause.
    ///
    /// - Parameter account: The number of the account; nil for all.
    func rows(of account: Int64?) -> String {
        let id = RowNumber.expression(words: "\(table).rowid", onDayOf: start)
        let range = account.map { RowNumber.wordRange(of: $0) }
        return "\(table) CROSS JOIN stanza NOT INDEXED ON stanza.id = (\(id)) AND \(table) MATCH ?3"
            + (range.map { " AND \(table).rowid BETWEEN \($0.lowerBound) AND \($0.upperBound)" } ?? "")
    }

    /// The statement that returns the ids of the rows with the words that its parameter is an expression of.
    ///
    /// - Parameter account: The number of the account; nil for all.
    func ids(of account: Int64?) -> String {
        let range = account.map { RowNumber.wordRange(of: $0) }
        return "SELECT \(RowNumber.expression(words: "rowid", onDayOf: start)) FROM \(table) WHERE \(table) MATCH ?"
            + (range.map { " AND rowid BETWEEN \($0.lowerBound) AND \($0.upperBound)" } ?? "")
    }

    /// The statement that creates the table with the words. The store makes words itself, and keeps no copy of them.
    static func creation(_ number: Int64) -> String {
        "CREATE VIRTUAL TABLE word_\(number) USING "
            + "fts5(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')"
    }

    func contains(_ seen: Int64) -> Bool { seen >= start && (seen < end || end == .max) }

    /// Returns whether the part can have stanzas of some times; nil for all times.
    func overlaps(_ seen: Range<Int64>?) -> Bool {
        guard let seen else { return true }
        return start < seen.upperBound && (seen.lowerBound < end || end == .max)
    }

    /// Returns the parts of a store in order of time.
    static func all(in database: SQLiteDatabase) throws(StoreFault) -> [StorePart] {
        let statement = try database.prepare("SELECT number, start FROM part ORDER BY start")
        var starts: [(number: Int64, start: Int64)] = []
        while try statement.step() {
            guard let number = statement.integer(0), let start = statement.integer(1) else { continue }
            starts.append((number, start))
        }
        return starts.indices.map { index in
            StorePart(
                number: starts[index].number,
                start: starts[index].start,
                end: index + 1 < starts.count ? starts[index + 1].start : .max
            )
        }
    }
}

/// The parts of a store that is written: finds the part of a stanza, and begins new ones.
final class StoreParts {
    private static let day: Int64 = 86_400_000_000_000
    /// The number of pages of words that are merged at once: some 20 ms.
    private static let mergedPages = 500

    private let database: SQLiteDatabase
    /// The number of stanzas after which the newest part is divided.
    var size: Int
    private var parts: [StorePart]
    /// The part of the last stanza.
    private var current: StorePart?
    /// The parts whose words may be in several lists.
    private var unmerged: [StorePart]
    /// The number of stanzas of the newest part, and the latest time at which one was seen.
    private var count: Int
    private var latest: Int64
    private var insertions: [Int64: SQLiteStatement] = [:]

    init(_ database: SQLiteDatabase, size: Int) throws(StoreFault) {
        self.database = database
        self.size = max(1, size)
        parts = try StorePart.all(in: database)
        unmerged = parts.dropLast().suffix(1)
        (count, latest) = (0, .min)
        if let start = parts.last?.start {
            let rows =
                "\(StoreMinute.rows) WHERE minute.start >= \(StoreMinute.start(of: start)) AND stanza.seen >= \(start)"
            let statement = try database.prepare("SELECT count(*), max(stanza.seen) FROM \(rows)")
            if try statement.step() {
                count = Int(clamping: statement.integer(0) ?? 0)
                latest = statement.integer(1) ?? .min
            }
        }
    }

    /// Returns the part of a stanza, which it counts. A transaction must be open.
    func part(of seen: Int64) throws(StoreFault) -> StorePart {
        let part: StorePart
        if let current, current.contains(seen), Self.dayStart(seen) <= current.start, count < size || seen <= latest {
            part = current
        } else {
            part = try find(seen)
            if let current, current.number != part.number, !unmerged.contains(where: { $0.number == current.number }) {
                unmerged.append(current)
            }
            current = part
        }
        if part.end == .max {
            count += 1
            latest = max(latest, seen)
        }
        return part
    }

    /// Merges some of the words of a part that is complete, until they are one list: this saves a third of their space, and
    /// searches read one list instead of many. No transaction must be open.
    func mergeSome() {
        guard let part = unmerged.first else { return }
        let lists = try? database.integer("SELECT count(DISTINCT segid) FROM \(part.table)_idx")
        if let lists, lists > 1 {
            // A negative number merges all lists, also those of different levels.
            let command = "INSERT INTO \(part.table)(\(part.table), rank) VALUES ('merge', -\(Self.mergedPages))"
            if (try? database.run(sql: command)) != nil { return }
        }
        // Words that could not be merged are found, too.
        unmerged.removeFirst()
    }

    /// Adds the words of a message. A transaction must be open.
    func add(_ words: UnsafeBufferPointer<UInt8>, _ number: Int64, to part: StorePart) throws(StoreFault) {
        let statement = try insertion(part)
        statement.bind(1, number)
        statement.bindUncopied(2, words, isBlob: false)
        try statement.run()
    }

    private func insertion(_ part: StorePart) throws(StoreFault) -> SQLiteStatement {
        if let known = insertions[part.number] { return known }
        // Recordings are added in the order of time: few parts are in use.
        if insertions.count >= 8 { insertions.removeAll() }
        let statement = try database.prepare("INSERT INTO \(part.table)(rowid, words) VALUES (?, ?)")
        insertions[part.number] = statement
        return statement
    }

    private static func dayStart(_ seen: Int64) -> Int64 {
        let rest = seen % day
        let (start, isTooEarly) = seen.subtractingReportingOverflow(rest < 0 ? rest + day : rest)
        return isTooEarly ? .min : start
    }

    private func find(_ seen: Int64) throws(StoreFault) -> StorePart {
        let dayStart = Self.dayStart(seen)
        guard let last = parts.last(where: { $0.start <= seen }), last.start >= dayStart else {
            return try begin(at: dayStart)
        }
        return last.end == .max && count >= size && seen > latest ? try begin(at: seen) : last
    }

    private func begin(at start: Int64) throws(StoreFault) -> StorePart {
        let number = (parts.map(\.number).max() ?? 0) &+ 1
        try database.run(sql: StorePart.creation(number))
        let statement = try database.prepare("INSERT INTO part(number, start) VALUES (?, ?)")
        statement.bind(1, number)
        statement.bind(2, start)
        try statement.run()
        parts = try StorePart.all(in: database)
        guard let part = parts.first(where: { $0.number == number }) else {
            throw StoreFault(code: .corrupt, path: database.path)
        }
        if part.end == .max { (count, latest) = (0, .min) }
        return part
    }
}

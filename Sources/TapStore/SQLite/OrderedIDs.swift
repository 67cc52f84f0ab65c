/// The ids of some stanzas in the order of their times, read a page at a time.
///
/// No statement stays open between pages, because SQLite cannot reset the write-ahead log while one is: a search whose output
/// waits for its reader must not make the log of a proxy grow.
struct IDPages {
    struct Place: Hashable, Comparable {
        let time: Int64
        let id: Int64

        static func < (left: Place, right: Place) -> Bool { (left.time, left.id) < (right.time, right.id) }
    }

    enum Order {
        case ascending, descending
    }

    /// The conditions, which contain numbers but no text.
    let condition: String
    /// The index to use; nil uses none but that of the ids.
    var index: String?
    /// The rows with words, of the part that is searched; nil for none.
    private var wordRows: String?
    /// The expression of the full-text index of the part.
    private var match: String?
    /// The maximum number of ids in a page.
    var limit = 100_000
    var order = Order.ascending
    /// The ids begin after this one, in the order of reading.
    var start: Place?
    /// A time at which or after which all of them are that were not read.
    var earliest = Int64.min
    /// Reads those that were seen in some times, and were not delayed, some minutes at a time: see ``StoreMinute``.
    var minutes: Range<Int64>?
    /// The number of rows of a page of minutes, unless a minute has more.
    var minuteLimit = 20_000

    private var nextMinute = Int64.min
    private var page: [Place] = []
    private var next = 0
    private var isEnded = false

    init(_ condition: String, index: String? = nil) {
        self.condition = condition
        self.index = index
    }

    /// - Parameters:
    ///   - match: The expression of the full-text index of the part.
    ///   - account: The number of the account; nil for all.
    init(_ part: StorePart, _ condition: String, match: String, account: Int64?) {
        self.init(condition)
        (wordRows, self.match, earliest) = (part.rows(of: account), match, part.start)
    }

    /// - Parameter places: All places, in any order.
    init(_ places: [Place]) {
        self.init("0")
        page = places.sorted()
        isEnded = true
    }

    /// The next place if it is in memory.
    fileprivate var known: Place? { next < page.count ? page[next] : nil }
    /// A place at which or after which all others are, in the order of reading.
    fileprivate var bound: Place {
        order == .ascending ? Place(time: earliest, id: .min) : Place(time: .max, id: .max)
    }
    fileprivate var isAtEnd: Bool { isEnded && next >= page.count }

    fileprivate mutating func skip() { next += 1 }

    /// The statement that reads a page: `?1` and `?2` are ``start``.
    var sql: String {
        let (than, suffix) = order == .ascending ? (">", "") : ("<", " DESC")
        let source = wordRows ?? index.map { "stanza INDEXED BY \($0)" } ?? "stanza NOT INDEXED"
        return "SELECT time, id FROM \(source) WHERE \(condition) AND time \(than)= ?1 "
            + "AND (time \(than) ?1 OR id \(than) ?2) ORDER BY time\(suffix), id\(suffix) LIMIT \(limit)"
    }

    fileprivate mutating func readPage(_ database: SQLiteDatabase) throws(StoreFault) {
        if let minutes { return try readMinutes(database, minutes) }
        let statement = try database.prepare(sql)
        let start =
            self.start
            ?? (order == .ascending ? Place(time: .min, id: .min) : Place(time: .max, id: .max))
        statement.bind(1, start.time)
        statement.bind(2, start.id)
        if let match { statement.bind(3, match) }
        try readPlaces(statement)
        self.start = page.last ?? start
        isEnded = page.count < limit
    }

    private mutating func readPlaces(_ statement: SQLiteStatement) throws(StoreFault) {
        page.removeAll(keepingCapacity: true)
        next = 0
        while try statement.step() {
            guard let time = statement.integer(0), let id = statement.integer(1) else { continue }
            page.append(Place(time: time, id: id))
        }
    }

    private mutating func readMinutes(_ database: SQLiteDatabase, _ times: Range<Int64>) throws(StoreFault) {
        let counts = try database.prepare(
            "SELECT start, sum(last - first + 1) FROM minute WHERE start >= ? AND start < ? GROUP BY start ORDER BY start LIMIT 1000"
        )
        counts.bind(1, max(nextMinute, StoreMinute.start(of: times.lowerBound)))
        counts.bind(2, times.upperBound)
        var minutes: ClosedRange<Int64>?
        var count = 0
        while count < minuteLimit, try counts.step(), let start = counts.integer(0) {
            minutes = (minutes?.lowerBound ?? start)...start
            count += Int(clamping: min(counts.integer(1) ?? 0, 1 << 32))
        }
        counts.reset()
        guard let minutes else {
            (page, next, isEnded) = ([], 0, true)
            return
        }
        let statement = try database.prepare(
            "SELECT stanza.time, stanza.id FROM \(StoreMinute.rows) WHERE minute.start BETWEEN ? AND ? "
                + "AND stanza.received IS NULL AND \(condition)"
        )
        statement.bind(1, minutes.lowerBound)
        statement.bind(2, minutes.upperBound)
        try readPlaces(statement)
        page.sort()
        let (end, isLast) = minutes.upperBound.addingReportingOverflow(StoreMinute.length)
        (nextMinute, earliest, isEnded) = (end, end, isLast)
    }
}

/// Joins several ``IDPages``, which have the same order.
struct OrderedIDs {
    private let database: SQLiteDatabase
    private var sources: [IDPages]
    /// The source whose turn it is, and the place at which that of another one comes; nil for a single source.
    private var current: (index: Int, bound: IDPages.Place?)?

    init(_ sources: [IDPages], _ database: SQLiteDatabase) {
        self.sources = sources
        self.database = database
    }

    /// Returns the next place; nil after the last.
    mutating func next() throws(StoreFault) -> IDPages.Place? {
        while true {
            if let current, let place = sources[current.index].known,
                current.bound.map({ isBefore(place, $0) }) ?? true
            {
                sources[current.index].skip()
                return place
            }
            sources.removeAll(where: \.isAtEnd)
            guard let first = choose() else { return nil }
            // A source of which nothing is known is read when its turn may have come.
            if sources[first.index].known == nil { try sources[first.index].readPage(database) }
        }
    }

    private func isBefore(_ one: IDPages.Place, _ other: IDPages.Place) -> Bool {
        one.time == other.time && one.id == other.id
            || (sources.first?.order == .descending ? one > other : one < other)
    }

    /// Sets the source whose turn it is; returns nil if there is none.
    private mutating func choose() -> (index: Int, bound: IDPages.Place?)? {
        current = nil
        for index in sources.indices {
            let place = sources[index].known ?? sources[index].bound
            guard let (best, bound) = current else {
                current = (index, nil)
                continue
            }
            let known = sources[best].known ?? sources[best].bound
            if isBefore(place, known) {
                current = (index, known)
            } else if bound.map({ isBefore(place, $0) }) ?? true {
                current = (best, place)
            }
        }
        return current
    }
}

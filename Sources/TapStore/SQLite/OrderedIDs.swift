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
    /// The column with the time, in whose order the index is: `seen` if the condition makes it the same as `time`.
    var column = "time"
    /// The expression of the full-text index, which the condition names as `?3`.
    var match: String?
    /// The maximum number of ids in a page.
    var limit = 100_000
    var order = Order.ascending
    /// The ids begin after this one, in the order of reading.
    var start: Place?
    /// A time at which or after which all of them are, before any page was read.
    var earliest = Int64.min

    private var page: [Place] = []
    private var next = 0
    private var isEnded = false

    init(_ condition: String, index: String? = nil, match: String? = nil) {
        self.condition = condition
        self.index = index
        self.match = match
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
        let source = index.map { "INDEXED BY \($0)" } ?? "NOT INDEXED"
        return "SELECT \(column), id FROM stanza \(source) WHERE \(condition) AND \(column) \(than)= ?1 "
            + "AND (\(column) \(than) ?1 OR id \(than) ?2) ORDER BY \(column)\(suffix), id\(suffix) LIMIT \(limit)"
    }

    fileprivate mutating func readPage(_ database: SQLiteDatabase) throws(StoreFault) {
        let statement = try database.prepare(sql)
        let start =
            self.start
            ?? (order == .ascending ? Place(time: .min, id: .min) : Place(time: .max, id: .max))
        statement.bind(1, start.time)
        statement.bind(2, start.id)
        if let match { statement.bind(3, match) }
        page.removeAll(keepingCapacity: true)
        next = 0
        while try statement.step() {
            guard let time = statement.integer(0), let id = statement.integer(1) else { continue }
            page.append(Place(time: time, id: id))
        }
        self.start = page.last ?? start
        isEnded = page.count < limit
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

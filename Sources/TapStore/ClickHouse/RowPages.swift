internal import TapRecord

/// The rows of one shard that meet conditions, in the order of time.
///
/// They are read in pages: a long statement would hold memory of the server. The table is in the order of accounts, so that the server
/// reads and sorts all rows in question for each page. Unless these are few, pages are therefore parts of the time, each with about as
/// many rows as one page has.
struct RowPages {
    /// The maximum number of parts into which a time is divided at once.
    private static let maximumParts = 1024

    /// The rows from one time to another, in nanoseconds. The number is an estimate: a batch may have been sent twice.
    private struct Slice {
        let first: Int64
        let last: Int64
        let count: UInt64

        var condition: String { "time >= \(first) AND time <= \(last)" }
        /// The time between both.
        var span: UInt64 { UInt64(bitPattern: last &- first) }

        func time(after distance: UInt64) -> Int64 { first &+ Int64(bitPattern: distance) }
    }

    /// Which rows the conditions select.
    enum Selection {
        /// Those of a conversation: pages follow each other.
        case conversation
        /// Those of an account, or with some words. Most searches find no more than one page, so that the first one is of all times.
        case some
        /// Possibly all.
        case any
    }

    private enum Plan {
        /// No page was read.
        case begins
        /// The page that was read last is of all times.
        case unsliced
        /// The pages are of the first slice, then of these others, of which the last comes first.
        case slices([Slice])
    }

    private let server: ClickHouseServer
    private let conditions: String
    /// The maximum number of rows in an answer.
    private let size: Int
    private let selection: Selection
    private var plan = Plan.begins
    private var slice: Slice?
    private var reader = RowBinaryReader([])
    /// The number of rows in the last page.
    private var count = 0
    private var known: AuditRow?
    /// The row before ``known``.
    private var last: AuditRow?

    /// - Parameter size: The maximum number of rows in an answer.
    init(_ server: ClickHouseServer, _ conditions: [String], _ selection: Selection, size: Int) {
        self.server = server
        self.size = max(1, size)
        self.conditions = conditions.joined(separator: " AND ")
        self.selection = selection
    }

    /// The next row; nil at the end.
    var next: AuditRow? {
        mutating get throws(StoreFault) {
            if let known { return known }
            while reader.isAtEnd {
                guard try readPage() else { return nil }
            }
            guard let row = ClickHouseSchema.row(&reader) else { throw corrupt }
            count += 1
            known = row
            return row
        }
    }

    mutating func advance() {
        last = known
        known = nil
    }

    private var corrupt: StoreFault { StoreFault(code: .corrupt, path: server.path) }

    /// The condition for the rows after the last one.
    private var isAfter: String? {
        last.map { Self.condition($0, ">") }
    }

    /// Returns the condition for the rows after another one, or before it.
    static func condition(_ row: AuditRow, _ comparison: String) -> String {
        let run = ClickHouseServer.literal(row.run)
        let (time, seen) = (row.time.nanoseconds, row.seen.nanoseconds)
        return "(time, seen, run, sequence) \(comparison) (\(time), \(seen), \(run), \(row.sequence))"
    }

    /// Reads the next page; returns false if there is none.
    private mutating func readPage() throws(StoreFault) -> Bool {
        // A page that is not full is the last one of its slice.
        let isDone = count < size
        switch plan {
        case .begins where selection == .any:
            plan = .slices(try wholeTime())
        case .begins:
            plan = .unsliced
            try readPage(nil)
        case .unsliced where isDone: return false
        case .unsliced where selection == .conversation: try readPage(nil)
        case .unsliced:
            plan = .slices(try wholeTime())
            count = 0
        case .slices(var rest):
            if isDone { slice = nil }
            if slice == nil { slice = try nextSlice(&rest) }
            plan = .slices(rest)
            guard let slice else { return false }
            try readPage(slice.condition)
        }
        return true
    }

    private mutating func readPage(_ times: String?) throws(StoreFault) {
        let all = [conditions, times, isAfter].compactMap(\.self).joined(separator: " AND ")
        reader = try Self.read(server, all, limit: size)
        count = 0
    }

    /// Returns the first rows that meet conditions, or the last ones. Rows of a batch that was sent twice are neighbours; the
    /// caller removes them.
    static func read(
        _ server: ClickHouseServer,
        _ conditions: String,
        isBackwards: Bool = false,
        limit: Int
    ) throws(StoreFault) -> RowBinaryReader {
        let direction = isBackwards ? " DESC" : ""
        let order = ["time", "seen", "run", "sequence"].map { $0 + direction }.joined(separator: ", ")
        return RowBinaryReader(
            try server.run(
                "SELECT \(ClickHouseSchema.columns(of: .stanza)) FROM stanza WHERE \(conditions) ORDER BY \(order) "
                    + "LIMIT \(limit) FORMAT RowBinary"
            )
        )
    }

    /// Returns the rest of the time, as one slice; empty if there are no more rows.
    private func wholeTime() throws(StoreFault) -> [Slice] {
        let all = [conditions, isAfter].compactMap(\.self).joined(separator: " AND ")
        var reader = RowBinaryReader(
            try server.run("SELECT min(time), max(time), count() FROM stanza WHERE \(all) FORMAT RowBinary")
        )
        let slice = Slice(first: reader.integer(), last: reader.integer(), count: reader.integer())
        guard reader.isComplete else { throw corrupt }
        return slice.count > 0 && slice.first <= slice.last ? [slice] : []
    }

    /// Removes the next slice, and divides it while it has more rows than a page.
    private func nextSlice(_ rest: inout [Slice]) throws(StoreFault) -> Slice? {
        while let next = rest.popLast() {
            guard next.count > UInt64(size), next.first < next.last else { return next }
            rest += try parts(of: next).reversed()
        }
        return nil
    }

    /// Divides a slice at equal distances, and joins the parts that fit into a page together.
    private func parts(of slice: Slice) throws(StoreFault) -> [Slice] {
        let all = [conditions, slice.condition, isAfter].compactMap(\.self).joined(separator: " AND ")
        // Twice as many as there would be pages if the rows were evenly distributed.
        let count = min(UInt64(Self.maximumParts), 2 + 2 * (slice.count / UInt64(size)))
        let width = slice.span / count + 1
        var reader = RowBinaryReader(
            try server.run(
                """
                SELECT intDiv(toUInt64(time - (\(slice.first))), \(width)) AS part, count() FROM stanza \
                WHERE \(all) GROUP BY part ORDER BY part FORMAT RowBinary
                """
            )
        )
        var slices: [Slice] = []
        while !reader.isAtEnd {
            let (part, rows) = (reader.integer(UInt64.self), reader.integer(UInt64.self))
            guard reader.isComplete, part <= slice.span / width else { throw corrupt }
            let start = part * width
            let end = start + min(width - 1, slice.span - start)
            let next = Slice(first: slice.time(after: start), last: slice.time(after: end), count: rows)
            if let before = slices.last, before.count &+ rows <= UInt64(size) {
                slices[slices.count - 1] = Slice(first: before.first, last: next.last, count: before.count + rows)
            } else {
                slices.append(next)
            }
        }
        return slices
    }
}

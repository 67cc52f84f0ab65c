internal import TapRecord

/// The rows of one shard that meet conditions, in the order of time.
///
/// They are read in pages: a long statement would hold memory of the server. The table is in the order of accounts, so that the server
/// reads and sorts all rows in question for each page. Unless these are few, pages are therefore parts of the time, each with about as
/// many rows as fit into an answer, up to the last row that was there when the search began.
struct RowPages {
    /// Number of bytes that a row needs beside those of its stanza, as an estimate.
    private static let rowBytes: UInt64 = 200
    /// The maximum number of parts into which a time is divided at once.
    private static let maximumParts: UInt64 = 1024

    /// The rows from one time to another, in nanoseconds. The number is an estimate: a batch may have been sent twice.
    private struct Slice {
        let first: Int64
        let last: Int64
        let count: UInt64
        /// Number of bytes of the stanzas.
        let size: UInt64

        var condition: String { "time >= \(first) AND time <= \(last)" }
        /// The time between both.
        var span: UInt64 { UInt64(bitPattern: last &- first) }

        func time(after distance: UInt64) -> Int64 { first &+ Int64(bitPattern: distance) }

        /// Number of bytes of the rows, as an estimate.
        var bytes: UInt64 {
            let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: RowPages.rowBytes)
            return isTooLarge ? .max : bytes.addingReportingOverflow(size).overflow ? .max : bytes + size
        }

        func fits(_ limits: ClickHouseStore.Limits) -> Bool {
            count <= UInt64(max(1, limits.slice)) && bytes <= limits.sliceBytes
        }

        /// Returns the slice with a later one.
        func joined(with later: Slice) -> Slice {
            Slice(first: first, last: later.last, count: count &+ later.count, size: size &+ later.size)
        }
    }

    /// Which rows the conditions select.
    enum Selection {
        /// Those of a conversation: pages follow each other, at first small ones: most ranges have a few rows.
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
    private let conditions: RowConditions
    private let selection: Selection
    private let limits: ClickHouseStore.Limits
    /// The maximum number of rows in the next page of all times.
    private var page: Int
    private var plan = Plan.begins
    private var slice: Slice?
    private var reader = RowBinaryReader([])
    private var texts = ClickHouseSchema.RowTexts()
    /// The number of rows in the last page, and the number that it can have at most.
    private var (count, limit) = (0, 1)
    private var known: AuditRow?
    /// The place of the row that was read last.
    private var last: RowOrder?

    init(
        _ server: ClickHouseServer,
        _ conditions: RowConditions,
        _ selection: Selection,
        _ limits: ClickHouseStore.Limits
    ) {
        (self.server, self.conditions, self.selection, self.limits) = (server, conditions, selection, limits)
        page = selection == .conversation ? min(limits.page, 4 * LaterRows.count) : limits.page
    }

    /// The place of the next row; nil at the end.
    var next: RowOrder? {
        mutating get throws(StoreFault) {
            if known != nil { return last }
            while reader.isAtEnd {
                guard try readPage() else { return nil }
            }
            known = ClickHouseSchema.row(&reader, &texts)
            guard let order = known?.order else { throw corrupt }
            count += 1
            last = order
            return order
        }
    }

    /// Removes and returns the next row, after ``next``. A copy of a row would copy its many texts.
    mutating func take() -> AuditRow? { known.take() }

    private var corrupt: StoreFault { StoreFault(code: .corrupt, path: server.path) }

    /// The condition for the rows after the last one.
    private var isAfter: String? { last.map { Self.condition($0, ">") } }

    /// Returns the condition for the rows after a place, or before it.
    static func condition(_ order: RowOrder, _ comparison: String) -> String {
        let run = ClickHouseServer.literal(order.run)
        let (time, seen) = (order.time.nanoseconds, order.seen.nanoseconds)
        // The first condition is one that the index of the table knows.
        return "time \(comparison)= \(time) "
            + "AND (time, seen, run, sequence) \(comparison) (\(time), \(seen), \(run), \(order.sequence))"
    }

    /// Reads the next page; returns false if there is none.
    private mutating func readPage() throws(StoreFault) -> Bool {
        // A page that is not full is the last one of its slice.
        let isDone = count < limit
        switch plan {
        case .begins where selection == .any: plan = .slices(try wholeTime())
        case .begins:
            plan = .unsliced
            try readPage(nil, page)
        case .unsliced where isDone: return false
        case .unsliced where selection == .conversation:
            page = min(page * 4, limits.page)
            try readPage(nil, page)
        case .unsliced: (plan, count) = (.slices(try wholeTime()), 0)
        case .slices(var rest):
            if isDone { slice = nil }
            if slice == nil { slice = try nextSlice(&rest) }
            plan = .slices(rest)
            guard let slice else { return false }
            try readPage(slice.condition, slice.fits(limits) ? limits.slice : limits.page)
        }
        return true
    }

    private mutating func readPage(_ times: String?, _ limit: Int) throws(StoreFault) {
        self.limit = max(1, limit)
        reader = try Self.read(server, conditions.and(times, isAfter), limit: self.limit)
        count = 0
    }

    /// Returns the first rows that meet conditions, or the last ones. Rows of a batch that was sent twice are neighbours; the
    /// caller removes them.
    static func read(
        _ server: ClickHouseServer,
        _ conditions: RowConditions,
        isBackwards: Bool = false,
        limit: Int
    ) throws(StoreFault) -> RowBinaryReader {
        let direction = isBackwards ? " DESC" : ""
        let order = ["time", "seen", "run", "sequence"].map { $0 + direction }.joined(separator: ", ")
        return RowBinaryReader(
            try server.run(
                "SELECT \(ClickHouseSchema.columns(of: .stanza)) FROM stanza \(conditions.clauses) ORDER BY \(order) "
                    + "LIMIT \(limit) FORMAT RowBinary"
            )
        )
    }

    /// Returns the rest of the time, as one slice; empty if there are no more rows.
    private func wholeTime() throws(StoreFault) -> [Slice] {
        var reader = RowBinaryReader(
            try server.run(
                "SELECT min(time), max(time), count(), sum(size) FROM stanza \(conditions.and(isAfter).clauses) "
                    + "FORMAT RowBinary"
            )
        )
        let (first, last) = (reader.integer(Int64.self), reader.integer(Int64.self))
        let slice = Slice(first: first, last: last, count: reader.integer(), size: reader.integer())
        guard reader.isComplete else { throw corrupt }
        return slice.count > 0 && first <= last ? [slice] : []
    }

    /// Removes the next slice, and divides it while it does not fit into an answer.
    private func nextSlice(_ rest: inout [Slice]) throws(StoreFault) -> Slice? {
        while let next = rest.popLast() {
            guard !next.fits(limits), next.first < next.last else { return next }
            rest += try parts(of: next).reversed()
        }
        return nil
    }

    /// Divides a slice at equal distances, and joins the parts that fit into an answer together.
    private func parts(of slice: Slice) throws(StoreFault) -> [Slice] {
        // Twice as many as there would be answers if the rows were evenly distributed.
        let answers = slice.count / UInt64(max(1, limits.slice)) + slice.bytes / max(1, limits.sliceBytes)
        let width = slice.span / min(Self.maximumParts, 2 + 2 * answers) + 1
        var reader = RowBinaryReader(
            try server.run(
                """
                SELECT intDiv(toUInt64(time - (\(slice.first))), \(width)) AS part, count(), sum(size) FROM stanza \
                \(conditions.and(slice.condition, isAfter).clauses) GROUP BY part ORDER BY part FORMAT RowBinary
                """
            )
        )
        var slices: [Slice] = []
        while !reader.isAtEnd {
            let part = reader.integer(UInt64.self)
            let (count, size) = (reader.integer(UInt64.self), reader.integer(UInt64.self))
            guard reader.isComplete, part <= slice.span / width else { throw corrupt }
            let start = part * width
            let end = start + min(width - 1, slice.span - start)
            let next = Slice(first: slice.time(after: start), last: slice.time(after: end), count: count, size: size)
            if let joined = slices.last?.joined(with: next), joined.fits(limits) {
                slices[slices.count - 1] = joined
            } else {
                slices.append(next)
            }
        }
        return slices
    }
}

package import TapRecord

/// Rows in the order of a search.
extension SQLiteStore {
    /// Calls `body` with each row that matches a query, in order, until it returns false.
    ///
    /// Rows are read in small steps, so that memory does not depend on their number, and `body` may take any time.
    package func rows(
        for query: SearchQuery,
        _ body: (AuditRow) throws(StoreFault) -> Bool
    ) throws(StoreFault) {
        // Another program may have added some since.
        places.removeAll()
        guard let sources = try sources(for: query) else { return }
        let pages: [IDPages]
        switch sources {
        case .rows(let rows, let order):
            for place in order { guard try body(rows[place]) else { return } }
            return
        case .pages(let found): pages = found
        }
        var reader = try RowReader(self, pages, query)
        while let rows = try reader.next() {
            for row in rows where query.matches(row) {
                guard try body(row) else { return }
            }
        }
    }

    /// The rows that may match a query.
    private enum Sources {
        case pages([IDPages])
        /// All rows that match, and their places in order.
        case rows([AuditRow], order: [Int])
    }

    /// Returns the rows that may match a query; nil for none.
    private func sources(for query: SearchQuery) throws(StoreFault) -> Sources? {
        var conditions: [String] = []
        var words = query.terms.map { "\"\($0.word)\"\($0.isPrefix ? "*" : "")" }
        var account: Int64?
        if let address = query.account {
            guard let number = try find(address) else { return nil }
            account = number
            conditions.append("account = \(number)")
            words.append("\"\(RowWriter.accountWord(number))\"")
        }
        var peers: [Int64] = []
        for address in [query.peer, query.room].compactMap(\.self) {
            guard let number = try find(address) else { return nil }
            peers.append(number)
            conditions.append("peer = \(number)")
            words.append("\"\(RowWriter.peerWord(number))\"")
        }
        var places: [String]?
        if let (one, other) = query.pair {
            places = try conversationPlaces(.people(one, other))
            guard let places, !places.isEmpty else { return nil }
        } else if let peer = peers.first, account == nil {
            places = try accounts(with: peer).map { "account = \($0) AND peer = \(peer)" }
        }
        if !query.terms.isEmpty {
            // The index of words has the account and the peer.
            if let (one, other) = query.pair, let first = try find(one), let second = try find(other) {
                let ways = [(first, second), (second, first)].map {
                    "(\"\(RowWriter.accountWord($0))\" AND \"\(RowWriter.peerWord($1))\")"
                }
                // Messages of an account to itself may have no peer.
                words.append(
                    one == other ? "\"\(RowWriter.accountWord(first))\"" : "(\(ways.joined(separator: " OR ")))"
                )
            }
            let pair = query.pair == nil ? nil : places
            return try wordSources(
                query,
                pair.map { ["(\($0.joined(separator: " OR ")))"] } ?? [],
                words.joined(separator: " AND "),
                account: account
            )
        }
        if let times = query.times, account != nil || places != nil {
            conditions.append("(\(Self.within(times, "time")) OR \(Self.within(times, "seen")))")
        }
        if let places {
            return .pages(
                places.map { place in
                    var source = IDPages(([place] + conditions).joined(separator: " AND "), index: "stanza_place")
                    source.limit = max(500, 100_000 / places.count)
                    return source
                }
            )
        }
        if account != nil { return .pages([IDPages(conditions.joined(separator: " AND "), index: "stanza_place")]) }
        return .pages(try allSources(query))
    }

    private static func within(_ times: Range<Timestamp>, _ column: String) -> String {
        "\(column) >= \(times.lowerBound.nanoseconds) AND \(column) < \(times.upperBound.nanoseconds)"
    }

    /// Returns the ids of all rows, or of those of some times.
    private func allSources(_ query: SearchQuery) throws(StoreFault) -> [IDPages] {
        let kinds = RowReader.condition(query) ?? "1"
        var live = IDPages(kinds)
        live.minutes = Int64.min..<Int64.max
        guard let times = query.times else {
            return [IDPages("received IS NOT NULL AND \(kinds)", index: "stanza_delayed"), live]
        }
        let (seen, inTime) = (Self.within(times, "seen"), Self.within(times, "time"))
        live = IDPages("\(inTime) AND \(kinds)")
        live.minutes = times.lowerBound.nanoseconds..<times.upperBound.nanoseconds
        live.earliest = times.lowerBound.nanoseconds
        let minutes =
            "minute.start >= \(StoreMinute.start(of: times.lowerBound.nanoseconds))"
            + " AND minute.start < \(times.upperBound.nanoseconds)"
        return [
            live,
            IDPages("received IS NOT NULL AND \(inTime) AND \(kinds)", index: "stanza_delayed"),
            // Delayed stanzas that were seen in these times.
            IDPages(
                "id IN (SELECT stanza.id FROM \(StoreMinute.rows) WHERE \(minutes) AND received IS NOT NULL AND \(seen)) "
                    + "AND NOT (\(inTime)) AND \(kinds)"
            ),
        ]
    }

    /// Returns the ids of the rows with some words. The parts follow each other in time, except for delayed stanzas.
    private func wordSources(
        _ query: SearchQuery,
        _ conditions: [String],
        _ match: String,
        account: Int64?
    ) throws(StoreFault) -> Sources {
        var inTime: String?
        var seen: Range<Int64>?
        if let times = query.times {
            seen = try seenTimes(of: times)
            inTime = "(\(Self.within(times, "time")) OR \(Self.within(times, "seen")))"
        }
        let parts = try StorePart.all(in: database).filter { $0.overlaps(seen) }
        let conditions = conditions + [inTime].compactMap(\.self)
        if let rows = try fewRows(query, parts, conditions, match, account: account) {
            // Rows are large, and most are in order.
            let order = rows.indices.sorted { one, other in
                rows[one].time == rows[other].time
                    ? rows[one].order < rows[other].order : rows[one].time < rows[other].time
            }
            return .rows(rows, order: order)
        }
        if let all = try allPlaces(parts, conditions, match, account: account) { return .pages([IDPages(all)]) }
        // The pages of all parts are in memory.
        let limit = max(1000, 100_000 / parts.count)
        return .pages(
            parts.flatMap { part in
                func pages(_ condition: String) -> IDPages {
                    IDPages(part, (conditions + [condition]).joined(separator: " AND "), match: match, account: account)
                }
                let live = pages("received IS NULL")
                var delayed = pages("received IS NOT NULL")
                (delayed.earliest, delayed.limit) = (.min, limit)
                return [live, delayed]
            }
        )
    }

    /// The number of rows, and of bytes of their texts, that are read at once.
    private static let (maximumRows, maximumBytes) = (20_000, 16 << 20)

    /// Returns the rows that match a query, in any order; nil if they are many. Each row is read once: to put its place in order first, its
    /// time would be read before the rest.
    private func fewRows(
        _ query: SearchQuery,
        _ parts: [StorePart],
        _ conditions: [String],
        _ match: String,
        account: Int64?
    ) throws(StoreFault) -> [AuditRow]? {
        // The rows of all parts are as they were at one time.
        try database.run("SAVEPOINT rows")
        defer { database.execute("RELEASE rows") }
        var ids: [Int64] = []
        for part in parts {
            let statement = try database.prepare(part.ids(of: account))
            statement.bind(1, match)
            while try statement.step() {
                guard ids.count < Self.maximumRows else { return nil }
                if let id = statement.integer(0) { ids.append(id) }
            }
        }
        var rows: [AuditRow] = []
        var bytes = 0
        let condition = (conditions + [RowReader.condition(query) ?? "1"]).joined(separator: " AND ")
        let lookup = try database.prepare("SELECT \(RowWriter.columns) FROM stanza WHERE id = ? AND \(condition)")
        for id in ids {
            lookup.bind(1, id)
            if try lookup.step(), let row = try row(lookup) {
                bytes += (row.body?.utf8.count ?? 0) + (row.subject?.utf8.count ?? 0) + (row.xml?.utf8.count ?? 0)
                guard bytes <= Self.maximumBytes else { return nil }
                if query.matches(row) { rows.append(row) }
            }
            lookup.reset()
        }
        return rows
    }

    /// Returns the places of all rows with some words, in any order; nil if they are many. Each part is searched once. In the
    /// order of time, it would be searched twice: for stanzas without delay, which are in the order of the parts, and for the others.
    private func allPlaces(
        _ parts: [StorePart],
        _ conditions: [String],
        _ match: String,
        account: Int64?
    ) throws(StoreFault) -> [IDPages.Place]? {
        var places: [IDPages.Place] = []
        let condition = (conditions + ["1"]).joined(separator: " AND ")
        for part in parts {
            let statement = try database.prepare("SELECT time, id FROM \(part.rows(of: account)) WHERE \(condition)")
            statement.bind(3, match)
            while try statement.step() {
                guard let time = statement.integer(0), let id = statement.integer(1) else { continue }
                guard places.count < 100_000 else { return nil }
                places.append(IDPages.Place(time: time, id: id))
            }
        }
        return places
    }

    // MARK: Conversations

    /// Returns the accounts that have stanzas to or from a peer.
    private func accounts(with peer: Int64) throws(StoreFault) -> [Int64] {
        let statement = try database.prepare(
            """
            WITH RECURSIVE known(account) AS (SELECT min(account) FROM stanza UNION ALL
                SELECT (SELECT min(account) FROM stanza WHERE account > known.account) FROM known WHERE account NOTNULL)
            SELECT account FROM known WHERE account NOTNULL
                AND EXISTS (SELECT 1 FROM stanza WHERE stanza.account = known.account AND peer = \(peer))
            """
        )
        var accounts: [Int64] = []
        while try statement.step() {
            if let account = statement.integer(0) { accounts.append(account) }
        }
        return accounts
    }

    package func rows(
        of conversation: Conversation,
        _ query: SearchQuery,
        from time: Timestamp,
        isBackwards: Bool
    ) throws(StoreFault) -> any RowSource {
        let known = places[conversation]
        let conditions = if let known { known } else { try conversationPlaces(conversation) }
        if places.count >= 1000 { places.removeAll() }
        places[conversation] = conditions
        let sources = conditions.map { condition in
            var source = IDPages(condition, index: "stanza_place")
            source.order = isBackwards ? .descending : .ascending
            source.start = IDPages.Place(time: time.nanoseconds, id: isBackwards ? .max : .min)
            // A room has the copies of many accounts.
            source.limit = max(8, 512 / conditions.count)
            return source
        }
        return try RowReader(self, sources, query, count: 64)
    }

    /// Conversations are found by an index.
    package func isDense(_ query: SearchQuery) -> Bool { false }

    /// Returns the conditions by which the index `stanza_place` finds the stanzas of a conversation.
    func conversationPlaces(_ conversation: Conversation) throws(StoreFault) -> [String] {
        switch conversation {
        case .people(let one, let other):
            let (first, second) = (try find(one), try find(other))
            if one == other { return first.map { ["account = \($0) AND peer = \($0)", Self.own($0)] } ?? [] }
            guard let first, let second else { return [] }
            return ["account = \(first) AND peer = \(second)", "account = \(second) AND peer = \(first)"]
        case .room(let room):
            guard let number = try find(room) else { return [] }
            return try accounts(with: number).map { "account = \($0) AND peer = \(number)" } + [Self.own(number)]
        }
    }

    /// The place of stanzas that name no other end.
    private static func own(_ account: Int64) -> String { "account = \(account) AND peer IS NULL" }
}

/// Reads rows by their ids.
struct RowReader: RowSource {
    private let store: SQLiteStore
    private let statement: SQLiteStatement
    private var ids: OrderedIDs
    private var ahead: IDPages.Place?
    private let count: Int

    /// - Parameter count: The number of rows to read at once.
    init(_ store: SQLiteStore, _ sources: [IDPages], _ query: SearchQuery, count: Int = 256) throws(StoreFault) {
        self.store = store
        self.count = count
        ids = OrderedIDs(sources, store.database)
        let condition = Self.condition(query).map { " AND \($0)" } ?? ""
        statement = try store.database.prepare("SELECT \(RowWriter.columns) FROM stanza WHERE id = ?\(condition)")
    }

    /// The condition on the kind of a query's rows; nil without one.
    static func condition(_ query: SearchQuery) -> String? {
        guard !query.kinds.isEmpty else { return "kind = 0 AND body IS NOT NULL" }
        guard query.kinds.count < AuditRow.Kind.allCases.count else { return nil }
        return "kind IN (\(query.kinds.map { "\($0.rawValue)" }.sorted().joined(separator: ", ")))"
    }

    /// Returns the next rows in order of time, also if their ids come in descending order; nil at the end. Rows with the
    /// same time come together.
    mutating func next() throws(StoreFault) -> [AuditRow]? {
        var places: [IDPages.Place] = []
        while let place = try nextPlace() {
            if places.count >= count, places.last?.time != place.time {
                ahead = place
                break
            }
            places.append(place)
        }
        guard !places.isEmpty else { return nil }
        var rows: [AuditRow] = []
        // One transaction is faster than one for each row, and can be inside that of a writer.
        try store.database.run("SAVEPOINT rows")
        defer { store.database.execute("RELEASE rows") }
        for place in places {
            statement.bind(1, place.id)
            if try statement.step(), let row = try store.row(statement) { rows.append(row) }
            statement.reset()
        }
        let isInOrder = rows.indices.dropFirst().allSatisfy { rows[$0 - 1].time < rows[$0].time }
        return isInOrder ? rows : rows.sorted { $0.order < $1.order }
    }

    private mutating func nextPlace() throws(StoreFault) -> IDPages.Place? {
        if let ahead {
            self.ahead = nil
            return ahead
        }
        return try ids.next()
    }
}

internal import TapCapture
package import TapRecord

/// An audit store in ClickHouse; used by one thread at a time.
package final class ClickHouseStore: AuditStore {
    /// The number of rows that one insertion has at most: more would take much memory, fewer would make many small parts.
    private static let batch = 50_000
    /// The number of rows that are read at a time.
    private static let page = 20_000

    private let server: ClickHouseServer
    private var rows = RowBinaryWriter()
    private var rowCount = 0
    /// The run of the waiting rows, and the numbers of the first and last of them.
    private var span: (run: String, first: UInt64, last: UInt64)?
    private var sessions = RowBinaryWriter()
    private var joined: [SessionKey: AuditSession] = [:]

    private struct SessionKey: Hashable {
        let run: String
        let number: UInt64
    }

    package var path: String { server.path }

    /// Connects to a store.
    ///
    /// - Parameters:
    ///   - transports: One for each host of the address.
    ///   - password: The password; nil for none.
    /// - Throws: ``StoreFault`` if no host answers, or the store does not exist.
    package init(
        _ address: ClickHouseAddress,
        _ transports: [ClickHouseTransport],
        password: String?
    ) throws(StoreFault) {
        server = ClickHouseServer(address, transports, password: password)
        _ = try server.version()
        _ = try server.run("SELECT count() FROM stanza WHERE run = '' FORMAT RowBinary")
    }

    /// Creates the database and its tables, as far as they do not exist. Returns the statements.
    @discardableResult
    package static func initialize(
        _ address: ClickHouseAddress,
        _ transports: [ClickHouseTransport],
        password: String?
    ) throws(StoreFault) -> [String] {
        let server = ClickHouseServer(address, transports, password: password)
        let isOld = try server.isOld()
        let statements = ClickHouseSchema.statements(address.database, isOld: isOld)
        for statement in statements {
            let settings = isOld ? [("allow_experimental_low_cardinality_type", "1")] : []
            _ = try server.run(statement, settings: settings, isInDatabase: false)
        }
        return statements
    }

    // MARK: Writing

    package func add(_ entry: AuditEntry) throws(StoreFault) {
        switch entry {
        case .stanza(let row):
            ClickHouseSchema.append(row, to: &rows)
            rowCount += 1
            span = (span?.run ?? row.run, span?.first ?? row.sequence, row.sequence)
            if rowCount >= Self.batch { try sendRows() }
        case .session(let session): join(session)
        }
    }

    /// Sends what was added. After an error, it can be tried again.
    package func commit() throws(StoreFault) {
        try sendRows()
        try sendSessions()
    }

    package func abandon() {
        rows.removeAll()
        rowCount = 0
        span = nil
    }

    /// Partitions are days: those that are older than the limit are dropped, one at a time.
    package func retain(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool {
        guard let age = limit.age else { return false }
        // A server's times begin in 1970; an earlier one would be a time in the future.
        let bound = max(0, (now.nanoseconds - age.wholeNanoseconds) / 1_000_000_000)
        let statement = """
            SELECT DISTINCT partition FROM system.parts WHERE active AND table = 'stanza' AND database = \
            \(ClickHouseServer.literal(server.address.database)) AND partition < toString(toDate(toDateTime(\(bound), 'UTC'), 'UTC')) \
            ORDER BY partition LIMIT 2 FORMAT TabSeparated
            """
        let days = String(decoding: try server.run(statement), as: UTF8.self).split(separator: "\n")
        guard let day = days.first else { return false }
        _ = try server.run("ALTER TABLE stanza DROP PARTITION \(ClickHouseServer.literal(String(day)))")
        return days.count > 1
    }

    package var isInPlace: Bool { true }
    package func close() {}

    private func sendRows() throws(StoreFault) {
        guard rowCount > 0, let span else { return }
        // The same batch has the same token, so that a server which knows tokens keeps it once.
        try insert(
            rows.bytes,
            into: "stanza (\(ClickHouseSchema.columns))",
            token: "\(span.run)/\(span.first)-\(span.last)/\(rowCount)"
        )
        rows.removeAll()
        rowCount = 0
        self.span = nil
    }

    private func insert(_ data: [UInt8], into table: String, token: String) throws(StoreFault) {
        var settings: [(String, String)] = []
        if try !server.isOld() {
            // The server would answer before the rows are stored.
            settings = [("async_insert", "0"), ("insert_deduplication_token", token)]
        }
        let compressor = Compressor(.gzip, isFast: true)
        var compressed = compressor?.compress(data.span.bytes) ?? []
        if let compressor { compressed += compressor.finish() }
        _ = try server.run(
            "INSERT INTO \(table) FORMAT RowBinary",
            data: compressor == nil ? data : compressed,
            isCompressed: compressor != nil,
            settings: settings
        )
    }

    /// What several records say of a session is one row, of which the newest version is kept.
    private func join(_ session: AuditSession) {
        let key = SessionKey(run: session.run, number: session.number)
        var known = joined[key] ?? session
        known.add(session)
        joined[key] = known
    }

    private func sendSessions() throws(StoreFault) {
        guard !joined.isEmpty else { return }
        sessions.removeAll()
        for session in joined.values.sorted(by: { ($0.run, $0.number) < ($1.run, $1.number) }) {
            let version = max(session.began?.nanoseconds ?? 0, session.ended?.nanoseconds ?? 0)
            ClickHouseSchema.append(session, version: UInt64(clamping: version), to: &sessions)
        }
        try insert(sessions.bytes, into: "session (\(ClickHouseSchema.sessionColumns))", token: "")
        // Later records complete a session that has not ended.
        joined = joined.filter { $0.value.ended == nil }
    }

    // MARK: Reading

    package func candidates(for query: SearchQuery, _ body: (AuditRow) -> Void) throws(StoreFault) {
        var conditions: [String] = []
        func equal(_ column: String, _ value: String) -> String { "\(column) = \(ClickHouseServer.literal(value))" }
        if let account = query.account { conditions.append(equal("account", account)) }
        for peer in [query.peer, query.room].compactMap(\.self) { conditions.append(equal("peer", peer)) }
        if let (one, other) = query.pair {
            let ends = [(one, other), (other, one)].map {
                "(\(equal("account", $0)) AND (\(equal("peer", $1))\($0 == $1 ? " OR peer = ''" : "")))"
            }
            conditions.append("(\(ends.joined(separator: " OR ")))")
        }
        if let times = query.times {
            let (start, end) = (times.lowerBound.nanoseconds, times.upperBound.nanoseconds)
            conditions.append("(seen >= \(start) AND seen < \(end) OR time >= \(start) AND time < \(end))")
        }
        if query.kinds.isEmpty {
            conditions.append("kind = 0 AND isNotNull(body)")
        } else {
            let kinds = query.kinds.map { "\($0.rawValue)" }.sorted()
            conditions.append("kind IN (\(kinds.joined(separator: ", ")))")
        }
        // The size of a statement is limited; the caller checks all words.
        for term in query.terms.prefix(16) {
            guard let pattern = WordPattern.containing(term.word) else { continue }
            conditions.append("match(assumeNotNull(body), \(ClickHouseServer.literal(pattern)))")
        }
        try readPages(conditions, body)
    }

    /// Reads the rows in the order of time, page by page: a statement that took long would hold resources of the server.
    private func readPages(_ conditions: [String], _ body: (AuditRow) -> Void) throws(StoreFault) {
        var place: String?
        while true {
            let all = (conditions + [place].compactMap(\.self)).joined(separator: " AND ")
            // Identity is the run and the number: a batch may have been sent twice.
            let statement = """
                SELECT \(ClickHouseSchema.columns) FROM stanza WHERE \(all) ORDER BY time, seen, run, sequence LIMIT 1 BY run, sequence \
                LIMIT \(Self.page) FORMAT RowBinary
                """
            var reader = RowBinaryReader(try server.run(statement))
            var count = 0
            var last: AuditRow?
            while !reader.isAtEnd {
                guard let row = ClickHouseSchema.row(&reader) else { throw StoreFault(code: .corrupt, path: path) }
                body(row)
                count += 1
                last = row
            }
            guard count == Self.page, let last else { return }
            let run = ClickHouseServer.literal(last.run)
            let (time, seen) = (last.time.nanoseconds, last.seen.nanoseconds)
            place = "(time, seen, run, sequence) > (\(time), \(seen), \(run), \(last.sequence))"
        }
    }

    package func sessions(_ body: (AuditSession) -> Void) throws(StoreFault) {
        let columns = ClickHouseSchema.sessionColumns
        let statement = """
            SELECT \(columns) FROM session ORDER BY run, number, version DESC LIMIT 1 BY run, number FORMAT RowBinary
            """
        var reader = RowBinaryReader(try server.run(statement))
        while !reader.isAtEnd {
            guard let session = ClickHouseSchema.session(&reader) else { throw StoreFault(code: .corrupt, path: path) }
            body(session)
        }
    }

    package func overview() throws(StoreFault) -> StoreOverview {
        // Duplicates are counted once.
        let statement = """
            SELECT uniqExact(run, sequence), uniqExactIf(run, sequence, isNotNull(body)), uniqExact(run), uniqExact(account), \
            min(seen), max(seen) FROM stanza FORMAT RowBinary
            """
        var reader = RowBinaryReader(try server.run(statement))
        let counts = (0..<4).map { _ in Int(clamping: reader.integer(UInt64.self)) }
        let (first, last) = (reader.integer(Int64.self), reader.integer(Int64.self))
        let size = """
            SELECT toInt64(sum(bytes)) FROM system.parts WHERE active AND database = \
            \(ClickHouseServer.literal(server.address.database)) FORMAT RowBinary
            """
        var sizeReader = RowBinaryReader(try server.run(size))
        guard reader.isComplete else { throw StoreFault(code: .corrupt, path: path) }
        return StoreOverview(
            stanzas: counts[0],
            bodies: counts[1],
            runs: counts[2],
            accounts: counts[3],
            pictures: 0,
            vCards: 0,
            times: counts[0] > 0 && first <= last
                ? Timestamp(nanoseconds: first)...Timestamp(nanoseconds: last) : nil,
            bytes: sizeReader.integer(Int64.self)
        )
    }
}

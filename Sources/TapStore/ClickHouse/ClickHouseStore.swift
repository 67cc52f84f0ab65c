internal import TapCapture
package import TapRecord

/// An audit store in ClickHouse; used by one thread at a time. It is read here, and written by a ``SpoolWriter``.
package final class ClickHouseStore: AuditStore {
    /// The maximum number of rows of sessions in an answer.
    private static let page = 20_000
    /// The number of rows up to which an overview counts exactly: the server needs memory for each of them.
    private static let exactCount = 20_000_000

    private let cluster: ClickHouseCluster
    private let limits: Limits

    private var path: String { cluster.address.description }

    /// The numbers of stanzas that are read at once.
    package struct Limits: Sendable {
        /// The maximum number in the first answers to a search, and in those for a single time.
        package var page = 20_000
        /// The maximum number in the answers of all shards together to a long search, for parts of the time.
        package var slice = 200_000
        /// The maximum number of bytes of these answers, as an estimate.
        package var sliceBytes: UInt64 = 128 << 20
        /// The number up to which all are read at once for a search with context; if many of them match, four times as many are.
        package var short = 50_000

        package init() {}
    }

    /// Connects to a store.
    ///
    /// - Throws: ``StoreFault`` if no host of a shard answers, or the store does not exist.
    package init(_ cluster: ClickHouseCluster, _ limits: Limits = Limits()) throws(StoreFault) {
        self.cluster = cluster
        self.limits = limits
        for shard in cluster.shards { try shard.check() }
    }

    /// Creates the database and its tables, as far as they do not exist. Returns the statements.
    ///
    /// - Parameter name: The cluster in whose servers the tables are replicated; nil for tables of each server alone.
    /// - Throws: ``StoreFault`` if one of the servers is away; the others then have their tables.
    package static func initialize(_ cluster: ClickHouseCluster, onCluster name: String?) throws(StoreFault) -> [String]
    {
        var all: [String] = []
        var faults: [StoreFault] = []
        // With a cluster, any server has its statements executed by all.
        let servers = name == nil ? cluster.shards.flatMap(\.all) : Array(cluster.shards.prefix(1))
        for server in servers {
            do throws(StoreFault) {
                for statement in try initialize(server, cluster.address.database, onCluster: name)
                where !all.contains(statement) { all.append(statement) }
            } catch {
                guard case .unreachable = error.code else { throw error }
                faults.append(error)
            }
        }
        // The others have their tables now.
        if let fault = faults.first { throw fault }
        return all
    }

    private static func initialize(
        _ server: ClickHouseServer,
        _ database: String,
        onCluster name: String?
    ) throws(StoreFault) -> [String] {
        let isOld = try server.isOld()
        let window = "non_replicated_deduplication_window"
        let hasWindow = isOld ? false : try !server.settings([window], in: "merge_tree_settings").isEmpty
        let statements = ClickHouseSchema.statements(database, isOld: isOld, hasWindow: hasWindow, onCluster: name)
        let settings = isOld ? [("allow_experimental_low_cardinality_type", "1")] : []
        for statement in statements { _ = try server.run(statement, settings: settings, isInDatabase: false) }
        return statements
    }

    package func retain(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool {
        var hasMore = false
        for shard in cluster.shards where try shard.retain(limit, at: now) { hasMore = true }
        return hasMore
    }

    // MARK: Reading

    package func rows(for query: SearchQuery, _ body: (AuditRow) throws(StoreFault) -> Bool) throws(StoreFault) {
        let isSome = query.account != nil || query.pair != nil || !query.terms.isEmpty
        var rows = rows(RowConditions(query), isSome ? .some : .any)
        while let row = try rows.next() {
            guard query.matches(row) else { continue }
            guard try body(row) else { return }
        }
    }

    private func rows(_ conditions: RowConditions, _ selection: RowPages.Selection) -> MergedRows {
        var limits = limits
        limits.slice = max(1, limits.slice / cluster.shards.count)
        limits.sliceBytes /= UInt64(cluster.shards.count)
        return MergedRows(cluster.shards.map { RowPages($0, conditions, selection, limits) })
    }

    package func rows(
        of conversation: Conversation,
        _ query: SearchQuery,
        from time: Timestamp,
        isBackwards: Bool
    ) -> any RowSource {
        let conditions = RowConditions(query).of(conversation)
            .and("time \(isBackwards ? "<=" : ">=") \(time.nanoseconds)")
        return isBackwards
            ? EarlierRows(cluster.shards, conditions, limit: limits.page) : LaterRows(rows(conditions, .conversation))
    }

    package func isDense(_ query: SearchQuery) throws(StoreFault) -> Bool {
        // Without words, the server need not read the texts.
        let all = try count(RowConditions(query.withoutWords))
        guard all > limits.short else { return true }
        guard all <= 4 * limits.short else { return false }
        // The messages around a match cost as much as reading a few hundred rows.
        return try all / 200 <= count(RowConditions(query))
    }

    /// Returns the number of rows, in which those that were sent twice are counted twice.
    private func count(_ conditions: RowConditions) throws(StoreFault) -> Int {
        var count = 0
        for shard in cluster.shards {
            var reader = RowBinaryReader(
                try shard.run("SELECT count() FROM stanza \(conditions.clauses) FORMAT RowBinary")
            )
            // A server can send any number.
            count += Int(clamping: min(reader.integer(UInt64.self), 1 << 40))
            guard reader.isComplete else { throw StoreFault(code: .corrupt, path: path) }
        }
        return count
    }

    package func times() throws(StoreFault) -> ClosedRange<Timestamp>? {
        var times: ClosedRange<Timestamp>?
        for shard in cluster.shards {
            var reader = RowBinaryReader(
                try shard.run("SELECT count(), min(seen), max(seen) FROM stanza FORMAT RowBinary")
            )
            let count = reader.integer(UInt64.self)
            let (first, last) = (Timestamp(nanoseconds: reader.integer()), Timestamp(nanoseconds: reader.integer()))
            guard reader.isComplete else { throw StoreFault(code: .corrupt, path: path) }
            guard count > 0, first <= last else { continue }
            let known = times ?? first...last
            times = min(known.lowerBound, first)...max(known.upperBound, last)
        }
        return times
    }

    package func sessions(_ body: (AuditSession) -> Void) throws(StoreFault) {
        for shard in cluster.shards { try sessions(of: shard, body) }
    }

    /// Joins the rows of each session: one for each record of it.
    private func sessions(of shard: ClickHouseServer, _ body: (AuditSession) -> Void) throws(StoreFault) {
        var joined: AuditSession?
        var count = 0
        repeat {
            var condition = ""
            if let joined {
                condition = "WHERE (run, number) >= (\(ClickHouseServer.literal(joined.run)), \(joined.number)) "
            }
            let statement = """
                SELECT \(ClickHouseSchema.columns(of: .session)) FROM session \(condition)\
                ORDER BY run, number, sequence LIMIT 1 BY run, sequence LIMIT \(Self.page) FORMAT RowBinary
                """
            var reader = RowBinaryReader(try shard.run(statement))
            // The last session of a page may continue on the next one, which begins with it.
            joined = nil
            count = 0
            while !reader.isAtEnd {
                guard let part = ClickHouseSchema.session(&reader) else { throw StoreFault(code: .corrupt, path: path) }
                count += 1
                if var session = joined, session.run == part.run, session.number == part.number {
                    session.add(part)
                    joined = session
                } else {
                    if let session = joined { body(session) }
                    joined = part
                }
            }
        } while count == Self.page
        if let joined { body(joined) }
    }

    package func overview() throws(StoreFault) -> StoreOverview {
        var sum = StoreOverview()
        var runs: Set<String> = []
        for shard in cluster.shards {
            let (part, names) = try overview(of: shard)
            sum.add(part)
            runs.formUnion(names)
        }
        sum.runs = runs.count
        return sum
    }

    private func overview(of shard: ClickHouseServer) throws(StoreFault) -> (StoreOverview, runs: [String]) {
        var counter = RowBinaryReader(try shard.run("SELECT count() FROM stanza FORMAT RowBinary"))
        let isEstimated = counter.integer(UInt64.self) > UInt64(Self.exactCount)
        // Duplicates are counted once.
        let unique = isEstimated ? "uniq" : "uniqExact"
        let statement = """
            SELECT \(unique)(run, sequence), \(unique)If(run, sequence, isNotNull(body)), \(unique)(account), \
            min(seen), max(seen) FROM stanza FORMAT RowBinary
            """
        var reader = RowBinaryReader(try shard.run(statement))
        var overview = StoreOverview()
        overview.isEstimated = isEstimated
        overview.stanzas = Int(clamping: reader.integer(UInt64.self))
        overview.bodies = Int(clamping: reader.integer(UInt64.self))
        overview.accounts = Int(clamping: reader.integer(UInt64.self))
        let (first, last) = (reader.integer(Int64.self), reader.integer(Int64.self))
        if overview.stanzas > 0, first <= last {
            overview.times = Timestamp(nanoseconds: first)...Timestamp(nanoseconds: last)
        }
        var gaps = RowBinaryReader(
            try shard.run(
                "SELECT toUInt64(sum(n)) FROM (SELECT max(stanzas) AS n FROM gap GROUP BY run, first, last) FORMAT RowBinary"
            )
        )
        overview.missing = Int(clamping: gaps.integer(UInt64.self))
        let database = ClickHouseServer.literal(cluster.address.database)
        let size =
            "SELECT toInt64(sum(bytes)) FROM system.parts WHERE active AND database = \(database) FORMAT RowBinary"
        var sizeReader = RowBinaryReader(try shard.run(size))
        overview.bytes = sizeReader.integer(Int64.self)
        var names = RowBinaryReader(try shard.run("SELECT DISTINCT run FROM stanza FORMAT RowBinary"))
        var runs: [String] = []
        while !names.isAtEnd { runs.append(names.text()) }
        guard reader.isComplete, gaps.isComplete, sizeReader.isComplete, names.isComplete else {
            throw StoreFault(code: .corrupt, path: path)
        }
        return (overview, runs)
    }
}

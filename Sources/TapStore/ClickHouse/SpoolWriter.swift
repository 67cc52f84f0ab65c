internal import TapCapture
internal import TapRecord

/// Adds rows to the spool of a store; used by one thread at a time.
final class SpoolWriter: AuditWriter {
    /// The rows of one table for one shard that are not in the spool yet.
    private struct Rows {
        var bytes = RowBinaryWriter()
        var facts: SpoolBlock.Facts

        init(_ table: SpoolBlock.Table) {
            facts = SpoolBlock.Facts(table: table, rows: 0, first: .max, last: 0, time: Timestamp(nanoseconds: .max))
        }

        mutating func count(_ sequence: UInt64, _ time: Timestamp) {
            facts.rows += 1
            facts.first = min(facts.first, sequence)
            facts.last = max(facts.last, sequence)
            facts.time = min(facts.time, time)
        }
    }

    /// The number of rows, and of bytes of one shard's stanzas, at which they are added to the spool: they bound the memory of a writer
    /// that never commits.
    private static let (batch, batchSize) = (20_000, 4 << 20)

    fileprivate let queue: Spool
    private let address: String
    private var stanzas: [Rows]
    private var sessions: [Rows]
    private var gaps: [StoreGap] = []
    private var added = 0
    private let compressor: Compressor?

    /// Starts a thread for each shard.
    init(_ cluster: ClickHouseCluster, _ spool: Spool, _ limit: StoreLimit) throws(StoreFault) {
        queue = spool
        address = cluster.address.description
        compressor = Compressor(.gzip, isFast: true)
        stanzas = Array(repeating: Rows(.stanza), count: cluster.shards.count)
        sessions = Array(repeating: Rows(.session), count: cluster.shards.count)
        try SpoolSender.start(cluster, spool, limit)
    }

    func add(_ row: AuditRow) throws(StoreFault) {
        let shard = ClickHouseCluster.shard(row.account, of: stanzas.count)
        ClickHouseSchema.append(row, to: &stanzas[shard].bytes)
        stanzas[shard].count(row.sequence, row.seen)
        if stanzas[shard].bytes.bytes.count >= Self.batchSize { added = Self.batch }
        try countAddition()
    }

    func add(_ session: AuditSession) throws(StoreFault) {
        let place = session.source ?? RecordPlace(sequence: 0, time: session.began ?? Timestamp(nanoseconds: 0))
        // All records of a session are on one shard, before and after its account is known.
        let shard = ClickHouseCluster.shard("\(session.run)/\(session.number)", of: sessions.count)
        ClickHouseSchema.append(session, place, to: &sessions[shard].bytes)
        sessions[shard].count(place.sequence, place.time)
        try countAddition()
    }

    func add(_ gap: StoreGap) throws(StoreFault) {
        gaps.append(gap)
        try countAddition()
    }

    private func countAddition() throws(StoreFault) {
        added += 1
        if added >= Self.batch { try commit() }
    }

    /// Adds the rows to the spool. After an error, they are waiting still.
    func commit() throws(StoreFault) {
        guard added > 0 else { return }
        var additions: [Spool.Addition] = []
        for shard in stanzas.indices {
            for rows in [stanzas[shard], sessions[shard]] where rows.facts.rows > 0 {
                guard let member = member(rows.bytes.bytes) else {
                    throw StoreFault(code: .other("no memory"), path: address)
                }
                let bytes = SpoolBlock.encode(rows.facts, member)
                additions.append(Spool.Addition(shard: shard, facts: rows.facts, bytes: bytes))
            }
        }
        // Which shard lacks its stanzas is not known.
        additions += gaps.map { gap in
            let (facts, bytes) = gap.block
            return Spool.Addition(shard: 0, facts: facts, bytes: bytes)
        }
        try queue.append(additions)
        abandon()
    }

    private func member(_ bytes: [UInt8]) -> [UInt8]? {
        guard let compressor, let compressed = compressor.compress(bytes.span.bytes) else { return nil }
        return compressed + compressor.finish()
    }

    func abandon() {
        for shard in stanzas.indices {
            stanzas[shard].bytes.removeAll()
            stanzas[shard].facts = Rows(.stanza).facts
            sessions[shard].bytes.removeAll()
            sessions[shard].facts = Rows(.session).facts
        }
        gaps.removeAll()
        added = 0
    }

    /// The threads that send delete what is old.
    func retain(_ limit: StoreLimit, at now: Timestamp) -> Bool { false }

    var isInPlace: Bool { true }

    func close() { _ = queue.close(until: Monitor.now + 5_000_000_000) }

    func finish() throws(StoreFault) {
        var failure: StoreFault?
        do throws(StoreFault) { try commit() } catch { failure = error }
        if let fault = queue.close(until: .max) { failure = failure ?? fault }
        if let failure { throw failure }
    }
}

extension AuditWriter {
    /// The rows on their way to a server; nil for a file.
    package var spool: Spool? { (self as? SpoolWriter)?.queue }
}

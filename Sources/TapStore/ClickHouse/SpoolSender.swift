internal import TapCapture
internal import TapRecord

/// Sends the segments of one shard, one after the other, on a thread that may wait for the server.
final class SpoolSender: Sendable {
    /// The time between attempts: from the first to the longest, in nanoseconds.
    private static let (firstDelay, lastDelay): (Int64, Int64) = (500_000_000, 30_000_000_000)
    /// The number of attempts after which rows are put aside although the server has accepted none of their batch: with few rows, it
    /// is unknown whether they or the server are at fault.
    private static let attempts = 8
    /// The time after which old rows are deleted again, in nanoseconds.
    private static let retentionInterval: Int64 = 3_600_000_000_000

    private let shard: Int
    private let spool: Spool
    private let limit: StoreLimit
    // Used only by the thread after its start.
    private nonisolated(unsafe) let server: ClickHouseServer

    init(_ server: ClickHouseServer, _ shard: Int, _ spool: Spool, _ limit: StoreLimit) {
        (self.server, self.shard, self.spool, self.limit) = (server, shard, spool, limit)
    }

    /// Starts a thread for each shard. If one cannot be started, the spool is closed.
    static func start(_ cluster: ClickHouseCluster, _ spool: Spool, _ limit: StoreLimit) throws(StoreFault) {
        do throws(StoreFault) {
            for (number, shard) in cluster.shards.enumerated() {
                try SpoolSender(shard, number, spool, limit).start()
            }
        } catch {
            _ = spool.close(until: 0)
            throw error
        }
    }

    private func start() throws(StoreFault) {
        spool.begin()
        let result = WorkerThread.start(named: "store-\(shard)") { self.work() }
        guard result == 0 else {
            spool.end(nil)
            throw FileBytes.fault(server.path, result)
        }
    }

    private func work() {
        var retentionTime = limit.age == nil ? Int64.max : Monitor.now
        while true {
            if Monitor.now >= retentionTime, !spool.isClosing {
                retentionTime = Monitor.now + Self.retentionInterval
                deleteOldRows()
            }
            guard let segment = spool.next(shard, until: retentionTime) else {
                if spool.isClosing { return spool.end(nil) }
                continue
            }
            guard send(segment) else { return spool.end(segment) }
        }
    }

    /// Sends a segment until the server confirms it; returns false if the spool is closed before.
    private func send(_ segment: SpoolSegment) -> Bool {
        var contents: SpoolSegment.Contents?
        var confirmed: Set<SpoolBlock.Table> = []
        var rejected = 0
        var delay = Self.firstDelay
        var attempt = 0
        while true {
            attempt += 1
            do throws(StoreFault) {
                let known = if let contents { contents } else { try segment.read() }
                contents = known
                for table in SpoolBlock.Table.allCases where !confirmed.contains(table) {
                    rejected += try send(known, table, of: segment, attempt)
                    confirmed.insert(table)
                }
                if let gap = StoreGap.ofDamage(segment, known) {
                    try server.insert(gap.member, into: .gap, token: "\(segment.token)/damage")
                }
                spool.confirm(segment, known, rejected: rejected, name: server.name)
                return true
            } catch {
                if contents == nil, error.code == .missing {
                    spool.lose(segment, name: server.name)
                    return true
                }
                // Taps that lost a server at the same time must not return at the same time.
                let time = Int64.random(in: (delay / 2)...delay)
                delay = min(delay * 2, Self.lastDelay)
                guard spool.wait(segment, after: error, until: Monitor.now + time) else { return false }
            }
        }
    }

    /// Sends the rows of a table; returns the number of stanzas that the server has refused.
    private func send(
        _ contents: SpoolSegment.Contents,
        _ table: SpoolBlock.Table,
        of segment: SpoolSegment,
        _ attempt: Int
    ) throws(StoreFault) -> Int {
        let payload = contents.payload(table)
        guard !payload.isEmpty else { return 0 }
        let token = "\(segment.token)/\(table.rawValue)"
        do throws(StoreFault) {
            try server.insert(payload, into: table, token: token)
            return 0
        } catch {
            guard case .row = error.code else { throw error }
            var batch = RefusedBatch(table, token: token)
            for block in contents.blocks where block.facts.table == table {
                try batch.send(Array(contents.bytes[block.payload]), rows: block.facts.rows, to: server)
            }
            guard batch.accepted > 0 || attempt >= Self.attempts else { throw error }
            return try putAside(batch, of: segment)
        }
    }

    /// Writes the rows that the server does not accept to a file; returns the number of stanzas among them.
    private func putAside(_ batch: RefusedBatch, of segment: SpoolSegment) throws(StoreFault) -> Int {
        guard let fault = batch.refused.first?.fault else { return 0 }
        let path = "\(segment.folder.path)/rejected-\(segment.name).jsonl"
        var lines: [UInt8] = []
        for row in batch.refused {
            lines += row.json(of: batch.table).utf8
            lines.append(0x0A)
        }
        try FileBytes.write(lines, to: path, appends: true)
        let stanzas = batch.table == .stanza ? batch.refused.count : 0
        spool.reject(rows: batch.refused.count, stanzas: stanzas, fault, file: path)
        return stanzas
    }

    private func deleteOldRows() {
        do throws(StoreFault) {
            while try server.retain(limit), !spool.isClosing {}
        } catch {
            // A server that is away is asked again later.
            if case .unreachable = error.code { return }
            spool.reportNotDeleted(error)
        }
    }
}

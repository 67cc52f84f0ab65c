internal import Synchronization
internal import TapCapture

/// A store that can be opened: a file, or a database of ClickHouse.
package struct StorePlace: Sendable, Equatable {
    /// How a store is written.
    package struct Writing: Sendable {
        /// The identifier of the run.
        package var run: String
        package var limit = StoreLimit()
        /// What happens if the rows for a server need too much space.
        package var whenFull = Spool.WhenFull.drop
        package var onEvent: @Sendable (Spool.Event) -> Void = { _ in }

        package init(run: String) { self.run = run }
    }

    private enum Kind: Sendable {
        case file
        case server(ClickHouseAddress, Spool.Configuration, @Sendable () throws(StoreFault) -> ClickHouseCluster)
    }

    /// The path or the address, without secrets, for messages.
    package let name: String
    private let kind: Kind

    /// Places with the same name are the same.
    package static func == (one: StorePlace, other: StorePlace) -> Bool { one.name == other.name }

    /// Whether it is a file of this machine.
    package var isFile: Bool { if case .file = kind { true } else { false } }

    /// A SQLite file, which is created if it does not exist.
    package static func file(_ path: String) -> StorePlace { StorePlace(name: path, kind: .file) }

    /// A database of ClickHouse, which must have been initialized.
    ///
    /// - Parameters:
    ///   - spool: Where rows wait for its servers.
    ///   - transport: Returns a new transport to a host.
    package static func clickHouse(
        _ address: ClickHouseAddress,
        password: String?,
        spool: Spool.Configuration,
        transport: @escaping @Sendable (ClickHouseAddress.Host) throws(StoreFault) -> ClickHouseTransport
    ) -> StorePlace {
        StorePlace(
            name: address.description,
            kind: .server(address, spool) { () throws(StoreFault) in
                try ClickHouseCluster(address, password: password, transport: transport)
            }
        )
    }

    /// Opens the store for reading.
    package func open() throws(StoreFault) -> any AuditStore {
        switch kind {
        case .file: try SQLiteStore.open(name)
        case .server(_, _, let connect): try ClickHouseStore(connect())
        }
    }

    /// Opens the store for deleting old rows.
    package func openForMaintenance() throws(StoreFault) -> any AuditStore {
        switch kind {
        case .file: try SQLiteStore.openForMaintenance(name)
        case .server: try open()
        }
    }

    /// Opens the store for writing. Servers need not be reachable: rows wait for them.
    ///
    /// - Throws: ``StoreFault``, also if a server that can be reached has no store, or refuses the login.
    package func openWriter(_ writing: Writing) throws(StoreFault) -> any AuditWriter {
        switch kind {
        case .file:
            let isRequired = writing.whenFull == .refuse
            return try SQLiteStore.create(name, partSize: writing.limit.partSize, isDurable: isRequired)
        case .server(let address, var configuration, let connect):
            for fault in try ShardCheck.faults(connect()) {
                guard case .unreachable = fault.code, writing.whenFull != .wait else { throw fault }
                writing.onEvent(.waiting(fault, folder: configuration.folder))
            }
            configuration.whenFull = writing.whenFull
            var about = SpoolFolder.About(store: address.full, shards: address.shards.count, run: writing.run)
            about.isOfRecordings = writing.whenFull == .wait
            let spool = try Spool(configuration, about, writing.onEvent)
            return try SpoolWriter(connect(), spool, writing.limit)
        }
    }

    /// Creates the tables if they do not exist. Returns the statements; none for a file.
    ///
    /// - Parameter cluster: The cluster in whose servers the tables are replicated; nil for tables of each server alone.
    package func initialize(onCluster cluster: String? = nil) throws(StoreFault) -> [String] {
        switch kind {
        case .file:
            _ = try SQLiteStore.create(name)
            return []
        case .server(_, _, let connect): return try ClickHouseStore.initialize(connect(), onCluster: cluster)
        }
    }

    /// Sends what the programs that used a spool have left in it.
    ///
    /// - Parameters:
    ///   - folder: The spool's folder, or that of one of its runs.
    ///   - onEvent: Is called on any thread.
    /// - Returns: The figures of the sending, the folders for another database or number of shards, and those in use.
    package func send(
        _ folder: String,
        onEvent: @escaping @Sendable (Spool.Event) -> Void
    ) throws(StoreFault) -> (figures: Spool.Figures, others: [String], inUse: [String]) {
        guard case .server(let address, var configuration, let connect) = kind else {
            throw StoreFault(code: .foreign, path: name)
        }
        configuration.folder = folder
        configuration.whenFull = .wait
        let found = SpoolFolder.all(in: folder)
        let all = found.free
        let about = SpoolFolder.About(store: address.full, shards: address.shards.count, run: "")
        let ours = all.filter { $0.about.canBeSent(with: about) }
        let others = all.filter { folder in !ours.contains { $0 === folder } }.map(\.path) + found.others
        guard !ours.isEmpty else { return (Spool.Figures(), others, found.inUse) }
        let cluster = try connect()
        for shard in cluster.shards { try shard.check() }
        let spool = Spool(sending: ours, shards: about.shards, configuration, onEvent)
        try SpoolSender.start(cluster, spool, StoreLimit())
        if let fault = spool.close(until: .max) { throw fault }
        return (spool.figures, others, found.inUse)
    }
}

/// Checks all shards at once, since each that is away can take long to say so.
private enum ShardCheck {
    /// The time for an answer, in nanoseconds.
    private static let patience: Int64 = 5_000_000_000

    /// Returns the faults.
    static func faults(_ cluster: ClickHouseCluster) throws(StoreFault) -> [StoreFault] {
        let monitor = Monitor()
        let results = Mutex<[Int: StoreFault?]>([:])
        for (number, shard) in cluster.shards.enumerated() {
            // Used by its thread only.
            nonisolated(unsafe) let shard = shard
            let result = WorkerThread.start(named: "store-check") {
                var fault: StoreFault?
                do throws(StoreFault) { try shard.check() } catch { fault = error }
                monitor.withLock {
                    results.withLock { $0[number] = .some(fault) }
                    monitor.signal(.progress)
                }
            }
            guard result == 0 else { throw FileBytes.fault(cluster.address.description, result) }
        }
        let end = Monitor.now + patience
        monitor.withLock {
            while results.withLock({ $0.count }) < cluster.shards.count, Monitor.now < end {
                monitor.wait(for: .progress, until: end)
            }
        }
        let known = results.withLock { $0 }
        return cluster.shards.indices.compactMap { number in
            guard let fault = known[number] else {
                let hosts = cluster.address.shards[number].map(\.description).joined(separator: ", ")
                return StoreFault(code: .unreachable("\(hosts): no answer yet"), path: cluster.address.description)
            }
            return fault
        }
    }
}

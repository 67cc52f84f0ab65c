/// A store that can be opened: a file, or a database of ClickHouse.
package struct StorePlace: Sendable, Equatable {
    /// How a store is written.
    package struct Writing: Sendable {
        /// The word of the run.
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
        case .file: return try SQLiteStore.create(name, partSize: writing.limit.partSize)
        case .server(let address, var configuration, let connect):
            let cluster = try connect()
            for shard in cluster.shards {
                do throws(StoreFault) {
                    try shard.check()
                } catch {
                    guard case .unreachable = error.code, writing.whenFull != .wait else { throw error }
                    writing.onEvent(.waiting(error, folder: configuration.folder))
                }
            }
            configuration.whenFull = writing.whenFull
            let about = SpoolFolder.About(store: address.full, shards: address.shards.count, run: writing.run)
            let spool = try Spool(configuration, about, writing.onEvent)
            return try SpoolWriter(cluster, spool, writing.limit)
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
    /// - Returns: What was sent, and the folders that are for another database or number of shards.
    package func send(
        _ folder: String,
        onEvent: @escaping @Sendable (Spool.Event) -> Void
    ) throws(StoreFault) -> (figures: Spool.Figures, others: [String]) {
        guard case .server(let address, var configuration, let connect) = kind else {
            throw StoreFault(code: .foreign, path: name)
        }
        configuration.folder = folder
        configuration.whenFull = .wait
        let all = SpoolFolder.all(in: folder)
        let about = SpoolFolder.About(store: address.full, shards: address.shards.count, run: "")
        let ours = all.filter { $0.about.canBeSent(with: about) }
        let others = all.filter { folder in !ours.contains { $0 === folder } }.map(\.path)
        guard !ours.isEmpty else { return (Spool.Figures(), others) }
        let cluster = try connect()
        for shard in cluster.shards { try shard.check() }
        let spool = Spool(sending: ours, shards: about.shards, configuration, onEvent)
        let senders = cluster.shards.enumerated().map { SpoolSender($1, $0, spool, StoreLimit()) }
        for sender in senders { try sender.start() }
        if let fault = spool.close(until: .max) { throw fault }
        return (spool.figures, others)
    }
}

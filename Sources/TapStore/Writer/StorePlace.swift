/// A store that can be opened: a file, or a database of ClickHouse.
package struct StorePlace: Sendable, Equatable {
    /// The path or the address, without secrets, for messages.
    package let name: String
    /// Whether it is a file of this machine.
    package let isFile: Bool
    private let opening: @Sendable (_ partSize: Int) throws(StoreFault) -> any AuditStore
    private let initializing: @Sendable () throws(StoreFault) -> [String]

    /// Places with the same name are the same.
    package static func == (one: StorePlace, other: StorePlace) -> Bool { one.name == other.name }

    /// A SQLite file, which is created if it does not exist.
    package static func file(_ path: String) -> StorePlace {
        StorePlace(
            name: path,
            isFile: true,
            opening: { partSize throws(StoreFault) in try SQLiteStore.create(path, partSize: partSize) },
            initializing: { () throws(StoreFault) in
                _ = try SQLiteStore.create(path)
                return []
            }
        )
    }

    /// A database of ClickHouse, which must have been initialized.
    ///
    /// - Parameter transports: One for each host of the address.
    package static func clickHouse(
        _ address: ClickHouseAddress,
        _ transports: [ClickHouseTransport],
        password: String?
    ) -> StorePlace {
        StorePlace(
            name: address.description,
            isFile: false,
            opening: { _ throws(StoreFault) in try ClickHouseStore(address, transports, password: password) },
            initializing: { () throws(StoreFault) in
                try ClickHouseStore.initialize(address, transports, password: password)
            }
        )
    }

    /// Opens the store for writing.
    ///
    /// - Parameter partSize: The number of stanzas in a part of a file.
    package func open(partSize: Int = SQLiteStore.usualPartSize) throws(StoreFault) -> any AuditStore {
        try opening(partSize)
    }

    /// Creates the tables if they do not exist. Returns the statements; none for a file.
    package func initialize() throws(StoreFault) -> [String] { try initializing() }
}

internal import ArgumentParser
internal import TapStore

/// The flags of the rows that wait for the servers of a store.
struct SpoolOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keep rows for a clickhouse:// store in this folder until its servers have confirmed them.",
            discussion: "The default is $XDG_STATE_HOME/xmpptap/spool; ~/.local/state replaces an unset variable.",
            valueName: "folder"
        ),
        completion: .directory
    )
    var storeSpool: String?

    @Option(
        help: ArgumentHelp(
            "Space for waiting rows (default: 1GB).",
            discussion: """
                If it is full, the oldest rows are dropped, and a row of the store says how many; with --store-required, \
                sessions are closed and refused instead.
                """,
            valueName: "size"
        ),
        transform: ByteSize.ofSpool
    )
    var storeSpoolSize: ByteSize?

    /// A flag that was given; nil if none was.
    var flag: String? {
        storeSpool.map { _ in "--store-spool" } ?? storeSpoolSize.map { _ in "--store-spool-size" }
    }

    /// Returns the spool for a store with a name; nil for a file, which has none.
    func configuration(of store: String) throws(Failure) -> Spool.Configuration? {
        guard ClickHouseAddress.isAddress(store) else {
            if let flag { throw .usage("\(flag) is for stores like clickhouse://HOST/DATABASE") }
            return nil
        }
        guard let folder = storeSpool ?? Console.stateFolder.map({ "\($0)/spool" }) else {
            throw .usage("there is no home folder for the rows of the store; name a folder with --store-spool")
        }
        var configuration = Spool.Configuration(folder: folder)
        if let storeSpoolSize { configuration.limit = Int64(clamping: storeSpoolSize.bytes) }
        return configuration
    }
}

extension ByteSize {
    /// Parses the space for the rows that wait for a server.
    static func ofSpool(_ text: String) throws(Failure) -> ByteSize {
        let size = try ByteSize(text)
        guard size.bytes >= 64_000_000 else { throw .usage("write a size of at least 64MB") }
        return size
    }
}

internal import ArgumentParser
internal import TapStore
internal import XMPPCore

/// The flags of commands that read an audit store or recordings.
struct AuditSourceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Audit store: a file, or clickhouse://HOST/DATABASE.", valueName: "store"),
        completion: .file()
    )
    var store: String?

    @OptionGroup var access: StoreAccessOptions

    @Option(
        help: ArgumentHelp("Only stanzas in the sessions of this account.", valueName: "jid"),
        transform: AuditSourceOptions.address
    )
    var account: String?

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("Only stanzas to or from this address.", valueName: "jid"),
        transform: AuditSourceOptions.address
    )
    var peer: String?

    @Option(
        help: ArgumentHelp(
            "Only stanzas of this time or later.",
            discussion: "As with read: a time, a time of day, or a time before now (-7d).",
            valueName: "time"
        ),
        transform: TimeBound.parse
    )
    var since: TimeBound?

    @Option(help: ArgumentHelp("Only stanzas before this time.", valueName: "time"), transform: TimeBound.parse)
    var until: TimeBound?

    static func address(_ text: String) throws(Failure) -> String {
        do throws(JIDError) {
            return try JID(parsing: text).bare.normalized.description
        } catch {
            throw .usage("\(Console.escaped(text)): \(error)")
        }
    }

    /// Returns whether arguments are one store, by its name.
    static func areStore(_ files: [String]) -> Bool {
        files.count == 1 && (files[0].hasSuffix(".sqlite") || files[0].contains("://"))
    }

    /// Returns what the arguments name: a store is also recognised by its name.
    ///
    /// - Parameters:
    ///   - files: The recordings, or one store.
    ///   - example: A command for the message if nothing is named.
    func source(_ files: [String], example: String) throws(Failure) -> AuditSource {
        let (store, files) = store == nil && Self.areStore(files) ? (files[0], []) : (store, files)
        guard (store == nil) != files.isEmpty else {
            throw .usage(
                store == nil
                    ? "name a store or recordings, as in '\(example)'"
                    : "--store and recordings exclude each other; leave one out"
            )
        }
        guard let store else {
            try access.refuseWithoutServer()
            return AuditSource(content: .recordings(files), since: since, until: until)
        }
        let place = try access.place(store)
        return AuditSource(content: .store(place), since: since, until: until)
    }

    /// Restricts a query to the account and the address of the flags.
    func restrict(_ query: inout SearchQuery) { (query.account, query.peer) = (account, peer) }
}

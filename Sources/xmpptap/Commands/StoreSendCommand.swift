internal import ArgumentParser
internal import TapCapture
internal import TapStore

struct StoreSendCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send the rows that a program has left in its spool.",
        discussion: """
            A program that ends while a server is away leaves its rows in its spool; the next one with the same spool sends \
            them. This command does so if none follows. The store must have as many shards as before; its hosts may be \
            others. It ends when all rows are sent, or when a server has been away for half a minute: what is left then can \
            be sent again later.

            Examples:

              xmpptap store send ~/.local/state/xmpptap/spool clickhouse://tap@db1/audit
              xmpptap store send /mnt/old/var/lib/xmpptap/.local/state/xmpptap/spool clickhouse://tap@db1+db2/audit
              xmpptap store send spool clickhouses://tap@db.example.org/audit --store-password-file password
            """
    )

    @Argument(help: ArgumentHelp("Spool, or the folder of one run in it.", valueName: "folder"), completion: .directory)
    var folder: String

    @Argument(help: ArgumentHelp("Audit store, as clickhouse://HOST/DATABASE.", valueName: "store"))
    var store: String

    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var config: ConfigOption

    func run() throws {
        let place = try access.place(store)
        guard !place.isFile else {
            throw Failure.usage("\(Console.escaped(store)) is a file: only rows for a server wait in a spool")
        }
        guard FileStatus(path: folder)?.isFolder == true else {
            throw Failure.file("\(Console.escaped(folder)): no such folder")
        }
        let (figures, others, inUse) = try Failure.ofStore { () throws(StoreFault) in
            try place.send(folder) { SpoolReport.show($0, of: place.name) }
        }
        for other in others {
            Console.printDiagnostic(
                Console.escaped(
                    "\(other) is for another database or number of shards: its file 'about' names the store"
                )
            )
        }
        for folder in inUse { Console.printDiagnostic(Console.escaped("\(folder) is used by a program that sends it")) }
        Console.print("\(Plural.of(Int(clamping: figures.sent), "stanza")) sent")
        if figures.rejected > 0 || !others.isEmpty { throw Failure.reported(.checkFailed) }
    }
}

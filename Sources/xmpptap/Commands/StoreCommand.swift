internal import ArgumentParser
internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapStore

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Describe, check, shorten or export an audit store.",
        discussion: """
            convert makes a store of recordings, and search finds messages in it.

            Examples:

              xmpptap convert today.xtap audit.sqlite
              xmpptap store info audit.sqlite
              xmpptap store check audit.sqlite
              xmpptap store retain audit.sqlite --keep 90d
              xmpptap store export audit.sqlite stanzas.csv
              xmpptap store avatars audit.sqlite --write avatars
            """,
        subcommands: [
            StoreInitCommand.self, StoreInfoCommand.self, StoreCheckCommand.self, StoreRetainCommand.self,
            StoreVacuumCommand.self, StoreExportCommand.self, StoreAvatarsCommand.self, StoreVCardsCommand.self,
            StoreSendCommand.self,
        ]
    )
}

struct StoreInitCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create the tables of an audit store in ClickHouse.",
        discussion: """
            The database and its tables are created on each server of the address if they do not exist; what they contain \
            is kept. The statements are those for the server's version. With --cluster, the first server \
            creates them on all servers of that cluster, where they are replicated (with ZooKeeper or Keeper, and the \
            macros shard and replica), and a table every_stanza for reading from all shards. A file needs no init: it is \
            created when it is written to.

            Examples:

              xmpptap store init clickhouse://localhost/audit
              xmpptap store init clickhouse://db1+db2/audit
              xmpptap store init clickhouse://tap@db1:8123,db2:8123/audit --store-password-file password
              xmpptap store init clickhouses://tap@db.example.org:8443/audit --store-ca root.pem
            """
    )

    @Argument(help: ArgumentHelp("Audit store, as clickhouse://HOST/DATABASE.", valueName: "store"))
    var store: String

    @Option(
        help: ArgumentHelp("Create replicated tables on all servers of this cluster.", valueName: "name"),
        transform: StoreInitCommand.clusterName
    )
    var cluster: String?

    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var config: ConfigOption

    private static func clusterName(_ text: String) throws(Failure) -> String {
        let isName = text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x5F
        }
        guard isName, !text.isEmpty else {
            throw .usage("the name of a cluster consists of letters, digits and underscores")
        }
        return text
    }

    func run() throws {
        let place = try access.place(store)
        guard !place.isFile else {
            throw Failure.usage("\(Console.escaped(store)) is a file, which is created when it is written to")
        }
        let statements = try Failure.ofStore { () throws(StoreFault) in try place.initialize(onCluster: cluster) }
        for statement in statements {
            Console.print("\(statement);")
        }
    }
}

struct StoreInfoCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show the size, the times and the number of accounts of an audit store.",
        discussion: """
            Examples:

              xmpptap store info audit.sqlite
              xmpptap store info /var/lib/audit/2026.sqlite
              xmpptap store info audit.sqlite --json | jq .stanzas
            """
    )

    @Argument(help: ArgumentHelp("Audit store.", valueName: "store"), completion: .file())
    var store: String

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var config: ConfigOption

    func run() throws {
        let place = try access.place(store)
        let overview = try Failure.ofStore { () throws(StoreFault) in try place.open().overview() }
        guard !json else { return Console.print(overview.json) }
        let about = overview.isEstimated ? "about " : ""
        let messages = Plural.of(overview.bodies, "message")
        Console.print("\(about)\(Plural.of(overview.stanzas, "stanza")), \(about)\(messages) with a body")
        if overview.missing > 0 {
            Console.print(
                "\(Plural.of(overview.missing, "stanza")) missing: dropped while the store could not be written, or damaged"
            )
        }
        Console.print("\(Plural.of(overview.runs, "run")), \(Plural.of(overview.accounts, "account"))")
        if overview.pictures + overview.vCards > 0 {
            Console.print("\(Plural.of(overview.pictures, "picture")), \(Plural.of(overview.vCards, "vCard"))")
        }
        if let times = overview.times { Console.print("from \(times.lowerBound.text) to \(times.upperBound.text)") }
        Console.print("\(overview.bytes) bytes")
    }
}

struct StoreCheckCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check the file of an audit store for damage.",
        discussion: """
            The exit code is 1 if there is any. Damage cannot be repaired: convert the recordings to a new store.

            Examples:

              xmpptap store check audit.sqlite
              xmpptap store check /var/lib/audit/2026.sqlite
              xmpptap store check audit.sqlite && xmpptap search contract --store audit.sqlite
            """
    )

    @Argument(help: ArgumentHelp("Audit store, a file.", valueName: "store"), completion: .file())
    var store: String

    @OptionGroup var config: ConfigOption

    func run() throws {
        let faults = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store).faults() }
        for fault in faults { Console.printDiagnostic(Console.escaped("\(store): \(fault)")) }
        guard faults.isEmpty else { throw Failure.reported(.checkFailed) }
        Console.print("no damage found")
    }
}

struct StoreRetainCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "retain",
        abstract: "Delete the oldest stanzas of an audit store.",
        discussion: """
            A stanza is as old as the time at which it was seen. The words of deleted messages leave the file with their \
            day; servers delete whole days. A running proxy can go on writing meanwhile; with --store-keep or --store-size \
            it deletes old stanzas itself.

            Examples:

              xmpptap store retain audit.sqlite --keep 90d
              xmpptap store retain audit.sqlite --size 20GB
              xmpptap store retain audit.sqlite --keep 365d --size 100GB
            """
    )

    @Argument(help: ArgumentHelp("Audit store.", valueName: "store"), completion: .file())
    var store: String

    @Option(help: ArgumentHelp("Delete what is older.", valueName: "time"), transform: TimeSpan.age)
    var keep: Duration?

    @Option(
        help: ArgumentHelp("Delete the oldest stanzas until the store is not larger.", valueName: "size"),
        transform: ByteSize.ofStore
    )
    var size: ByteSize?

    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var config: ConfigOption

    func run() throws {
        let limit = StoreLimit(age: keep, bytes: size.map { Int64(clamping: $0.bytes) })
        guard !limit.isEmpty else {
            throw Failure.usage("say what to keep, as in 'xmpptap store retain \(Console.escaped(store)) --keep 90d'")
        }
        let place = try access.place(store)
        guard place.isFile || size == nil else {
            throw Failure.usage("--size is for files; a server's days are dropped with --keep")
        }
        try Failure.ofStore { () throws(StoreFault) in
            let opened = try place.openForMaintenance()
            let before = try opened.overview()
            while try opened.retain(limit, at: RunClock().now().time) {}
            let after = try opened.overview()
            Console.print(
                "\(Plural.of(before.stanzas - after.stanzas, "stanza")) deleted, \(after.stanzas) left, \(after.bytes) bytes"
            )
            if let bytes = limit.bytes, after.bytes > bytes {
                Console.printDiagnostic(
                    "\(place.name) is still larger than that: the last day, or the last million stanzas, is kept"
                )
            }
        }
    }
}

struct StoreVacuumCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "vacuum",
        abstract: "Rewrite an audit store without unused space and names.",
        discussion: """
            Also brings a store of an older version of xmpptap up to date. Needs as much free space as the file has, and \
            no other program may write to the store.

            Examples:

              xmpptap store vacuum audit.sqlite
              xmpptap store vacuum /var/lib/audit/2026.sqlite
              xmpptap store retain audit.sqlite --keep 90d && xmpptap store vacuum audit.sqlite
            """
    )

    @Argument(help: ArgumentHelp("Audit store, a file.", valueName: "store"), completion: .file())
    var store: String

    @OptionGroup var config: ConfigOption

    func run() throws {
        try Failure.ofStore { () throws(StoreFault) in
            let opened = try SQLiteStore.openForMaintenance(store)
            let before = try opened.overview().bytes
            try opened.vacuum()
            Console.print("\(before) bytes before, \(try opened.overview().bytes) bytes now")
        }
    }
}

struct StoreExportCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write all stanzas of an audit store to a file.",
        discussion: """
            The ending of the file is the format: .csv for comma-separated values with a line of names (RFC 4180), which \
            spreadsheets open; .jsonl for one JSON object per line. - is standard output, as JSON. Copies of a message are \
            separate lines; copy_key joins them.

            Examples:

              xmpptap store export audit.sqlite stanzas.csv
              xmpptap store export audit.sqlite juliet.jsonl --account juliet@example.org
              xmpptap store export clickhouse://tap@db1+db2/audit - --since -1d | jq 'select(.kind == "presence")'
            """
    )

    @Argument(help: ArgumentHelp("Audit store.", valueName: "store"), completion: .file())
    var store: String

    @Argument(help: ArgumentHelp("File to write.", valueName: "file"), completion: .file())
    var output: String

    @OptionGroup var access: StoreAccessOptions

    @Flag(help: "Replace the file to write if it exists.")
    var overwrite = false

    @Option(
        help: ArgumentHelp("Only stanzas in the sessions of this account.", valueName: "jid"),
        transform: AuditSourceOptions.address
    )
    var account: String?

    @Option(
        help: ArgumentHelp("Only stanzas of this time or later.", valueName: "time"),
        transform: TimeBound.parse
    )
    var since: TimeBound?

    @Option(help: ArgumentHelp("Only stanzas before this time.", valueName: "time"), transform: TimeBound.parse)
    var until: TimeBound?

    @OptionGroup var config: ConfigOption

    func run() throws {
        let isTable = output.hasSuffix(".csv")
        guard isTable || output.hasSuffix(".jsonl") || output == "-" else {
            throw Failure.usage("\(Console.escaped(output)): the name must end in .csv or .jsonl")
        }
        guard overwrite || output == "-" || FileStatus(path: output) == nil else {
            throw Failure.usage("\(Console.escaped(output)) exists; choose another name, or add --overwrite")
        }
        let place = try access.place(store)
        let opened = try Failure.ofStore { () throws(StoreFault) in try place.open() }
        var query = SearchQuery(words: "")
        query.kinds = Set(AuditRow.Kind.allCases)
        query.account = account
        let now = RunClock().now().time
        let first = try Failure.ofStore { () throws(StoreFault) in try opened.overview().times?.lowerBound }
        query.times = TimeBound.range(since: since, until: until, beginning: first ?? now, now: now, in: .system)
        var rows = 0
        func write(_ line: (String) throws(Failure) -> Void) throws(Failure) {
            var failure: Failure?
            func keep(_ text: String) {
                guard failure == nil else { return }
                do throws(Failure) { try line(text) } catch { failure = error }
            }
            if isTable { keep(CSVLine.text(RowExport.columns.map { "\($0)" })) }
            try Failure.ofStore { () throws(StoreFault) in
                try opened.rows(for: query) { row in
                    keep(isTable ? CSVLine.text(RowExport.texts(row)) : RowExport.json(row))
                    rows += 1
                    return failure == nil
                }
            }
            if let failure { throw failure }
        }
        guard output != "-" else { return try write { Console.print($0) } }
        try OutputText.replace(output) { draft throws(Failure) in
            let file = try OutputText.Draft(draft, as: output)
            var bytes: [UInt8] = []
            try write { line throws(Failure) in
                bytes += line.utf8
                bytes += isTable ? [0x0D, 0x0A] : [0x0A]
                guard bytes.count >= 1 << 16 else { return }
                try file.write(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
            try file.write(bytes)
            try file.finish()
        }
        Console.print("\(Plural.of(rows, "stanza")) in \(Console.escaped(output))")
    }
}

extension StoreOverview {
    fileprivate var json: String {
        LineBuffer.object { line in
            line.field("stanzas", stanzas)
            line.field("bodies", bodies)
            line.field("missing", missing)
            if isEstimated { line.field("estimated", true) }
            line.field("runs", runs)
            line.field("accounts", accounts)
            line.field("pictures", pictures)
            line.field("vcards", vCards)
            if let times {
                line.field("first", times.lowerBound.text)
                line.field("last", times.upperBound.text)
            }
            line.field("bytes", Int(clamping: bytes))
        }
    }
}

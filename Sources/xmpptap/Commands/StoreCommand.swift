internal import ArgumentParser
internal import TapRecord
internal import TapStore

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Describe or check an audit store.",
        discussion: """
            convert makes a store of recordings, and search finds messages in it.

            Examples:

              xmpptap convert today.xtap audit.sqlite
              xmpptap store info audit.sqlite
              xmpptap store check audit.sqlite
            """,
        subcommands: [StoreInfoCommand.self, StoreCheckCommand.self]
    )
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

    @OptionGroup var config: ConfigOption

    func run() throws {
        let overview = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store).overview() }
        guard !json else { return Console.print(overview.json) }
        Console.print("\(Plural.of(overview.stanzas, "stanza")), \(Plural.of(overview.bodies, "message")) with a body")
        Console.print("\(Plural.of(overview.runs, "run")), \(Plural.of(overview.accounts, "account"))")
        if let times = overview.times { Console.print("from \(times.lowerBound.exact) to \(times.upperBound.exact)") }
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

    @Argument(help: ArgumentHelp("Audit store.", valueName: "store"), completion: .file())
    var store: String

    @OptionGroup var config: ConfigOption

    func run() throws {
        let faults = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store).faults() }
        for fault in faults { Console.printDiagnostic(Console.escaped("\(store): \(fault)")) }
        guard faults.isEmpty else { throw Failure.reported(.checkFailed) }
        Console.print("no damage found")
    }
}

extension StoreOverview {
    fileprivate var json: String {
        LineBuffer.object { line in
            line.field("stanzas", stanzas)
            line.field("bodies", bodies)
            line.field("runs", runs)
            line.field("accounts", accounts)
            if let times {
                line.field("first", times.lowerBound.exact)
                line.field("last", times.upperBound.exact)
            }
            line.field("bytes", Int(clamping: bytes))
        }
    }
}

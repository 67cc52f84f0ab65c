internal import ArgumentParser
internal import TapRecord
internal import TapSecurity
internal import TapStore

struct StoreAvatarsCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "avatars",
        abstract: "List the avatars in an audit store, and write them to files.",
        discussion: """
            A store has avatars if it was filled with --store-avatars. The type is that of the picture's first bytes, the \
            hash its SHA-1, which is the name of its file. Files that exist are kept.

            Examples:

              xmpptap store avatars audit.sqlite
              xmpptap store avatars audit.sqlite --write avatars
              xmpptap store avatars audit.sqlite --json | jq -r .contact
            """
    )

    @Argument(help: ArgumentHelp("Audit store, a file.", valueName: "store"), completion: .file())
    var store: String

    @Option(
        help: ArgumentHelp("Write each picture to a file in this folder.", valueName: "folder"),
        completion: .directory
    )
    var write: String?

    @Flag(help: "Print JSON, one avatar per line.")
    var json = false

    @OptionGroup var colour: ColourOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        let opened = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store) }
        let avatars = try Failure.ofStore { () throws(StoreFault) in try opened.avatars() }
        if json {
            for avatar in avatars { Console.print(avatar.json) }
        } else if avatars.isEmpty {
            Console.printDiagnostic("\(store) has no avatars; --store-avatars keeps them")
        } else {
            for line in AvatarTable(avatars: avatars).lines(.ofOutput(colour.color)) { Console.print(line) }
        }
        guard let write, !avatars.isEmpty else { return }
        let files = try ProfileFiles(write)
        for avatar in avatars {
            // A running proxy may have deleted it meanwhile.
            try files.write(named: avatar.fileName) { () throws(Failure) in
                try Failure.ofStore { () throws(StoreFault) in try opened.picture(avatar.hash) }
            }
        }
        Console.printDiagnostic(files.summary("picture"))
    }
}

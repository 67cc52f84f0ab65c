internal import ArgumentParser
internal import TapRecord
internal import TapSecurity
internal import TapStore

struct StoreVCardsCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "vcards",
        abstract: "List the vCards in an audit store, and write them to files.",
        discussion: """
            A store has vCards if it was filled with --store-avatars: their XML without the bytes of pictures and sounds. \
            The hash, the SHA-256 of the XML, is the name of the file. Files that exist are kept.

            Examples:

              xmpptap store vcards audit.sqlite
              xmpptap store vcards audit.sqlite --write vcards
              xmpptap store vcards audit.sqlite --json | jq -r .xml
            """
    )

    @Argument(help: ArgumentHelp("Audit store, a file.", valueName: "store"), completion: .file())
    var store: String

    @Option(
        help: ArgumentHelp("Write each vCard to a file in this folder.", valueName: "folder"),
        completion: .directory
    )
    var write: String?

    @Flag(help: "Print JSON, one vCard per line.")
    var json = false

    @OptionGroup var colour: ColourOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        let cards = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store).vCards() }
        if json {
            for card in cards { Console.print(card.json) }
        } else if cards.isEmpty {
            Console.printDiagnostic("\(store) has no vCards; --store-avatars keeps them")
        } else {
            for line in Self.table(cards).lines(.ofOutput(colour.color)) { Console.print(line) }
        }
        guard let write, !cards.isEmpty else { return }
        let files = try ProfileFiles(write)
        for card in cards { try files.write(named: "\(card.hash.hexadecimal).xml") { Array(card.xml.utf8) } }
        Console.printDiagnostic(files.summary("vCard"))
    }

    private static func table(_ cards: [StoredVCard]) -> TextTable {
        TextTable(
            header: ["CONTACT", "BYTES", "HASH", "FIRST", "LAST"],
            rows: cards.map { card in
                [
                    card.contact, "\(card.xml.utf8.count)", card.hash.hexadecimal, card.first.stamp(in: .system),
                    card.last.stamp(in: .system),
                ]
            },
            numeric: [1],
            flexible: [0, 2],
            optional: [3],
            narrowest: [0: 16]
        )
    }
}

extension StoredVCard {
    /// The vCard as a JSON object.
    fileprivate var json: String {
        LineBuffer.object { line in
            line.field("contact", contact)
            line.field("hash", hash.hexadecimal)
            line.field("first", first.text)
            line.field("last", last.text)
            line.field("xml", xml)
        }
    }
}

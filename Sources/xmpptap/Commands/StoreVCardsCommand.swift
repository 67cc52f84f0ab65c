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
        let files = try write.map { folder throws(Failure) in try ProfileFiles(folder) }
        var rows: [[String]] = []
        var count = 0
        var failure: Failure?
        try Failure.ofStore { () throws(StoreFault) in
            try SQLiteStore.open(store).vCards { card in
                count += 1
                if json {
                    Console.print(card.json)
                } else {
                    rows.append(card.cells)
                }
                guard failure == nil, let files else { return }
                do throws(Failure) {
                    try files.write(named: "\(card.hash.hexadecimal).xml") { Array(card.xml.utf8) }
                } catch {
                    failure = error
                }
            }
        }
        if let failure { throw failure }
        if count == 0 {
            Console.printDiagnostic("\(store) has no vCards; --store-avatars keeps them")
        } else if !json {
            for line in Self.table(rows).lines(.ofOutput(colour.color)) { Console.print(line) }
        }
        if let files, count > 0 { Console.printDiagnostic(files.summary("vCard")) }
    }

    private static func table(_ rows: [[String]]) -> TextTable {
        TextTable(
            header: ["CONTACT", "BYTES", "HASH", "FIRST", "LAST"],
            rows: rows,
            numeric: [1],
            flexible: [0, 2],
            optional: [3],
            narrowest: [0: 16]
        )
    }
}

extension StoredVCard {
    /// The cells of its row.
    fileprivate var cells: [String] {
        [contact, "\(xml.utf8.count)", hash.hexadecimal, first.stamp(in: .system), last.stamp(in: .system)]
    }

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

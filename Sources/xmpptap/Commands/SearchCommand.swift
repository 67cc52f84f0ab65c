internal import ArgumentParser
internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapStore
internal import XMPPCore

struct SearchCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find messages in an audit store or in recordings.",
        discussion: """
            Prints each message once, although its sender, its receivers, carbon copies and archives have it too: \
            messages with the same sender, receiver, id and body within five minutes are copies. All words must occur \
            in the body, in any order; case and accents do not matter, and contr* finds all words that begin so. \
            Without words, all messages with a body are found.

            The exit code is 1 if nothing is found.

            Examples:

              xmpptap search contract audit.sqlite
              xmpptap search 'offer june' today.xtap
              xmpptap search '' --store audit.sqlite --between juliet@example.org romeo@example.org
              xmpptap search invoice --store audit.sqlite --account juliet@example.org --since -7d --json
              xmpptap search 'contr*' audit/ --csv > found.csv
            """
    )

    @Argument(help: ArgumentHelp("Words that the body must contain; '' for any text.", valueName: "words"))
    var words: String

    @Argument(
        help: ArgumentHelp("Captures, folders of them, logs or packets; or one store, NAME.sqlite.", valueName: "file"),
        completion: .recordings
    )
    var files: [String] = []

    @Option(help: ArgumentHelp("Audit store, as convert writes it.", valueName: "file"), completion: .file())
    var store: String?

    @Option(
        help: ArgumentHelp("Only messages in the sessions of this account.", valueName: "jid"),
        transform: SearchCommand.address
    )
    var account: String?

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("Only messages to or from this address.", valueName: "jid"),
        transform: SearchCommand.address
    )
    var peer: String?

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("Only messages between these two addresses.", valueName: "jid"),
        transform: SearchCommand.address
    )
    var between: [String] = []

    @Option(help: ArgumentHelp("Only messages of this room.", valueName: "jid"), transform: SearchCommand.address)
    var room: String?

    @Option(
        help: ArgumentHelp(
            "Only messages of this time or later.",
            discussion: "As with read: a time, a time of day, or a time before now (-7d).",
            valueName: "time"
        ),
        transform: TimeBound.parse
    )
    var since: TimeBound?

    @Option(help: ArgumentHelp("Only messages before this time.", valueName: "time"), transform: TimeBound.parse)
    var until: TimeBound?

    @Flag(help: "Print JSON, one message per line, with its copies.")
    var json = false

    @Flag(help: "Print comma-separated values with a line of names (RFC 4180).")
    var csv = false

    @OptionGroup var config: ConfigOption

    static func address(_ text: String) throws(Failure) -> String {
        do throws(JIDError) {
            return try JID(parsing: text).bare.normalized.description
        } catch {
            throw .usage("\(Console.escaped(text)): \(error)")
        }
    }

    func run() throws {
        guard !json || !csv else { throw Failure.usage("--json and --csv exclude each other; leave one out") }
        guard between.isEmpty || between.count == 2 else {
            throw Failure.usage("--between needs two addresses, as in --between juliet@example.org romeo@example.org")
        }
        // A store is also recognised by its name.
        let isNamed = store == nil && files.count == 1 && files[0].hasSuffix(".sqlite")
        let (store, files) = isNamed ? (files[0], []) : (store, files)
        guard (store == nil) != files.isEmpty else {
            throw Failure.usage(
                store == nil
                    ? "name a store or recordings, as in 'xmpptap search contract audit.sqlite'"
                    : "--store and recordings exclude each other; leave one out"
            )
        }
        var query = SearchQuery(words: words)
        guard !query.terms.isEmpty || words.allSatisfy(\.isWhitespace) else {
            throw Failure.usage("\(Console.escaped(words)) contains no word; '' finds any text")
        }
        (query.account, query.peer, query.room) = (account, peer, room)
        if between.count == 2 { query.pair = (between[0], between[1]) }
        var found = FoundMessages()
        var isWhole = true
        if let store {
            let store = try Failure.ofStore { () throws(StoreFault) in try SQLiteStore.open(store) }
            try Failure.ofStore { () throws(StoreFault) in
                query.times = times(from: try store.overview().times?.lowerBound)
                try store.candidates(for: query) { if query.matches($0) { found.add($0) } }
            }
        } else {
            isWhole = try search(files, &query, &found)
        }
        let messages = found.messages()
        if json {
            for message in messages { Console.print(message.json) }
        } else if csv {
            Console.print(FoundMessage.csvNames)
            for message in messages { Console.print(message.csv) }
        } else {
            var transcript = Transcript()
            for message in messages { transcript.add(message) }
            for line in transcript.lines { Console.print(line) }
        }
        guard isWhole else { throw Failure.reported(.file) }
        guard !messages.isEmpty else {
            Console.printDiagnostic("no message found")
            throw Failure.reported(.checkFailed)
        }
    }

    private func times(from beginning: Timestamp?) -> Range<Timestamp>? {
        TimeBound.range(
            since: since,
            until: until,
            beginning: beginning ?? RunClock().now().time,
            now: RunClock().now().time,
            in: .system
        )
    }

    /// Searches recordings; returns whether they could be read completely.
    private func search(
        _ files: [String],
        _ query: inout SearchQuery,
        _ found: inout FoundMessages
    ) throws(Failure) -> Bool {
        var maker: AuditRowMaker?
        let stored = try StoredRecords(files, isReanalysed: false) { entry in
            switch entry {
            case .header(let header):
                if maker == nil { query.times = times(from: header.time) }
                maker = AuditRowMaker(run: header.run)
            case .record(let line):
                guard let row = maker?.row(line), query.matches(row) else { return }
                found.add(row)
            case .damage, .gap: return
            }
        }
        return stored.isWhole
    }
}

internal import ArgumentParser
internal import TapRecord
internal import TapStore

struct SearchCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find messages in an audit store or in recordings.",
        discussion: """
            Prints each message once, although its sender, its receivers, carbon copies and archives have it too: \
            messages with the same sender, receiver, id and body within five minutes are copies. All words must occur \
            in the body, in any order; case and accents do not matter, and contr* finds all words that begin so. \
            With '' instead of words, all messages with a body are found.

            The exit code is 1 if nothing is found.

            Examples:

              xmpptap search contract audit.sqlite
              xmpptap search 'offer june' today.xtap
              xmpptap search '' --store audit.sqlite --between juliet@example.org romeo@example.org
              xmpptap search invoice --store audit.sqlite --account juliet@example.org --since -7d --json
              xmpptap search 'contr*' audit/ --csv > found.csv
              xmpptap search contract audit.sqlite -C 5 --format html > found.html
              xmpptap search '' audit.sqlite --kind iq --with rooms.example.org
            """
    )

    @Argument(help: ArgumentHelp("Words that the body must contain; '' for any text.", valueName: "words"))
    var words: String

    @Argument(
        help: ArgumentHelp(
            "Captures, folders of them, logs or packets; or one store, NAME.sqlite or clickhouse://…",
            valueName: "file"
        ),
        completion: .recordings
    )
    var files: [String] = []

    @OptionGroup var source: AuditSourceOptions

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("Only messages between these two addresses.", valueName: "jid"),
        transform: AuditSourceOptions.address
    )
    var between: [String] = []

    @Option(help: ArgumentHelp("Only messages of this room.", valueName: "jid"), transform: AuditSourceOptions.address)
    var room: String?

    @Option(
        help: ArgumentHelp(
            "Find stanzas of this kind, also without a body; repeatable.",
            discussion:
                "Default: messages with a body. Of stanzas without a body, type, payload and condition are shown.",
            valueName: "message|presence|iq"
        ),
        completion: .choices(StanzaKind.self),
        transform: StanzaKind.typed
    )
    var kind: [StanzaKind] = []

    @Option(
        name: [.long, .customShort("C", allowingJoined: true)],
        help: ArgumentHelp(
            "Also show this many messages before and after.",
            discussion: "Those of the same conversation, to which the other filters apply as well.",
            valueName: "number"
        ),
        transform: { try Number.parse($0, in: 0...10_000) }
    )
    var context: Int?

    @Option(
        help: ArgumentHelp(
            "Output format (default: text).",
            discussion: """
                html is a page to print, with all copies of each message and their SHA-256 digests.
                """,
            valueName: "text|json|csv|html"
        ),
        completion: .choices(AuditForm.self),
        transform: AuditForm.typed
    )
    var format: AuditForm?

    @Flag(help: "Print JSON, one message per line, with its copies.")
    var json = false

    @Flag(help: "Print comma-separated values with a line of names (RFC 4180).")
    var csv = false

    @OptionGroup var colour: ColourOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        let form = try AuditForm.only(json: json, csv: csv, format)
        guard between.isEmpty || between.count == 2 else {
            throw Failure.usage("--between needs two addresses, as in --between juliet@example.org romeo@example.org")
        }
        let source = try self.source.source(files, example: "xmpptap search contract audit.sqlite")
        let kinds = Set(kind.map(\.kind))
        guard words.allSatisfy(\.isWhitespace) || kinds.isEmpty || kinds.contains(.message) else {
            throw Failure.usage("only messages have a body with words; write '' for the words, or add --kind message")
        }
        var query = SearchQuery(words: words)
        guard !query.terms.isEmpty || words.allSatisfy(\.isWhitespace) else {
            throw Failure.usage("\(Console.escaped(words)) contains no word; '' finds any text")
        }
        self.source.restrict(&query)
        (query.room, query.kinds) = (room, kinds)
        if between.count == 2 { query.pair = (between[0], between[1]) }
        var run = SearchRun(
            query: query,
            context: context,
            form: form,
            colour: colour.color,
            source: source
        )
        try run.run()
    }
}

/// The values of `--kind`.
enum StanzaKind: String, CaseIterable {
    case message
    case presence
    case iq

    var kind: AuditRow.Kind {
        switch self {
        case .message: .message
        case .presence: .presence
        case .iq: .iq
        }
    }
}

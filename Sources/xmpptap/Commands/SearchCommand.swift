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

    @OptionGroup var source: AuditSourceOptions

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("Only messages between these two addresses.", valueName: "jid"),
        transform: AuditSourceOptions.address
    )
    var between: [String] = []

    @Option(help: ArgumentHelp("Only messages of this room.", valueName: "jid"), transform: AuditSourceOptions.address)
    var room: String?

    @Flag(help: "Print JSON, one message per line, with its copies.")
    var json = false

    @Flag(help: "Print comma-separated values with a line of names (RFC 4180).")
    var csv = false

    @OptionGroup var config: ConfigOption

    func run() throws {
        guard !json || !csv else { throw Failure.usage("--json and --csv exclude each other; leave one out") }
        guard between.isEmpty || between.count == 2 else {
            throw Failure.usage("--between needs two addresses, as in --between juliet@example.org romeo@example.org")
        }
        let source = try self.source.source(files, example: "xmpptap search contract audit.sqlite")
        var query = SearchQuery(words: words)
        guard !query.terms.isEmpty || words.allSatisfy(\.isWhitespace) else {
            throw Failure.usage("\(Console.escaped(words)) contains no word; '' finds any text")
        }
        self.source.restrict(&query)
        query.room = room
        if between.count == 2 { query.pair = (between[0], between[1]) }
        var found = FoundMessages()
        let isWhole = try source.search(query) { found.add($0) }
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
}

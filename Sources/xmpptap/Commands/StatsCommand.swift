internal import ArgumentParser
internal import TapCapture
internal import TapRecord
internal import TapStore

struct StatsCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show who wrote with whom, failed logins, slow requests and sizes.",
        discussion: """
            Counts the stanzas of an audit store or of recordings: messages between addresses, by hour and by day; failed \
            logins by cause; round trips of requests, and requests without an answer; bytes by namespace. Each message \
            counts once, as in search. Hours and days are those of the local time zone.

            P50 and P99 are the times within which 50 and 99 per cent of the answers came; they are at most 6.25 % too \
            long. Requests are sorted by P99.

            The exit code is 1 if there is no stanza and no failed login.

            Examples:

              xmpptap stats audit.sqlite
              xmpptap stats today.xtap --account juliet@example.org
              xmpptap stats --store audit.sqlite --since -7d --top 50
              xmpptap stats audit/ --csv > figures.csv
              xmpptap stats audit.sqlite --format html > figures.html
            """
    )

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
        help: ArgumentHelp(
            "Number of entries in each list (default: 10; with --json and --csv, all).",
            valueName: "number"
        ),
        transform: { try Number.parse($0, in: 1...1_000_000) }
    )
    var top: Int?

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Print comma-separated values with a line of names (RFC 4180).")
    var csv = false

    @Option(
        help: ArgumentHelp(
            "Output format (default: text).",
            discussion: "html is a page with charts.",
            valueName: "text|json|csv|html"
        ),
        completion: .choices(AuditForm.self),
        transform: AuditForm.typed
    )
    var format: AuditForm?

    @OptionGroup var colour: ColourOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        let form = try AuditForm.only(json: json, csv: csv, format)
        let source = try self.source.source(files, example: "xmpptap stats audit.sqlite")
        var query = SearchQuery(words: "")
        query.kinds = Set(AuditRow.Kind.allCases)
        self.source.restrict(&query)
        var counter = StatisticsCounter(zone: .system, isOrdered: source.isOrdered)
        let isWhole = try source.read(query) { counter.add($0) }
        let statistics = counter.finish()
        switch form {
        case .json: Console.print(statistics.shortened(to: top).json)
        case .csv: for line in statistics.shortened(to: top).csv { Console.print(line) }
        case .text, .html:
            let style = OutputStyle.ofOutput(colour.color)
            let hasShortTimes = form == .html || style.width != nil
            let tables = StatisticsTables(statistics, top: top ?? 10, hasShortTimes: hasShortTimes)
            if form == .html {
                Console.print(StatisticsPage(tables: tables).text())
            } else {
                for line in tables.lines(style) { Console.print(line) }
            }
        }
        guard isWhole else { throw Failure.reported(.file) }
        guard statistics.stanzas > 0 || !statistics.failedLogins.isEmpty else {
            Console.printDiagnostic("no stanza found\(query.hint)")
            throw Failure.reported(.checkFailed)
        }
    }
}

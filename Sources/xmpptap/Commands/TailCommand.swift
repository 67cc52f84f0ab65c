internal import ArgumentParser
internal import TapNetwork
internal import TapRecord
internal import TapRules

struct TailCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Show what a running proxy logs, live.",
        discussion: """
            Prints new records as the log shows them. The level of the proxy's own log does not matter. Runs \
            until Ctrl-C or the end of the proxy.

            Examples:

              xmpptap tail --session 3 --level verbose
              xmpptap tail --filter 'message and body~"hello"'
              xmpptap tail --level warn --json | jq -r .message
            """
    )

    @OptionGroup var filter: FilterOption
    @OptionGroup var form: FormOptions

    @Option(
        help: ArgumentHelp(
            "Level to show: error, warn, info, verbose or trace.",
            discussion: "Default: info; with --format text on a terminal info,send,recv; with --json verbose.",
            valueName: "level"
        ),
        completion: .list(Level.allCases.dropFirst().map(\.name)),
        transform: { text throws(Failure) in
            guard let level = Level(name: text), level > .off else {
                throw .usage("the levels are \(Level.allCases.dropFirst().map(\.name).joined(separator: ", "))")
            }
            return level
        }
    )
    var level: Level?

    @Option(
        help: ArgumentHelp("Session to show (default: all).", valueName: "number"),
        completion: .sessionNumbers,
        transform: SessionNumber.parse
    )
    var session: [UInt64] = []

    @Flag(help: "Print JSON, one record per line.")
    var json = false

    @OptionGroup var control: ControlOption
    @OptionGroup var config: ConfigOption

    func validate() throws {
        guard session.count <= 1 else {
            throw ValidationError("--session given more than once; for several use --filter")
        }
    }

    func run() async throws {
        let client = try control.client()
        try await Interruption.cancels { [level, json, form, filter, session] in
            var printer = RecordPrinter(
                level: level,
                form: json ? .json : form.format,
                colour: form.color,
                showsBodies: form.bodies
            )
            let query = [
                ("filter", filter.filter?.text), ("level", printer.level.name),
                ("session", session.first.map { "\($0)" }),
                // The text of messages is contained in the XML.
                ("content", printer.showsBodies ? "all" : nil),
            ]
            let request = ControlClient.Request("GET", "/records", query: query)
            try await client.follow(request) { event throws(ControlClientError) in try printer.print(event) }
            printer.finish()
            if !Task.isCancelled, Console.fault == nil { Console.printDiagnostic("the proxy has ended") }
        }
    }
}

internal import ArgumentParser
internal import TapCapture
internal import TapRecord

struct ReadCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Show the records of a JSON log, capture or client log.",
        discussion: """
            Prints a file as the live log would have shown it, at any level recorded in it. Name all rotated files of a \
            run, in any order; "-" is standard input. Also reads a client's own log, if it contains the sent and \
            received XML (SEND: and RECV:).

            Examples:

              xmpptap read today.xtap --log info
              xmpptap read tap.jsonl.1 tap.jsonl --session 3 --log verbose
              xmpptap read today.xtap --log verbose --filter 'message and body~"(?i)invoice"'
              xmpptap read yesterday.xtap --reanalyse --log verbose
              xmpptap read today.xtap --json | jq -r 'select(.name == "message") | .xml'
            """
    )

    @Argument(
        help: ArgumentHelp("JSON log, capture, or a client's own log.", valueName: "file"),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Level and parts to show.",
            discussion: """
                As for proxy. Default: info,send,recv on a terminal, otherwise info; with --json everything.
                """,
            valueName: "spec"
        ),
        transform: LogSpec.typed
    )
    var log: LogSpec?

    @OptionGroup var filter: FilterOption

    @Flag(help: "Print JSON, one record per line.")
    var json = false

    @Flag(
        help: ArgumentHelp(
            "Decode the items of a complete capture again.",
            discussion: """
                Timeline, diagnosis and summaries are made by this version; redacted secrets stay redacted. Other files \
                are shown as stored, with exit code 3.
                """
        )
    )
    var reanalyse = false

    @Option(
        help: ArgumentHelp("Show only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @OptionGroup var config: ConfigOption

    func run() throws {
        do {
            let reader = try RecordReader(files, advice: AdviceTable.words(for:))
            let plan = ReadPlan(
                files: files,
                log: log,
                filter: filter.filter,
                isJSON: json,
                sessions: Set(session),
                header: reader.firstHeader,
                in: .current
            )
            if let note = plan.note { Console.complain(note) }
            try ReadRun(plan).run(reader, isReanalysed: reanalyse)
        } catch let fault as ReaderFault {
            throw Failure.file(fault.description)
        }
    }
}

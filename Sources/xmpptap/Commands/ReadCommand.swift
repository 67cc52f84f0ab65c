internal import ArgumentParser
internal import TapCapture
internal import TapRecord

/// `xmpptap read`.
struct ReadCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Show what a JSON log or capture holds.",
        discussion: """
            Shows a file as the log would have shown it while it was recorded, at any level that it holds. Parts of one \
            run can be named together, in any order; "-" is standard input. A client's own log is read as well, if it shows \
            what it sent and received (SEND: and RECV:).

            Examples:

              xmpptap read today.xtap --log info
              xmpptap read tap.jsonl.1 tap.jsonl --session 3 --log verbose
              xmpptap read today.xtap --json | jq -r 'select(.name == "message") | .xml'
            """
    )

    @Argument(
        help: ArgumentHelp("A JSON log or capture, or a client's own log.", valueName: "file"),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "What is shown.",
            discussion: "As for proxy. Without it: info,send,recv on a terminal, else info; with --json all there is.",
            valueName: "spec"
        ),
        transform: LogSpec.typed
    )
    var log: LogSpec?

    @Flag(help: "Show JSON, one record a line.")
    var json = false

    @Option(
        help: ArgumentHelp("Show this session only; can be repeated.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @OptionGroup var config: ConfigOption

    func run() throws {
        do {
            let reader = try RecordReader(files)
            let plan = ReadPlan(
                files: files,
                log: log,
                isJSON: json,
                sessions: Set(session),
                header: reader.firstHeader,
                in: .current
            )
            if let note = plan.note { Console.complain(note) }
            try ReadRun(plan).run(reader)
        } catch let fault as ReaderFault {
            throw Failure.file(fault.description)
        }
    }
}

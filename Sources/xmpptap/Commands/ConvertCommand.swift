internal import ArgumentParser
internal import TapReplay

struct ConvertCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Write a recording in another format.",
        discussion: """
            The ending of the last file says which: .scs is a scansion script, with what each client sent and received \
            and wildcards for values that vary. 'xmpptap replay' and scansion run it.

            Example:

              xmpptap convert talk.xtap talk.scs
            """
    )

    @Argument(
        help: ArgumentHelp("Captures, JSON logs or client logs; the last is written.", valueName: "file"),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp("Convert only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @OptionGroup var config: ConfigOption

    func run() throws {
        guard files.count > 1, let output = files.last else {
            throw Failure.usage("name a recording and the file to write, as in 'xmpptap convert talk.xtap talk.scs'")
        }
        guard output.hasSuffix(".scs") else {
            throw Failure.usage("\(output): unknown format; the file to write ends in .scs")
        }
        let inputs = Array(files.dropLast())
        let sessions = try RecordedSessions.read(inputs, Set(session))
        guard let script = ScriptWriter(sessions).script(title: Self.title(inputs)) else {
            throw Failure.file("\(inputs.joined(separator: ", ")): no session with a completed login")
        }
        try OutputText.write(script, to: output)
    }

    private static func title(_ files: [String]) -> String {
        files.map { $0.split(separator: "/").last.map(String.init) ?? $0 }.joined(separator: ", ")
    }
}

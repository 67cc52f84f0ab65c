internal import ArgumentParser
internal import TapManual
internal import TapRecord

/// The command `xmpptap help TOPIC`, which also writes the man pages.
struct ManualCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual",
        abstract: "Show a page of the manual, or write the man pages.",
        discussion: """
            The same as "xmpptap help TOPIC". Without a topic: the commands and the topics.

            Examples:

              xmpptap manual
              xmpptap manual tls
              xmpptap manual --man .build/man
            """,
        // Users type `help` instead.
        shouldDisplay: false
    )

    @Argument(
        help: ArgumentHelp("Topic to show.", valueName: "topic"),
        completion: .list(ManualPage.all.map(\.name))
    )
    var topic: String?

    @Option(
        help: ArgumentHelp("Write man pages to this folder: man1 for commands, man7 for topics.", valueName: "folder"),
        completion: .directory
    )
    var man: String?

    /// Returns the arguments; `help` with a topic, or without arguments, is replaced by this command.
    static func arguments(_ arguments: [String]) throws(Failure) -> [String] {
        guard arguments.first == "help" else { return arguments }
        guard let word = arguments.dropFirst().first else { return [name] }
        guard !word.hasPrefix("-"), !Invocation.commands.contains(word) else { return arguments }
        guard ManualPage.named(word) != nil else { throw unknown(word) }
        return [name] + arguments.dropFirst()
    }

    func run() throws {
        if let man {
            guard topic == nil else { throw Failure.usage("--man writes all pages; leave '\(topic ?? "")' out") }
            return try ManPages.write(CommandDefinition.program(dump: Invocation.definitions), to: man)
        }
        guard let topic else { return Pager.show(Self.overview) }
        guard let page = ManualPage.named(topic) else { throw Self.unknown(topic) }
        let paint = Paint.forOutput()
        let text = TerminalText(width: Self.width) { text, style in
            switch style {
            case .heading, .strong: paint(text, .bold)
            case .code: paint(text, .green)
            case .plain: text
            }
        }
        Pager.show(text.lines(of: page).joined(separator: "\n"))
    }

    private static let name = "manual"

    /// The width to which text is wrapped: at most 100 columns, because longer lines are hard to read.
    static var width: Int { min(Console.width ?? 80, 100) }

    /// The help of the program, followed by the topics.
    private static var overview: String {
        let indent = (ManualPage.all.map(\.name.count).max() ?? 0) + 2
        let topics = ManualPage.all.map { page in
            "  \(page.name)\(String(repeating: " ", count: indent - page.name.count))\(page.title)"
        }
        return "\(Invocation.help(columns: width))\n\nTOPICS:\n\(topics.joined(separator: "\n"))\n\n"
            + "  See 'xmpptap help <topic>' for a page of the manual."
    }

    private static func unknown(_ word: String) -> Failure {
        let topics = ManualPage.all.map(\.name)
        let near = Spelling.nearest(to: word, among: Invocation.commands + topics)
        let wayOut = near.map { "did you mean '\($0)'?" } ?? "the topics are \(topics.joined(separator: ", "))"
        return .usage("no help for '\(Console.escaped(word))'; \(wayOut)")
    }
}

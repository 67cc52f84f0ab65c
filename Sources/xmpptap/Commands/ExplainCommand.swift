internal import ArgumentParser
internal import TapCapture
internal import TapCore

/// `xmpptap explain`.
struct ExplainCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say what a JSON log or capture shows, put together.",
        discussion: """
            With --subscriptions: how people came to be, or not to be, contacts, from all sessions in the files; with a \
            JID only what concerns that person.

            Example:

              xmpptap explain today.xtap --subscriptions juliet@example.net
            """
    )

    @Argument(
        help: ArgumentHelp("A JSON log or capture.", valueName: "file"),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp("Who sees whose presence, and how it came to be so.", valueName: "jid")
    )
    var subscriptions: String?

    @OptionGroup var config: ConfigOption

    /// `--subscriptions` may stand alone: then what follows it, if it is no address, is no value of it.
    static func complete(_ arguments: [String]) -> [String] {
        guard arguments.first == configuration.commandName else { return arguments }
        var complete: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument == "--subscriptions" else {
                complete.append(argument)
                continue
            }
            let isAddress = rest.first.map { $0.contains("@") && !$0.hasPrefix("-") } ?? false
            complete.append("--subscriptions=\(isAddress ? rest.removeFirst() : everybody)")
        }
        return complete
    }

    /// Stands for everybody: no address is written so.
    private static let everybody = "*"

    func run() throws {
        guard let subscriptions else {
            throw Failure.usage("say what to explain: --subscriptions [JID]")
        }
        var story = SubscriptionStory(of: subscriptions == Self.everybody ? nil : subscriptions)
        do throws(ReaderFault) {
            let reader = try RecordReader(files)
            while let entry = try reader.next() {
                switch entry {
                case .record(let line): story.note(line.record)
                case .damage(let line): Console.complain("\(line)")
                case .header: break
                }
            }
        } catch {
            throw Failure.file(error.description)
        }
        let lines = story.lines()
        guard !lines.isEmpty else {
            let person = subscriptions == Self.everybody ? "" : " of \(subscriptions)"
            return Console.complain("no subscription\(person) was asked for, granted or ended in these files")
        }
        for line in lines { Console.show(line) }
    }
}

internal import ArgumentParser
internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

/// `xmpptap explain`.
struct ExplainCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say why a login failed, and what else a log or capture shows, put together.",
        discussion: """
            Without a flag: how each session came to be ready for stanzas, step by step, or where it failed, why, and \
            what to try; and why it ended. The steps need a file recorded at verbose, as captures are. The exit code is \
            1 where no session became ready.

            A client's own log will do as well, if it shows what it sent and received as XMPPFramework, slixmpp, Gajim \
            and profanity do (SEND: and RECV:).

            With --subscriptions: how people came to be, or not to be, contacts, from all sessions in the files; with a \
            JID only what concerns that person.

            Examples:

              xmpptap explain today.xtap --session 3
              xmpptap explain profanity.log --format html > login.html
              xmpptap explain today.xtap --subscriptions juliet@example.net
            """
    )

    @Argument(
        help: ArgumentHelp("A JSON log or capture, or a client's own log.", valueName: "file"),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Who sees whose presence, and how it came to be so; with a JID only of that person.",
            valueName: "[jid]"
        )
    )
    var subscriptions: String?

    @Option(
        help: ArgumentHelp(
            "How the sessions are told: text, or drawn as svg or html.",
            discussion: """
                A drawing shows who sent what to whom, the steps beside it, and what xmpptap did itself. It draws the \
                first \(SequenceDiagrams.most) sessions; use --session to choose others.
                """,
            valueName: "text|svg|html"
        ),
        transform: ExplainForm.typed
    )
    var format = ExplainForm.text

    @Option(
        help: ArgumentHelp("Explain this session only; can be repeated.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

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
        guard let subscriptions else { return try explainTimelines() }
        guard format == .text else { throw Failure.usage("--format \(format.rawValue) is not for --subscriptions") }
        try explain(subscriptions: subscriptions)
    }

    private func explainTimelines() throws {
        let wanted = Set(session)
        var story = SessionTimelines(of: wanted)
        var drawing = format.document.map { DiagramReport(document: $0, diagrams: SequenceDiagrams(of: wanted)) }
        var found = SessionsFound()
        let isWhole = try StoredRecords.read(files) { entry in
            switch entry {
            case .header(let header):
                found.note(run: header.run)
                story.note(header)
                drawing?.diagrams.note(header)
            case .record(let line):
                found.note(session: line.record.session)
                story.note(line.record)
                drawing?.diagrams.note(line)
            case .damage, .gap: break
            }
        }
        if let remark = found.remark(on: wanted) { Console.complain(remark) }
        if story.all.isEmpty, session.isEmpty { Console.complain("no session is told of in these files") }
        if let drawing {
            Console.print(drawing.drawn())
            if let remark = drawing.remark { Console.complain(remark) }
        } else {
            for line in TimelineReport(timelines: story).lines() { Console.show(line) }
        }
        try end(isWhole, isWell: story.all.contains(where: \.isReady) && !found.lacksAny(of: wanted))
    }

    private func explain(subscriptions: String) throws {
        let wanted = Set(session)
        var story = SubscriptionHistory(of: subscriptions == Self.everybody ? nil : subscriptions)
        var found = SessionsFound()
        let isWhole = try StoredRecords.read(files) { entry in
            switch entry {
            case .header(let header):
                found.note(run: header.run)
                story.note(header)
            case .record(let line):
                found.note(session: line.record.session)
                if wanted.isEmpty || wanted.contains(line.record.session) { story.note(line.record) }
            case .damage, .gap: break
            }
        }
        if let remark = found.remark(on: wanted) { Console.complain(remark) }
        let lines = SubscriptionReport(history: story).lines()
        if lines.isEmpty {
            let person = subscriptions == Self.everybody ? "" : " of \(subscriptions)"
            Console.complain("no subscription\(person) was asked for, granted or ended in these files")
        }
        for line in lines { Console.show(line) }
        try end(isWhole, isWell: !found.lacksAny(of: wanted))
    }

    /// Ends with the code of what was found; a file that could not be read as a whole comes first, as in `read`.
    private func end(_ isWhole: Bool, isWell: Bool) throws(Failure) {
        guard isWhole else { throw .told(.file) }
        guard isWell else { throw .told(.checkFailed) }
    }
}

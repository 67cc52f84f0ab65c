internal import ArgumentParser
internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

struct ExplainCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain why a login failed and why a session ended.",
        discussion: """
            Shows of each session whether its login failed, why, and what to try, then why the session ended, and the \
            login step by step. The steps are recorded at level verbose and in captures; a complete capture is decoded \
            again by this version.

            The exit code is 0 if a session completed its login, 1 if none did and a login failed, and 3 if the files show \
            neither; 1 as well if a session of --session was not found. With --subscriptions no login is needed.

            Takes all files that "xmpptap read" takes, among them the logs of clients and servers with the sent and \
            received XML.

            With --subscriptions: the presence subscriptions in all sessions of the files, or only those of one JID.

            Examples:

              xmpptap explain today.xtap --session 3
              xmpptap explain profanity.log --format html > login.html
              xmpptap explain today.xtap --subscriptions juliet@example.net
            """
    )

    @Argument(
        help: ArgumentHelp("Capture, log, packets, or a folder of captures.", valueName: "file"),
        completion: .recordings
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Show presence subscriptions and their history; with a JID only its own.",
            valueName: "[jid]"
        )
    )
    var subscriptions: String?

    @Option(
        help: ArgumentHelp(
            "Output format: text, or a sequence diagram (default: text).",
            discussion: """
                The diagram shows what each side sent, the login steps, and what xmpptap did. html is the page of \
                'xmpptap view' as one file, of all sessions; svg draws the first \(SequenceDiagrams.maximumCount) sessions, \
                unless --session chooses others.
                """,
            valueName: "text|svg|html"
        ),
        completion: .choices(ExplainForm.self),
        transform: ExplainForm.typed
    )
    var format = ExplainForm.text

    @Option(
        help: ArgumentHelp("Explain only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var colour: ColourOption
    @OptionGroup var config: ConfigOption

    /// Completes `--subscriptions`, which has an optional value: the next argument is its value only if it contains an
    /// `@`.
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

    /// The value of `--subscriptions` if none is given.
    private static let everybody = "*"

    func run() throws {
        guard let subscriptions else { return try explainTimelines() }
        guard format == .text else {
            throw Failure.usage("--format \(format.rawValue) has no effect with --subscriptions; leave it out")
        }
        try explain(subscriptions: subscriptions)
    }

    private func explainTimelines() throws {
        let wanted = Set(session)
        var story = SessionTimelines(of: wanted)
        var drawing = format == .svg ? DiagramReport(of: wanted) : nil
        let page = format == .html ? PageFile(of: files, sessions: wanted, view: .diagram) : nil
        var loops: [String] = []
        let stored = try StoredRecords(files, keys: keylog.keys()) { entry in
            switch entry {
            case .header(let header): story.add(header)
            case .record(let line):
                story.add(line.record)
                guard line.record.code == Record.Code.loginLoop, let message = line.record.message else { break }
                loops.append("\(message)")
            case .damage, .gap: break
            }
            drawing?.add(entry)
            page?.add(entry)
        }
        stored.remark(on: wanted)
        for loop in loops { Console.printDiagnostic(loop) }
        if story.all.isEmpty, session.isEmpty {
            Console.printDiagnostic(
                "no sessions found; logs of xmpptap show them from level verbose on, captures (--capture FILE) always"
            )
        }
        if let drawing {
            Console.print(drawing.drawn())
            if let remark = drawing.remark { Console.printDiagnostic(remark) }
        } else if let page {
            Console.print(try page.drawn())
        } else {
            let report = TimelineReport(timelines: story, style: .ofOutput(colour.color))
            for line in report.lines() { Console.print(line) }
        }
        let isReady = story.all.contains(where: \.isReady)
        try stored.end(wanted, isWell: isReady || story.all.allSatisfy { $0.diagnosis == nil })
        // The login neither succeeded nor failed: scripts need a third exit code.
        guard isReady else {
            guard !story.all.isEmpty else { throw Failure.reported(.file) }
            throw Failure.file("no verdict: the files show neither a login that succeeded nor one that failed")
        }
    }

    private func explain(subscriptions: String) throws {
        let wanted = Set(session)
        var story = SubscriptionHistory(of: subscriptions == Self.everybody ? nil : subscriptions)
        let stored = try StoredRecords(files, keys: keylog.keys()) { entry in
            switch entry {
            case .header(let header): story.add(header)
            case .record(let line) where wanted.isEmpty || wanted.contains(line.record.session): story.add(line.record)
            case .record, .damage, .gap: break
            }
        }
        stored.remark(on: wanted)
        let lines = SubscriptionReport(history: story, style: .ofOutput(colour.color)).lines()
        if lines.isEmpty {
            let person = subscriptions == Self.everybody ? "" : " of \(subscriptions)"
            Console.printDiagnostic("no subscription changes\(person) found")
        }
        for line in lines { Console.print(line) }
        try stored.end(wanted)
    }
}

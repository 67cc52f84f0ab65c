internal import ArgumentParser
internal import Glibc
internal import TapReplay

struct DiffCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Compare two recorded sessions by meaning.",
        discussion: """
            Shows what is missing, unexpected, changed, reordered or slower in the second recording. Ids, resources, \
            stamps and versions may differ if they agree with each other; presence and other pushes may come in any \
            order, messages from one address to another may not. Sessions are paired by JID, then by their order. A \
            stanza that the proxy edited or dropped is compared as the receiver got it; stanzas that the proxy sent \
            itself are ignored.

            If a recording has several files, --against names those of the second; "-" is standard input.

            A noise file says what else may differ, one place and rule a line: ignore, present, regex RE, number ± X. \
            NAME.noise beside NAME.xtap is used if it exists.

            The exit code is 1 if the sessions differ. Differences of the classes timing (slower, another order) and \
            redacted are shown, but do not count unless --fail-on names them.

            Examples:

              xmpptap diff yesterday.xtap today.xtap
              xmpptap diff gajim.xtap profanity.log --session 2:1
              xmpptap diff monday-0001.xtap monday.xtap --against tuesday-0001.xtap tuesday.xtap
              xmpptap diff --learn run1.xtap run2.xtap run3.xtap
              xmpptap diff login.xtap today.xtap --noise login.noise --junit report.xml
              xmpptap diff yesterday.xtap today.xtap --format html > difference.html
            """
    )

    @Argument(
        help: ArgumentHelp("Two captures, folders of them, logs or packets; more with --learn.", valueName: "file"),
        completion: .recordings
    )
    var files: [String]

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "Files of the second recording, where one of the two has several; repeatable.",
            valueName: "file"
        ),
        completion: .file()
    )
    var against: [String] = []

    @Option(
        help: ArgumentHelp(
            "Compare only this session, with session M of the second file; repeatable.",
            valueName: "n[:m]"
        ),
        transform: SessionPairing.typed
    )
    var session: [SessionPairing] = []

    @Option(help: ArgumentHelp("Noise file; repeatable.", valueName: "file"), completion: .file())
    var noise: [String] = []

    @Flag(help: "Learn the noise from recordings of the same session.")
    var learn = false

    @Option(
        help: ArgumentHelp(
            "Noise file that --learn adds to (default: NAME.noise beside the first file).",
            valueName: "file"
        ),
        completion: .file()
    )
    var write: String?

    @Option(
        help: ArgumentHelp("Classes of differences that count (default: behaviour,state).", valueName: "classes"),
        transform: FailingClasses.typed
    )
    var failOn = FailingClasses(classes: [.behaviour, .state])

    @Option(
        help: ArgumentHelp(
            "Output format (default: text).",
            discussion: "html is the page that --report writes to a file.",
            valueName: "text|json|html"
        ),
        completion: .choices(DiffForm.self),
        transform: DiffForm.typed
    )
    var format: DiffForm?

    @Flag(help: "Print the report as JSON.")
    var json = false

    @Option(help: ArgumentHelp("Write the report as JUnit XML.", valueName: "file"), completion: .file())
    var junit: String?

    @Option(help: ArgumentHelp("Write the report as an HTML page.", valueName: "file"), completion: .file())
    var report: String?

    @Option(
        help: ArgumentHelp("Number of differences to show (default: 1000).", valueName: "number"),
        transform: { try Number.parse($0, in: 1...1_000_000) }
    )
    var most = 1000

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var config: ConfigOption

    func run() async throws {
        guard (files + against).count(where: { $0 == "-" }) <= 1 else {
            throw Failure.usage("only one file can be standard input")
        }
        // Report errors of the key log once, before it is read for each recording.
        _ = try keylog.keys()
        guard !json || format == nil else {
            throw Failure.usage("--json and --format exclude each other; leave one out")
        }
        guard !learn || format == nil else {
            throw Failure.usage("--learn prints no comparison: --format has no effect; leave one out")
        }
        guard learn else {
            if write != nil { throw Failure.usage("--write needs --learn; add it") }
            if !against.isEmpty { return try await compare(side(files), side(against)) }
            guard files.count == 2 else {
                throw Failure.usage(
                    "diff compares two files, not \(files.count); if one has several, name the second's with --against"
                )
            }
            return try await compare(side([files[0]]), side([files[1]]))
        }
        guard against.isEmpty else {
            throw Failure.usage("--learn needs one file for each recording, and no --against")
        }
        guard files.count >= 2 else { throw Failure.usage("--learn needs two or more recordings of the same session") }
        try await learnNoise()
    }

    private func side(_ files: [String]) throws(Failure) -> DiffSide {
        let keys = try keylog.lines()
        guard files.contains("-") else { return DiffSide(files, keys: keys) }
        guard files.count == 1 else { throw .usage("standard input is a whole recording; name no other file with it") }
        return try DiffSide(standardInput: STDIN_FILENO, keys: keys)
    }

    private func compare(_ one: DiffSide, _ other: DiffSide) async throws {
        let rules = try NoiseFiles.rules(noise, beside: files + against)
        let (found, isWhole) = try await difference(one, other, rules)
        let form = json ? .json : format ?? .text
        let page = try form == .html || report != nil ? self.page(found, one, other) : nil
        switch form {
        case .text: for line in found.lines(coloured: Paint.forOutput().isOn) { Console.print(line) }
        case .json: Console.print(found.json())
        case .html: try page?.write(to: "-")
        }
        if let junit { try OutputText.write(found.junit(), to: junit) }
        if let report { try page?.write(to: report) }
        guard isWhole else { throw Failure.reported(.file) }
        if found.hasFailed { throw Failure.reported(.checkFailed) }
    }

    /// Returns the page of a report, with the compared sessions of both recordings.
    private func page(_ found: DivergenceReport, _ one: DiffSide, _ other: DiffSide) throws -> PageFile {
        let sides = [
            PageFile.Recording(files: one.files, sessions: Set(session.map(\.recorded))),
            PageFile.Recording(files: other.files, sessions: Set(session.map(\.live))),
        ]
        return PageFile(found, of: sides, keys: try keylog.keys())
    }

    private func difference(_ one: DiffSide, _ other: DiffSide, _ rules: NoiseRules) async throws -> (
        DivergenceReport, Bool
    ) {
        let run = DiffRun(
            recorded: one,
            live: other,
            sessions: session.map { ($0.recorded, $0.live) },
            rules: rules,
            limit: learn ? .max : most
        )
        return try await run.report(failingClasses: failOn.classes)
    }

    private func learnNoise() async throws {
        guard write != nil || files[0] != "-" else {
            throw Failure.usage("standard input has no file beside it; name one with --write")
        }
        let target = write ?? NoiseFiles.path(beside: files[0])
        let rules = try NoiseFiles.rules(noise, beside: [files[0]])
        var learner = NoiseLearner()
        var isWhole = true
        let first = try side([files[0]])
        for file in files.dropFirst() {
            let (found, isRead) = try await difference(first, side([file]), rules)
            isWhole = isWhole && isRead
            for divergence in found.cases.flatMap(\.divergences) { learner.learn(divergence) }
        }
        if !learner.rules.isEmpty { try NoiseFiles.add(learner.rules, to: target) }
        if target != "-" {
            for rule in learner.rules { Console.printEscaped("\(rule)") }
            Console.printDiagnostic("\(learner.rules.count) rules added to \(target)")
        }
        if !learner.unlearned.isEmpty {
            Console.printDiagnostic(
                "\(learner.unlearned.count) differences cannot become rules, as whole stanzas are missing, unexpected or in "
                    + "another order; show them with: xmpptap diff \(files[0]) \(files[1])"
            )
        }
        guard isWhole else { throw Failure.reported(.file) }
        if !learner.unlearned.isEmpty { throw Failure.reported(.checkFailed) }
    }
}

/// The value of `--session N[:M]`.
struct SessionPairing {
    let recorded: UInt64
    let live: UInt64

    static func typed(_ text: String) throws(Failure) -> SessionPairing {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let first = parts.first, parts.count <= 2 else { throw .usage("expected N or N:M, such as 3 or 3:1") }
        let recorded = UInt64(try Number.parse(String(first), in: 1...Int.max))
        let live = parts.count == 1 ? recorded : UInt64(try Number.parse(String(parts[1]), in: 1...Int.max))
        return SessionPairing(recorded: recorded, live: live)
    }
}

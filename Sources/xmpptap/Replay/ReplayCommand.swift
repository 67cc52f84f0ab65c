internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TapNetwork
internal import TapReplay
internal import TapSecurity

struct ReplayCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Play recorded clients against a server and compare.",
        discussion: """
            Logs in with the accounts of --accounts and sends what the recorded clients sent. A stanza is sent when \
            everything has arrived that had arrived before it in the recording. The server's answers are compared by \
            meaning: ids, resources, times and other values that differ from session to session only have to agree \
            with each other. Several recorded clients play together. A peer with an account and no recorded session \
            is played too: it sends what the others received from it.

            Every divergence has a class: behaviour, state (the server's data differ), peer-absent, timing, or \
            redacted (the capture lacks the value; see --value). With --pace recorded or xN, an answer that takes \
            more than four times as long as recorded, and 500 ms more, is timing. A noise file NAME.noise beside the \
            capture says what else may differ.

            Runs scansion scripts too, one after the other; their clients log in with --accounts, or with the passwords of \
            the script. With --register, the accounts of a script are created, and deleted after it. The captures of a folder are played one after the other; several files are one recording.

            The exit code is 0 if nothing diverged, 1 if something did, 4 if the server cannot be reached, and 5 if a \
            login or the preparation failed.

            Examples:

              xmpptap replay talk.xtap --to localhost:5222 --accounts accounts.txt
              xmpptap replay talk.xtap --to localhost:5222 --accounts accounts.txt --copies 100 --ramp 10s
              xmpptap replay talk.xtap --to wss://chat.example.org/xmpp-websocket --accounts accounts.txt
              xmpptap replay scripts/ --to localhost:5222 --accounts accounts.txt --junit report.xml
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Capture, log, or packets; or scansion scripts (.scs), or folders of both.",
            valueName: "file"
        ),
        completion: .recordings(and: "scs")
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Server: HOST[:PORT] (port 5222 unless given), or a ws:// or wss:// URL.",
            valueName: "server"
        ),
        transform: { text throws(EndpointError) in try ServerAddress(text) }
    )
    var to: ServerAddress

    @Option(
        help: ArgumentHelp(
            "Accounts with password files; as=JID names the recorded account.",
            discussion: """
                With --copies, %d in an account is the number of the copy, from 1. Scripts with passwords need none.
                """,
            valueName: "file"
        ),
        completion: .file()
    )
    var accounts: String?

    @OptionGroup var play: PlayOptions

    @Option(
        help: ArgumentHelp("Time an answer may take (default: 10s).", valueName: "time"),
        transform: { try TimeSpan.parse($0) }
    )
    var wait: Int64 = 10_000_000_000

    @Option(
        help: ArgumentHelp(
            "Silence after which other stanzas are given up (default: 500ms).",
            valueName: "time"
        ),
        transform: { try TimeSpan.parse($0) }
    )
    var quiet: Int64 = 500_000_000

    @OptionGroup var trust: ServerTrustOptions

    @Option(
        help: ArgumentHelp("Value for a placeholder of the capture; repeatable.", valueName: "name=@file"),
        transform: PlaceholderValue.init
    )
    var value: [PlaceholderValue] = []

    @Flag(help: "Leave out what the proxy edited, injected or dropped.")
    var withoutEdits = false

    @Flag(help: "Create the accounts first (XEP-0077).")
    var register = false

    @Flag(help: "Build rosters and subscriptions as recorded first.")
    var prepare = false

    @Option(
        help: ArgumentHelp("Number of copies to play at the same time (default: 1).", valueName: "number"),
        transform: { try Number.parse($0, in: 1...100_000) }
    )
    var copies = 1

    @Option(
        help: ArgumentHelp("Time over which the copies begin (default: none).", valueName: "time"),
        transform: { try TimeSpan.parse($0) }
    )
    var ramp: Int64 = 0

    @Option(
        help: ArgumentHelp("Seed of generated ids, to play the same again (default: random).", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 0...Int.max)) }
    )
    var seed: UInt64?

    @Option(
        help: ArgumentHelp("Classes of divergences that fail (default: behaviour).", valueName: "classes"),
        transform: FailingClasses.typed
    )
    var failOn = FailingClasses(classes: [.behaviour])

    @Option(help: ArgumentHelp("Noise file; repeatable.", valueName: "file"), completion: .file())
    var noise: [String] = []

    @Flag(help: "Add what differed to the noise file beside the capture.")
    var update = false

    @Flag(help: "Print the report as JSON.")
    var json = false

    @Option(help: ArgumentHelp("Write the report as JUnit XML.", valueName: "file"), completion: .file())
    var junit: String?

    @Option(help: ArgumentHelp("Write the report as an HTML page.", valueName: "file"), completion: .file())
    var report: String?

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup(title: "Scripts") var scripts: ScriptOptions
    @OptionGroup var config: ConfigOption

    func run() async throws {
        if let suite = try ReplaySuite(files) { return try await run(suite) }
        let result = try await played()
        if !json { result.printSummary() }
        try write(result.report)
        if update { try result.update() }
        if result.isInterrupted {
            Console.printDiagnostic(result.report.errors.first ?? "interrupted")
            Interruption.interruptsProgram()
        }
        try result.end()
    }

    private func run(_ suite: ReplaySuite) async throws {
        guard !suite.captures.isEmpty || recordingFlags.isEmpty else {
            throw Failure.usage("\(recordingFlags.joined(separator: ", ")): only for recordings, not for scripts")
        }
        var report = DivergenceReport(
            command: "replay",
            recorded: files.joined(separator: ", "),
            live: "\(to)",
            failingClasses: failOn.classes
        )
        let scripted = suite.scripts.isEmpty ? nil : try ScriptReplay(suite.scripts, scripts)
        let accounts = try accounts.map { path throws(Failure) in try ReplayPlan.accounts(in: path) } ?? []
        var (end, isInterrupted) = try await suite.play(self, into: &report)
        if let scripted, !isInterrupted {
            var settings = ScriptPlay.Settings()
            (settings.wait, settings.quiet) = (wait, quiet)
            if suite.captures.isEmpty { report.subject = .script }
            let (added, scriptEnd) = await scripted.run(
                at: try server(),
                accounts: accounts,
                settings: settings,
                report: report,
                print: { [json] line in if !json { Console.printEscaped(line) } }
            )
            report = added
            if end == .success || end == .checkFailed && scriptEnd != .success { end = scriptEnd }
        }
        if !json, suite.captures.count + suite.scripts.count > 1, !suite.captures.isEmpty {
            Console.printEscaped("in all: \(report.summary)")
            if copies > 1 { for line in report.latencyLines { Console.printEscaped(line) } }
        }
        try write(report)
        if isInterrupted { Interruption.interruptsProgram() }
        if end != .success { throw Failure.reported(end) }
    }

    /// Replays a recording.
    ///
    /// - Parameter advice: The advice shown if the recording cannot be replayed.
    func played(advice: String = AdviceTable.recordWhole) async throws -> ReplayResult {
        let plan = try ReplayPlan(self, advice: advice)
        if let advice = AdviceTable.descriptors(ProcessLimits.descriptors.soft, connections: plan.connections) {
            Console.printDiagnostic(advice)
        }
        let server = try server()
        let run = ReplayRun(
            plan.script,
            server: server,
            rules: plan.rules,
            options: plan.options,
            seed: seed ?? UInt64.random(in: 0...UInt64(Int64.max))
        )
        let progress = ProgressLine()
        let outcomes = Mutex<[ReplayRun.Outcome]>([])
        try await Interruption.cancels { [ramp, copies] in
            let played = try await run.outcomes(
                of: plan.copies,
                ramp: .nanoseconds(ramp),
                on: MultiThreadedEventLoopGroup.singleton,
                onProgress: { first, over in
                    let stanzas = "\(first.sent + first.matched) of \(first.total) stanzas"
                    progress.update(copies > 1 ? "\(over) of \(copies) copies played, the first: \(stanzas)" : stanzas)
                }
            )
            outcomes.withLock { $0 = played }
        }
        Interruption.endsProgram()
        progress.clear()
        return ReplayResult(outcomes.withLock { $0 }, plan, server: "\(to)", failing: failOn.classes)
    }

    /// Writes a report to the files of the flags, and prints it if JSON was requested.
    func write(_ report: DivergenceReport) throws(Failure) {
        if json { Console.print(report.json()) }
        if let junit { try OutputText.write(report.junit(), to: junit) }
        guard let path = self.report else { return }
        let captures = try ReplaySuite(files)?.captures ?? files
        let played = PageFile.Recording(files: captures, sessions: Set(play.session))
        try PageFile(report, of: captures.isEmpty ? [] : [played], keys: keylog.keys()).write(to: path)
    }

    /// The given flags that apply only to recordings.
    private var recordingFlags: [String] {
        // With its type: the compiler would need seconds to find it.
        let flags: [(name: String, isGiven: Bool)] = [
            ("--session", !play.session.isEmpty), ("--pace", play.pace != .causal), ("--value", !value.isEmpty),
            ("--without-edits", withoutEdits), ("--prepare", prepare), ("--copies", copies > 1), ("--ramp", ramp > 0),
            ("--seed", seed != nil), ("--keylog", keylog.keylog != nil),
            ("--noise", !noise.isEmpty), ("--update", update), ("--fail-on", failOn.classes != [.behaviour]),
        ]
        return flags.filter(\.isGiven).map(\.name)
    }

    private func server() throws -> LiveServer {
        do {
            return try LiveServer(
                to,
                tls: trust.verification(),
                timeout: .nanoseconds(wait),
                registers: register,
                cryptography: OpenSSLCryptography()
            )
        } catch let error as TLSContextError {
            throw Failure.file("--upstream-ca: \(error)")
        }
    }
}

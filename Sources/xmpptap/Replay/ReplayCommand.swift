internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import TapNetwork
internal import TapReplay
internal import TapSecurity

struct ReplayCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Play recorded clients against a server and compare.",
        discussion: """
            Logs in afresh with the accounts of --accounts, sends what the recorded clients sent, each stanza when all \
            has arrived that had arrived before it, and compares what comes back by meaning. Ids, resources, times and \
            other values that differ from session to session only have to agree with each other. Several recorded \
            clients play together. A peer with an account and no recorded session is played too: it sends what the \
            others received from it.

            Every divergence has a class: behaviour, state (the server's data differ), peer-absent, timing, or \
            redacted (the capture lacks the value; see --value). A noise file NAME.noise beside the capture says what \
            else may differ.

            Runs scansion scripts too, one after the other; their clients log in with --accounts, or with the passwords of \
            the script.

            The exit code is 0 if nothing diverged, 1 if something did, 4 if the server cannot be reached, and 5 if a \
            login or the preparation failed.

            Examples:

              xmpptap replay talk.xtap --to localhost:5222 --accounts accounts.txt
              xmpptap replay talk.xtap --to localhost:5222 --accounts accounts.txt --copies 100 --ramp 10s
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Capture, JSON log or client log; or scansion scripts (.scs), or folders of them.",
            valueName: "file"
        ),
        completion: .file()
    )
    var files: [String]

    @Option(
        help: ArgumentHelp("Server to play against.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var to: Endpoint

    @Option(
        help: ArgumentHelp(
            "Accounts with password files; as=JID names the recorded account.",
            discussion: "With --copies, %d in an account is the number of the copy, from 1.",
            valueName: "file"
        ),
        completion: .file()
    )
    var accounts: String

    @Option(
        help: ArgumentHelp("Play only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @Option(
        help: ArgumentHelp(
            "When to send: causal, recorded, or xN times as fast (default: causal).",
            valueName: "causal|recorded|xN"
        ),
        transform: ReplayPace.parse
    )
    var pace = ReplayOptions.Pace.causal

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

    @Option(
        help: ArgumentHelp("PEM trust anchors for the server (default: the system's).", valueName: "file"),
        completion: .file()
    )
    var ca: String?

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
        help: ArgumentHelp("Play so many copies at the same time (default: 1).", valueName: "number"),
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

    @OptionGroup(title: "Scripts") var scripts: ScriptOptions
    @OptionGroup var config: ConfigOption

    func run() async throws {
        guard !ScriptReplay.takes(files) else {
            let accounts = try ReplayPlan.accounts(in: accounts)
            var settings = ScriptPlay.Settings()
            (settings.wait, settings.quiet) = (wait, quiet)
            return try await ScriptReplay(files, scripts).run(at: server(), accounts: accounts, settings: settings)
        }
        let plan = try ReplayPlan(self)
        let server = try server()
        let run = ReplayRun(
            plan.script,
            server: server,
            rules: plan.rules,
            options: plan.options,
            seed: seed ?? UInt64.random(in: 0...UInt64(Int64.max))
        )
        let outcomes = try await run.outcomes(
            of: plan.copies,
            ramp: .nanoseconds(ramp),
            on: MultiThreadedEventLoopGroup.singleton,
            tell: { [progress = ReplayProgress()] in progress.note($0) }
        )
        let result = ReplayResult(outcomes, plan, server: "\(to)", failing: failOn.classes)
        try result.show(self)
        if update { try result.learn(into: NoiseFiles.path(beside: plan.file)) }
        try result.end()
    }

    private func server() throws -> LiveServer {
        do {
            return try LiveServer(
                to,
                authority: ca,
                timeout: .nanoseconds(wait),
                registers: register,
                cryptography: OpenSSLCryptography()
            )
        } catch let error as TLSContextError {
            throw Failure.file("--ca: \(error)")
        }
    }
}

internal import ArgumentParser
internal import TapNetwork

struct RecordTestCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "record-test",
        abstract: "Record a session and make a regression test of it.",
        discussion: """
            Starts a proxy before the server and records what passes into NAME.xtap until you press Ctrl-C: log in \
            through it, do what is to be tested, and log out. Then plays the recording against the server twice. What \
            differs the first time goes into NAME.noise, to be reviewed; the second time nothing may differ. A step \
            for a CI job is written to NAME.ci.yml.

            The exit code is that of the second replay.

            Example:

              xmpptap record-test login --to localhost:5222 --accounts accounts.txt
            """
    )

    @Argument(help: ArgumentHelp("Name of the test, without an ending; its files are made here.", valueName: "name"))
    var name: String

    @Option(
        help: ArgumentHelp("Server to record and to play against.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var to: Endpoint

    @Option(
        help: ArgumentHelp("Accounts with password files, as for replay.", valueName: "file"),
        completion: .file()
    )
    var accounts: String

    @Option(help: ArgumentHelp("Address to listen on.", valueName: "[host:]port"))
    var listen = "15222"

    @Option(
        help: ArgumentHelp("PEM trust anchors for the server (default: the system's).", valueName: "file"),
        completion: .file()
    )
    var ca: String?

    @Option(
        help: ArgumentHelp("Folder of the CAs, as for proxy.", valueName: "folder"),
        completion: .directory
    )
    var caDir: String?

    @OptionGroup var config: ConfigOption

    func run() async throws {
        let capture = "\(name).xtap"
        for file in [capture, "\(name).noise", "\(name).ci.yml"] where TextFile.isRegular(file) {
            throw Failure.usage("\(file) exists already; remove it or choose another name")
        }
        var arguments = ["--upstream", "\(to)", "--listen", listen, "--capture", capture, "--log", "warn"]
        if let ca { arguments += ["--upstream-ca", ca] }
        if let caDir { arguments += ["--ca-dir", caDir] }
        Console.tell("log in through this proxy, log out, then press Ctrl-C")
        try await run(ProxyCommand.self, arguments)
        let replay = [capture, "--to", "\(to)", "--accounts", accounts] + (ca.map { ["--ca", $0] } ?? [])
        Console.tell("playing \(capture) to learn what differs")
        do {
            try await run(ReplayCommand.self, replay + ["--update"])
        } catch let failure as Failure where failure.status == .checkFailed {
            // What could be learned is learned; whether the rest differs again shows the second time.
        }
        Console.tell("playing \(capture) again")
        try await run(ReplayCommand.self, replay)
        try OutputText.write(step(capture), to: "\(name).ci.yml")
        Console.tell("review \(name).noise and \(name).ci.yml, if they are there, and keep them beside \(capture)")
    }

    private func run(_ command: (some AsyncParsableCommand).Type, _ arguments: [String]) async throws {
        var command = try command.parse(arguments)
        try await command.run()
    }

    /// A step as GitHub and Forgejo have it.
    private func step(_ capture: String) -> String {
        """
        - name: Replay \(capture)
          run: xmpptap replay \(capture) --to \(to) --accounts \(accounts) --junit \(name).xml

        """
    }
}

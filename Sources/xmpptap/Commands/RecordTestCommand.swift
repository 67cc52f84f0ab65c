internal import ArgumentParser
internal import TapNetwork
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

struct RecordTestCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "record-test",
        abstract: "Record a session and make a regression test of it.",
        discussion: """
            Starts a proxy in front of the server and records the session in NAME.xtap until you press Ctrl-C: log in \
            through it, do what you want to test, and log out. Then plays the recording against the server three times. \
            What differed in the first two, values and optional stanzas of the server, is written to NAME.noise, for \
            you to review; the third must pass. A step for a CI job is written to NAME.ci.yml.

            Each replay needs the server's data as they were before the recording. --prepare restores rosters and \
            subscriptions. Differences that no noise rule can allow, such as a missing answer, are shown, with what \
            the recording depends on.

            The exit code is 0 if NAME is a test that passes, 1 if the third replay had differences that are not \
            noise or the server's certificate cannot be verified, 3 if nothing was recorded, 4 if the server cannot be reached, and 5 if a login or the preparation \
            failed.

            Examples:

              xmpptap record-test login --to localhost:5222 --accounts accounts.txt --prepare
              xmpptap record-test login --to localhost --accounts accounts.txt --register
              xmpptap record-test chat --to test.example.org --accounts accounts.txt --upstream-ca root.pem
            """
    )

    @Argument(help: ArgumentHelp("Name of the test, without an ending; its files are made here.", valueName: "name"))
    var name: String

    @Option(
        help: ArgumentHelp("Server to record and to play against, port 5222 unless given.", valueName: "host[:port]"),
        transform: { text throws(EndpointError) in try Endpoint.server(text) }
    )
    var to: Endpoint

    @Option(
        help: ArgumentHelp("Accounts with password files, as for replay.", valueName: "file"),
        completion: .file()
    )
    var accounts: String

    @Option(help: ArgumentHelp("Address to listen on.", valueName: "[host:]port"))
    var listen = "15222"

    @Flag(help: "Build rosters and subscriptions as recorded before each replay.")
    var prepare = false

    @Flag(help: "Create the accounts before each replay (XEP-0077).")
    var register = false

    @OptionGroup var trust: ServerTrustOptions

    @Option(
        help: ArgumentHelp("Folder of the CAs, as for proxy.", valueName: "folder"),
        completion: .directory
    )
    var caDir: String?

    @OptionGroup var config: ConfigOption

    private var capture: String { "\(name).xtap" }
    private var noise: String { "\(name).noise" }
    private var step: String { "\(name).ci.yml" }

    func run() async throws {
        for file in [capture, noise, step] where TextFile.isRegular(file) {
            throw Failure.usage("\(file) exists already; remove it or choose another name")
        }
        // Check the accounts before the user spends time on a session.
        let accounts = try ReplayPlan.accounts(in: accounts)
        var checked = self
        try await checked.check(accounts.map(\.live))
        try await checked.play()
    }

    /// Checks TLS with the server, as clients and the replays use it, before the user spends time on a session. If the
    /// user accepts a certificate that cannot be verified, it is pinned.
    private mutating func check(_ accounts: [JID]) async throws {
        var domains: Set<String> = []
        for account in accounts where domains.insert("\(account.domain)").inserted {
            let check = ServerCheck(
                target: try ProxyTarget("\(account)"),
                server: to,
                resolver: nil,
                proxyHeader: nil,
                way: .any,
                requiring: trust.requiring,
                tls: try trust.verification()
            )
            if let pin = try await check.run().pin { trust.accept(pin) }
        }
    }

    private func play() async throws {
        try await record()
        Interruption.endsProgram()
        var rules = 0
        for round in ["first", "second", "third"] {
            let result = try await replay()
            Console.printStandardError("\(round) replay: \(result.summary)")
            do throws(Failure) {
                try result.checkPlayed()
            } catch {
                Console.printStandardError("\(capture) is kept; play it with '\(command) --update'")
                throw error
            }
            guard round == "third" else {
                rules += try result.learn(into: noise, onlyFailing: true).rules
                continue
            }
            try OutputText.write(snippet, to: step)
            if result.report.hasFailed { result.printSummary() }
            let written = [capture] + (rules > 0 ? ["\(noise) (\(rules) rules, to be reviewed)"] : []) + [step]
            Console.printStandardError("written: \(written.joined(separator: ", "))")
            if result.report.hasFailed {
                for line in AdviceTable.unlearned(result.dependences, prepares: prepare) {
                    Console.printDiagnostic(line)
                }
                throw Failure.reported(.checkFailed)
            }
            // The test passes, but differences in the server's data remain; each replay waits for some of them.
            guard result.report.cases.flatMap(\.divergences).contains(where: { $0.isOf([.state]) }) else { continue }
            for line in AdviceTable.restoring(result.dependences, prepares: prepare) { Console.printDiagnostic(line) }
        }
    }

    private func record() async throws {
        var arguments = ["--upstream", "\(to)", "--listen", listen, "--capture", capture, "--log", "warn"]
        arguments += trust.arguments
        if let caDir { arguments += ["--ca-dir", caDir] }
        Console.printStandardError(AdviceTable.recordTest(authorities: caDir))
        try await ProxyCommand.parse(arguments).run()
    }

    private func replay() async throws -> ReplayResult {
        let advice = AdviceTable.recordAgain(capture)
        return try await ReplayCommand.parse([capture] + options).played(advice: advice)
    }

    /// The flags of the replays.
    private var options: [String] {
        ["--to", "\(to)", "--accounts", accounts] + trust.arguments + (register ? ["--register"] : [])
            + (prepare ? ["--prepare"] : [])
    }

    /// The command line that replays the recording.
    private var command: String {
        (["xmpptap", "replay", capture] + options).map { AuthorityFolder.word($0) }.joined(separator: " ")
    }

    /// A CI step in the syntax of GitHub and Forgejo.
    private var snippet: String {
        return """
            # The password files that \(accounts) names must exist, too.
            - name: 'Replay \(capture.replacing("'", with: "''"))'
              run: |
                \(command) --junit \(AuthorityFolder.word("\(name).xml"))

            """
    }
}

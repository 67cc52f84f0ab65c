internal import ArgumentParser
internal import TapCore
internal import TapNetwork
internal import TapRecord

struct DemoCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run a complete login with a built-in server and client.",
        discussion: """
            Starts the built-in server, a proxy and a client on free ports of this machine. The client negotiates TLS, \
            which the proxy decrypts on both legs. It logs in, fetches its roster, sends presence, pings the server and \
            sends a message to itself. The log shows all of it, by default at level verbose.

            Examples:

              xmpptap demo
              xmpptap demo --log info --capture demo.xtap
              xmpptap demo --log info --bodies
            """
    )

    @OptionGroup(title: "Logs") var logs: LogOptions<Usual>
    @OptionGroup(title: "Logs") var store: StoreOption
    @OptionGroup(title: "Logs") var storeAccess: StoreAccessOptions
    @OptionGroup(title: "Logs") var storeSpool: SpoolOptions
    @OptionGroup(title: "Logs") var storeContent: StoredContentOptions
    @OptionGroup(title: "Logs") var storeLimits: StoreLimitOptions
    @OptionGroup var config: ConfigOption

    enum Usual: UsualLog {
        static let spec = LogSpec(level: .verbose)
        static let text = spec.description
    }

    func run() async throws {
        let request = try store.request(storeAccess, storeSpool, storeContent, storeLimits)
        let plan = try LogPlan(logs.request(store: request), in: .current, defaultSpec: Usual.spec)
        let tap = try TapRun(plan)
        tap.logs.showStatus()
        let steps = try await tap.finishing { try await play(tap) }
        let isWhole = tap.logs.close(within: .seconds(10))
        // A JSON log is for programs, so the summary goes to standard error.
        let isForPeople = plan.logs.allSatisfy { $0.path != nil || $0.form != .json }
        let program = DemoSummary.program(called: ProgramArguments.all.first)
        let style = isForPeople ? OutputStyle.ofOutput(.never) : .plain
        for line in DemoSummary.lines(steps, program: program, style: style) {
            if isForPeople { Console.print(line) } else { Console.printStandardError(line) }
        }
        tap.logs.printCapture()
        guard isWhole else { throw Failure.reported(.file) }
    }

    /// Runs the demo and stops the server. Returns after the logs have received all records.
    private func play(_ tap: TapRun) async throws -> [DemoStep] {
        let server = try await EphemeralServer.start(tap.cryptography, securedFrom: tap.clock.now().time)
        do {
            let steps = try await DemoRun(tap: tap, server: server).steps()
            await server.stop()
            return steps
        } catch {
            await server.stop()
            throw error
        }
    }
}

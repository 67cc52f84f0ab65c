internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The objects that every command that relays sessions needs: clock, run, cryptography and logs.
struct TapRun {
    static let tool = "xmpptap \(Version.program)"

    let cryptography: OpenSSLCryptography
    let clock: RunClock
    let run: Run
    let logs: OpenLogs
    let options: SessionOptions
    /// The random identifier of the run, which is written to all its files.
    let word: String

    /// Begins a run and opens its logs.
    init(_ plan: LogPlan) throws(Failure) {
        if plan.redaction == .none {
            Console.printDiagnostic(
                "warning: --no-redact: logs contain passwords and other secrets in clear text; anyone who reads the files "
                    + "can log in with them"
            )
        }
        let cryptography = OpenSSLCryptography()
        let clock = RunClock()
        run = Run(cryptography: cryptography, journal: Self.journal())
        guard let word = try? cryptography.randomBytes(count: RunIdentifier.randomCount) else {
            throw Failure(status: .checkFailed, message: "OpenSSL cannot generate random numbers; see 'xmpptap doctor'")
        }
        self.word = RunIdentifier.text(at: clock.now().time, random: word)
        let logged = LoggedRun(
            tool: Self.tool,
            word: self.word,
            redaction: plan.redaction,
            run: run,
            now: { clock.now() }
        )
        logs = try OpenLogs(plan, run: logged)
        var options = SessionOptions(redaction: plan.redaction)
        options.recordLevel = logs.dispatcher.level
        options.advice = AdviceTable.advice(for:)
        self.options = options
        self.cryptography = cryptography
        self.clock = clock
    }

    /// Returns the file of sessions that a restarted proxy cannot resume; nil without a home folder.
    private static func journal() -> ResumptionFile? {
        guard let folder = Console.stateFolder else { return nil }
        let path = "\(folder)/resumption"
        return ResumptionFile(path: path) { reason in
            Console.printDiagnostic(
                "warning: cannot write \(path): \(reason); a restarted proxy will not know which sessions it cannot resume"
            )
        }
    }

    /// Runs `body`. If it throws, closes the logs first, and removes files that received no record.
    func finishing<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            logs.close(within: .seconds(1), removingUnused: true)
            throw error
        }
    }
}

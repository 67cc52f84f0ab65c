internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// What a command that taps sessions needs throughout: clock, numbers, cryptography, and its logs.
struct TapRun {
    let cryptography: OpenSSLCryptography
    let clock: RunClock
    let run: Run
    let logs: OpenLogs
    let options: SessionOptions

    /// Begins a run and opens its logs.
    init(_ plan: LogPlan) throws(Failure) {
        if plan.redaction == .none {
            Console.complain(
                "warning: --no-redact: passwords and all other secrets stand in the logs as they are; whoever reads the "
                    + "files can log in with them"
            )
        }
        let cryptography = OpenSSLCryptography()
        let clock = RunClock()
        run = Run(cryptography: cryptography)
        guard let word = try? cryptography.randomBytes(count: 8) else {
            throw Failure(status: .checkFailed, message: "OpenSSL gives no random numbers; see 'xmpptap doctor'")
        }
        let logged = LoggedRun(
            tool: "xmpptap \(Version.program)",
            word: word.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined(),
            redaction: plan.redaction,
            run: run,
            now: { clock.now() }
        )
        logs = try OpenLogs(plan, run: logged)
        var options = SessionOptions(redaction: plan.redaction)
        options.recordLevel = logs.dispatcher.level
        self.options = options
        self.cryptography = cryptography
        self.clock = clock
    }

    /// Gives what `body` gives; where it fails the logs are closed first, so that they hold what there was.
    func finishing<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            logs.close(within: .seconds(1))
            throw error
        }
    }
}

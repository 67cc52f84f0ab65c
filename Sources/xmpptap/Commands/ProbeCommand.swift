internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// `xmpptap probe`.
struct ProbeCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Log in to a server itself and explain each step: is the server all right?",
        discussion: """
            Finds the server as a client would, begins TLS, looks at its certificate, its mechanisms and channel \
            bindings, logs in by the strongest of them, binds, enables stream management and pings; then grades what it \
            saw, from A to F. It sends no presence and writes to nobody. Without a password it looks at what the server \
            offers. Nothing of a password leaves this machine without TLS, or goes to a server whose certificate is \
            refused.

            With a log or capture as second argument it shows where the client in it left the path that works.

            The exit code is 1 if the login or the recorded client failed, 4 if no server was reached.

            Examples:

              xmpptap probe juliet@example.org
              xmpptap probe juliet@example.org --password-file pass.txt --via localhost:5222 --ca root.pem
              xmpptap probe juliet@example.org today.xtap --password-file -
            """
    )

    @Argument(
        help: ArgumentHelp("The account; without a password its domain will do.", valueName: "account"),
        transform: { text throws(Failure) in
            do throws(JIDError) {
                return try JID(parsing: text).bare
            } catch {
                throw .usage("\(Console.escaped(text)) is no account (\(error)); write it as in juliet@example.org")
            }
        }
    )
    var account: JID

    @Argument(
        help: ArgumentHelp("A JSON log or capture, or a client's own log, to compare with.", valueName: "file"),
        completion: .file()
    )
    var recording: String?

    @Option(
        help: ArgumentHelp(
            "The password is the first line of this file; - asks for it, or reads standard input.",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Option(
        help: ArgumentHelp("Connect there, and not where the domain's records say.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var via: Endpoint?

    @Option(
        help: ArgumentHelp("Ask this name server; without it those of this machine.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @Option(
        help: ArgumentHelp(
            "Trust a server whose certificate these vouch for, or is among them, and no other (default: the system's roots).",
            valueName: "file"
        ),
        completion: .file()
    )
    var ca: String?

    @Flag(help: "Begin with TLS, instead of STARTTLS.")
    var directTls = false

    @Flag(help: "Do not bind the login to the connection.")
    var noBinding = false

    @Option(
        help: ArgumentHelp("Wait so long for each step (default: 10).", valueName: "seconds"),
        transform: { try Number.parse($0, in: 1...600) }
    )
    var timeout = 10

    @Option(
        help: ArgumentHelp(
            "Compare with this session of the file (default: the first that failed).",
            valueName: "number"
        ),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var with: UInt64?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup(title: "Logs") var logs: LogOptions<Usual>
    @OptionGroup var config: ConfigOption

    enum Usual: UsualLog {
        static let spec = LogSpec(level: .off)
        static let words = "nothing"
    }

    func run() async throws {
        try check()
        let paths = try recording.map { file throws(Failure) in try RecordedPaths([file]) }
        let path = try paths.map(recordedPath)
        let password = try passwordFile.map { file throws(Failure) in
            try PasswordFile.read(file, of: account.description)
        }
        let plan = try LogPlan(logs.request, in: .current, defaultSpec: Usual.spec)
        let tap = try TapRun(plan)
        let story = json ? nil : ProbeText(paint: Paint.forOutput)
        // A log on standard output would be torn apart by what is told meanwhile.
        let isLive = story != nil && !plan.logs.contains { $0.path == nil }
        let head = Once()
        let report = try await tap.finishing {
            try await probe(password, plan, tap) { [account] step in
                guard isLive, let story else { return }
                if head.isFirst() { Self.show(story.head(account)) }
                Self.show(story.lines(step))
            }
        }
        let isWhole = tap.logs.close(within: .seconds(10))
        let comparison = path.map { ProbeComparison(report, $0) }
        if let story {
            Self.show(isLive ? story.rest(report) : story.lines(report))
            Self.show(comparison?.lines(story.paint) ?? [])
        } else {
            Self.show(ProbeJSON(report: report, comparison: comparison).lines)
        }
        guard report.outcome != .failed else {
            throw Failure.told(report.diagnosis?.isOfNetwork == true ? .network : .checkFailed)
        }
        guard path?.isReady ?? true else { throw Failure.told(.checkFailed) }
        guard isWhole, paths?.isWhole ?? true else { throw Failure.told(.file) }
    }

    private static func show(_ lines: [String]) { for line in lines { Console.print(line) } }

    private func check() throws(Failure) {
        if account.local == nil, passwordFile != nil {
            throw .usage("--password-file is for an account; write it as in juliet@\(account.domain)")
        }
        if resolver != nil, via != nil { throw .usage("--resolver is not asked with --via; leave one out") }
        if with != nil, recording == nil { throw .usage("--with is for a file to compare with; name it") }
        if json, logs.log != nil {
            throw .usage("--json and --log both print here; write the log to a file by --log-to")
        }
    }

    private func recordedPath(_ paths: RecordedPaths) throws(Failure) -> SessionTimelines.Timeline {
        let recording = recording ?? ""
        if let with, paths.count(of: with) > 1 {
            Console.complain(
                "--with \(with): \(paths.count(of: with)) runs in \(recording) have a session \(with); the first is compared"
            )
        }
        guard let path = paths.path(with) else {
            if let with { throw .usage("--with \(with): there is no such session with steps in \(recording)") }
            throw .file(
                "\(recording) has no steps to compare with: they are recorded from verbose on, as in a capture"
            )
        }
        return path
    }

    private func probe(
        _ password: String?,
        _ logPlan: LogPlan,
        _ tap: TapRun,
        tell: @escaping @Sendable (ProbeReport.Step) -> Void
    ) async throws -> ProbeReport {
        var plan = ProbePlan(account: account)
        plan.password = password
        plan.via = via
        plan.resolver = resolver
        plan.isDirect = directTls
        plan.bindsChannel = !noBinding
        plan.timeout = .seconds(Int64(timeout))
        plan.redaction = logPlan.redaction
        if let ca { plan.tls.trust = .file(ca) }
        let probe = Probe(
            plan,
            run: tap.run,
            clock: tap.clock,
            dispatcher: tap.logs.dispatcher,
            cryptography: tap.cryptography
        )
        do {
            return try await probe.report(on: MultiThreadedEventLoopGroup.singleton, tell: tell)
        } catch let error as TLSContextError {
            throw Failure.file("--ca: \(error)")
        } catch let error as ProbeError {
            throw Failure.network("--resolver: \(error)")
        } catch {
            throw Failure(status: .checkFailed, message: "the probe cannot begin: \(error)")
        }
    }
}

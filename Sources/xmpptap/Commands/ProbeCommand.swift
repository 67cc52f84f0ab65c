internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import TapCapture
internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

struct ProbeCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Check a server by logging in, and explain each step.",
        discussion: """
            Looks up the server as a client does, negotiates TLS, checks the certificate, the SASL mechanisms and \
            channel binding, logs in with the strongest mechanism, binds a resource, enables stream management and \
            pings the server. Then it grades the results from A to F. It sends no presence and no messages. Without a \
            password it checks only what the server offers. The password is never sent without TLS, nor to a server \
            whose certificate is not trusted.

            With a log or capture as second argument it compares: at which step did that client's login differ?

            The exit code is 1 if the login or the recorded client failed, 4 if no server could be reached.

            Examples:

              xmpptap probe juliet@example.org
              xmpptap probe juliet@example.org --password-file - --via localhost:5222 --upstream-ca root.pem
              xmpptap probe juliet@example.org --ws auto
              xmpptap probe juliet@example.org today.xtap --password-file -
            """
    )

    @Argument(
        help: ArgumentHelp("Account, or only its domain if there is no password.", valueName: "account"),
        transform: { text throws(Failure) in
            do throws(JIDError) {
                return try JID(parsing: text).bare
            } catch {
                throw .usage(
                    "\(Console.escaped(text)) is not an account (\(error)); write an address such as juliet@example.org"
                )
            }
        }
    )
    var account: JID

    @Argument(
        help: ArgumentHelp("JSON log, capture or client log to compare with.", valueName: "file"),
        completion: .file()
    )
    var recording: String?

    @Option(
        help: ArgumentHelp(
            "File with the password in its first line; - prompts or reads stdin.",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Option(
        help: ArgumentHelp("Connect to this server instead of looking up the domain.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var via: Endpoint?

    @Option(
        help: ArgumentHelp(
            "Probe a WebSocket: its URL, or auto to find it by host-meta.",
            discussion: """
                A ws:// or wss:// URL; auto gets host-meta and host-meta.json of the domain (XEP-0156), an https:// URL \
                those of another host.
                """,
            valueName: "url|auto"
        ),
        transform: { text throws(EndpointError) -> ProbePlan.Web in
            if text == "auto" { return .hostMeta(nil) }
            if text.lowercased().hasPrefix("https://") { return .hostMeta(try HTTPSAddress(text)) }
            return .url(try WebServer(text))
        }
    )
    var ws: ProbePlan.Web?

    @Option(
        help: ArgumentHelp("DNS server to query (default: the system's).", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @OptionGroup var trust: ServerTrustOptions

    @Flag(help: "Use direct TLS (XEP-0368) instead of STARTTLS.")
    var directTls = false

    @Flag(help: "Log in without channel binding.")
    var noBinding = false

    @Option(
        help: ArgumentHelp("Time to wait for each step, in seconds (default: 10).", valueName: "seconds"),
        transform: { try Number.parse($0, in: 1...600) }
    )
    var timeout = 10

    @Option(
        help: ArgumentHelp(
            "Session of the file to compare with (default: the first that failed).",
            valueName: "number"
        ),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var with: UInt64?

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @OptionGroup(title: "Logs") var logs: LogOptions<Usual>
    @OptionGroup(title: "Logs") var store: StoreOption
    @OptionGroup(title: "Logs") var storeAccess: StoreAccessOptions
    @OptionGroup(title: "Logs") var storeSpool: SpoolOptions
    @OptionGroup(title: "Logs") var storeContent: StoredContentOptions
    @OptionGroup(title: "Logs") var storeLimits: StoreLimitOptions
    @OptionGroup var config: ConfigOption

    enum Usual: UsualLog {
        static let spec = LogSpec(level: .off)
        static let text = "nothing"
    }

    func run() async throws {
        try check()
        let recorded = try recording.map(recordedPath)
        let password = try passwordFile.map { file throws(Failure) in
            try PasswordFile.read(file, of: account.description)
        }
        let request = try store.request(storeAccess, storeSpool, storeContent, storeLimits)
        let plan = try LogPlan(logs.request(store: request), in: .current, defaultSpec: Usual.spec)
        let tap = try TapRun(plan)
        let story = json ? nil : ProbeText(style: .ofOutput(logs.form.color))
        // If the log is on standard output, print the report only at the end.
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
        let comparison = recorded.map { ProbeComparison(report, $0.path) }
        if let story {
            Self.show(isLive ? story.rest(report) : story.lines(report))
            Self.show(comparison?.lines(story.style) ?? [])
        } else {
            Self.show(ProbeJSON(report: report, comparison: comparison).lines)
        }
        guard report.outcome != .failed else {
            throw Failure.reported(report.diagnosis?.isOfNetwork == true ? .network : .checkFailed)
        }
        guard recorded?.path.isReady ?? true else { throw Failure.reported(.checkFailed) }
        guard isWhole, recorded?.isWhole ?? true else { throw Failure.reported(.file) }
    }

    private static func show(_ lines: [String]) { for line in lines { Console.print(line) } }

    private func check() throws(Failure) {
        if account.local == nil, passwordFile != nil {
            throw .usage("--password-file needs an account; write an address such as juliet@\(account.domain)")
        }
        if resolver != nil, via != nil { throw .usage("--resolver has no effect with --via; leave one out") }
        if ws != nil, via != nil || resolver != nil || directTls {
            throw .usage("--via, --resolver and --direct-tls have no effect with --ws; leave them out")
        }
        if with != nil, recording == nil { throw .usage("--with needs a file to compare with; add it") }
        if json, logs.log != nil {
            throw .usage("--json and --log both write to standard output; write the log to a file with --log-to")
        }
    }

    /// Returns the login timeline to compare with, and whether every line of the file could be read. Without `--with`,
    /// the session is the first one whose login failed, or else the first one in the file.
    private func recordedPath(
        _ recording: String
    ) throws(Failure) -> (path: SessionTimelines.Timeline, isWhole: Bool) {
        var timelines = SessionTimelines()
        let stored = try StoredRecords([recording]) { entry in
            switch entry {
            case .header(let header): timelines.add(header)
            case .record(let line): timelines.add(line.record)
            case .damage, .gap: break
            }
        }
        let all = timelines.all.filter { !$0.steps.isEmpty }
        let runs = timelines.all.count { $0.number == with }
        if let with, runs > 1 {
            Console.printDiagnostic(
                "--with \(with): \(runs) runs in \(recording) have a session \(with); comparing with the first"
            )
        }
        let path = with == nil ? all.first { !$0.isReady } ?? all.first : all.first { $0.number == with }
        guard let path else {
            if let with { throw .usage("--with \(with): \(recording) has no such session with login steps") }
            throw .file(
                "no login steps recorded in \(recording); record with --capture or --log-to at verbose"
            )
        }
        return (path, stored.isWhole)
    }

    private func probe(
        _ password: String?,
        _ logPlan: LogPlan,
        _ tap: TapRun,
        onStep: @escaping @Sendable (ProbeReport.Step) -> Void
    ) async throws -> ProbeReport {
        var plan = ProbePlan(account: account)
        plan.advice = AdviceTable.advice(for:)
        plan.password = password
        plan.via = via
        plan.web = ws
        plan.resolver = resolver
        plan.isDirect = directTls
        plan.bindsChannel = !noBinding
        plan.timeout = .seconds(Int64(timeout))
        plan.redaction = logPlan.redaction
        plan.tls = try trust.verification()
        let probe = Probe(
            plan,
            run: tap.run,
            clock: tap.clock,
            dispatcher: tap.logs.dispatcher,
            cryptography: tap.cryptography
        )
        do {
            return try await probe.report(on: MultiThreadedEventLoopGroup.singleton, onStep: onStep)
        } catch let error as TLSContextError {
            throw Failure.file("--upstream-ca: \(error)")
        } catch let error as ProbeError {
            throw Failure.network("--resolver: \(error)")
        } catch {
            throw Failure(status: .checkFailed, message: "cannot start the probe: \(error)")
        }
    }
}

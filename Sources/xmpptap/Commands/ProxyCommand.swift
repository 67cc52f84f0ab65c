internal import ArgumentParser
internal import NIOCore
internal import ServiceLifecycle
internal import TapCapture
internal import TapControl
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapRules
internal import TapSecurity
internal import XMPPCore

struct ProxyCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Relay XMPP connections and log every stanza.",
        discussion: """
            Relays every byte between clients and their server. Logs SEND (client to server) and RECV (server to client). \
            With --rules, changes what passes.

            Examples: proxy the server of an account, with TLS; proxy a server by its address, and record everything in a \
            capture; change what passes; see it in the browser, or in the terminal.

              xmpptap proxy juliet@example.org
              xmpptap proxy --upstream localhost:5222 --capture today.xtap
              xmpptap proxy juliet@example.org --rules filters/no-typing.pfw
              xmpptap proxy juliet@example.org --web 8080
              xmpptap proxy juliet@example.org --tui

            Then connect a client to localhost port 15222. Without an account and without --upstream, clients are \
            connected to a built-in server with two test accounts.
            """
    )

    @OptionGroup(title: "Listening") var proxy: ProxyOptions
    @OptionGroup(title: "TLS") var intercept: InterceptOptions
    @OptionGroup(title: "TLS") var authority: AuthorityFolderOption
    @OptionGroup(title: "Rules") var rules: RuleOptions
    @OptionGroup(title: "Logs") var logs: LogOptions<Usual>
    @OptionGroup(title: "Logs") var store: StoreOption
    @OptionGroup(title: "Logs") var storeAccess: StoreAccessOptions
    @OptionGroup(title: "Logs") var storeSpool: SpoolOptions
    @OptionGroup(title: "Logs") var storeContent: StoredContentOptions
    @OptionGroup(title: "Logs") var storeLimits: StoreLimitOptions
    @OptionGroup var config: ConfigOption

    enum Usual: UsualLog {
        static let text = "info; with --format text on a terminal info,send,recv"
    }

    func run() async throws {
        if proxy.tui { try TerminalInspector.check(instead: "--web") }
        try proxy.checkWeb(intercept)
        try proxy.checkServers()
        guard let place = try proxy.hostMetaPlace() else { return try await relay() }
        var trust = try intercept.trust.verification()
        trust.isInsecure = intercept.upstreamInsecure
        var found = self
        try await found.proxy.findWebServer(place, trust: trust)
        try await found.relay()
    }

    private func relay() async throws {
        let proxyProtocol = try ProxyProtocolFlag.join(proxy.proxyProtocol, from: proxy.proxyProtocolFrom)
        let plan = try ProxyPlan(
            listen: proxy.listen,
            socks: proxy.socks,
            transparent: proxy.transparent,
            target: proxy.target,
            upstream: proxy.upstream,
            domains: proxy.upstreamDomain,
            resolver: proxy.resolver,
            proxyProtocol: proxyProtocol,
            allowRemote: proxy.allowRemote,
            isOnlyWeb: proxy.isOnlyWeb,
            isForServers: proxy.s2s
        )
        let targets = try proxy.targetOptions()
        let ping = try proxy.pingOptions()
        let interceptPlan = try InterceptPlan(intercept, plan, allowRemote: proxy.allowRemote, isForServers: proxy.s2s)
        let request = try store.request(storeAccess, storeSpool, storeContent, storeLimits)
        let messages = proxy.tui ? TerminalMessages() : nil
        if let messages { Console.observeStandardError { messages.add(escaped: $0) } }
        var logRequest = try logs.request(store: request)
        if proxy.tui { try logRequest.leaveOutput(to: "--tui") }
        let logPlan = try LogPlan(logRequest, in: .current)
        let authenticator = try interceptPlan.authenticator(OpenSSLCryptography())
        let ruleFiles = try rules.load()
        if ruleFiles != nil, intercept.tls == .passthrough {
            Console.printDiagnostic(
                "warning: --rules: with --tls passthrough, rules see nothing of sessions that use TLS"
            )
        }
        for warning in plan.warnings + interceptPlan.warnings(plan) { Console.printDiagnostic("warning: \(warning)") }
        // Ask about a certificate before logs are opened and the status line is shown.
        let check = try proxy.target.flatMap { try interceptPlan.check($0, proxy, proxyProtocol) }
        let checked = try await check?.run()
        let page = try proxy.page.map { spec throws(Failure) in try PagePort.open(spec, flag: "--web") }
        let tap = try TapRun(logPlan)
        var session = tap.options
        session.authenticator = authenticator
        session.onUnparsable = proxy.onUnparsable ?? (logs.logRequired ? .close : .relay)
        session.onOversize = proxy.onOversize ?? .relay
        var limits = ProxyLimits(connections: ProcessLimits.sessions)
        interceptPlan.apply(to: &session)
        if checked?.pin != nil, session.serverTLS == .auto { session.serverTLS = .required }
        // The server supports direct TLS only; xmpptap offers STARTTLS to clients itself.
        if checked?.hasOnlyDirectTLS == true, session.clientTLS != .off { session.serverTLS = .direct }
        session.ping = ping
        #if DEBUG
            // For tests of the effects of untranslated stream-management counts.
            session.translatesCounts = Console.environment("XMPPTAP_TRANSLATE_COUNTS") != "no"
        #endif
        for flag in proxy.limit { flag.apply(to: &session, &limits) }
        let server = try await tap.finishing {
            guard plan.needsServer else { return nil as EphemeralServer? }
            return try await EphemeralServer.start(
                tap.cryptography,
                securedFrom: interceptPlan.securesServer ? tap.clock.now().time : nil,
                allowsRegistration: !proxy.allowRemote
            )
        }
        let (keyLog, interception) = try await tap.finishing {
            do {
                let keyLog = try interceptPlan.keyLog()
                let interception = try interceptPlan.interception(
                    authorities: authority,
                    ephemeral: server?.authority,
                    pin: checked?.pin,
                    limit: limits.authorities,
                    keyLog: keyLog,
                    clock: tap.clock
                )
                return (keyLog, interception)
            } catch {
                await server?.stop()
                throw error
            }
        }
        let ready = Once()
        let setup = try await tap.finishing {
            try proxy.target.map { target in
                try interceptPlan.clientSetup(
                    target,
                    checked ?? ServerCheck.Outcome(),
                    authority,
                    limit: limits.authorities,
                    clock: tap.clock
                )
            }
        }
        let service = service(
            plan,
            proxyProtocol,
            targets,
            session,
            ruleFiles,
            limits,
            interception,
            tap,
            server,
            setup,
            ready,
            reserved: page.map { [$0.port.socketAddress] } ?? []
        )
        if logPlan.isRequired {
            let isOfStore = storeLimits.isRequired
            let (flag, name) =
                switch (logs.logRequired, isOfStore) {
                case (true, true): ("--log-required and --store-required", "log or the store")
                case (_, true): ("--store-required", "store")
                case (_, false): ("--log-required", "log")
                }
            tap.logs.onFailure { [weak service] isFailing in
                if isFailing {
                    Console.printDiagnostic("\(flag): the \(name) cannot be written; sessions are closed and refused")
                    service?.refuseSessions(.resourceConstraint, "The proxy cannot write its \(name).")
                } else {
                    Console.printDiagnostic("\(flag): the \(name) can be written again; sessions are accepted")
                    service?.acceptSessions()
                }
            }
        }
        let controls = try await tap.finishing {
            do throws(Failure) {
                let context = controlContext(of: service, session, tap)
                // First, because a control socket that is open stays behind if something else fails.
                let metrics = try proxy.metricsPort()
                let socket = try proxy.control.open()
                return control(context, socket, metrics)
                    + inspectors(page, messages, tap, server, context, socket?.path)
            } catch {
                await server?.stop()
                throw error
            }
        }
        let run = ServiceRun(
            services: controls + [service],
            grace: .seconds(proxy.grace),
            onHangUp: { Self.reload(tap, service) },
            finish: { time in
                await server?.stop()
                let hasStarted = !ready.isFirst()
                let isWhole = tap.logs.close(within: time, removingUnused: !hasStarted)
                keyLog?.flush(within: time)
                if hasStarted { tap.logs.printCapture() }
                return isWhole
            }
        )
        tap.logs.showStatus()
        do {
            guard try await run.run() else { throw Failure.reported(.file) }
        } catch let error as ProxyError {
            await server?.stop()
            throw Failure(error)
        }
    }

    /// Creates the control service, if it is enabled; it stops after the proxy.
    private func control(_ context: ControlContext, _ socket: ControlSocket?, _ port: TCPPort?) -> [any Service] {
        guard socket != nil || port != nil else { return [] }
        if let port { Console.printStandardError("metrics on http://\(port.address)/metrics") }
        return [ControlService(socket, metrics: port, context, logger: DiagnosticHandler.logger())]
    }

    /// Returns the parts of the proxy that the control service and the page use.
    private func controlContext(of service: ProxyService, _ session: SessionOptions, _ tap: TapRun) -> ControlContext {
        var context = ControlContext(
            sessions: service.sessions,
            metrics: service.metrics,
            dispatcher: tap.logs.dispatcher,
            clock: tap.clock,
            run: tap.word,
            version: TapRun.tool,
            itemLimit: session.limits.itemBytes,
            log: tap.logs.controlled
        )
        context.rules = service.configuration.rules.map { rules in
            ControlledRules(files: rules.files) {
                rules.live.current?.statuses ?? []
            } set: { place, isOn in
                rules.live.current?.setRule(at: place, on: isOn) ?? false
            } reload: {
                try service.reloadRules()
            }
        }
        context.logs = { [logs = tap.logs] in logs.figures }
        context.redactions = { [secrets = tap.run.secrets] in secrets.placeholders }
        let interceptions = [service.configuration.interception, service.configuration.upstreamInterception]
        context.mintTimes = {
            interceptions.compactMap { $0?.mintTimes }.reduce(into: DurationHistogram()) { $0.add($1) }
        }
        return context
    }

    /// Creates the services that show records: the page, and the inspector in the terminal.
    private func inspectors(
        _ page: (port: TCPPort, token: String)?,
        _ messages: TerminalMessages?,
        _ tap: TapRun,
        _ server: EphemeralServer?,
        _ context: ControlContext,
        _ control: String?
    ) -> [any Service] {
        guard page != nil || messages != nil else { return [] }
        let inspection = inspection(tap, server, control: control)
        var services: [any Service] = []
        if let page {
            let served = PageService(
                page.port,
                inspection,
                token: page.token,
                logger: DiagnosticHandler.logger(),
                acting: proxy.webAct ? context : nil
            )
            Console.printStandardError("open \(served.url)")
            services.append(served)
        }
        if let messages {
            let held = HeldStanzas(of: context.sessions, messages: messages) { [clock = tap.clock] in
                clock.now().monotonic
            }
            services.append(TerminalService(inspection, messages: messages, held: held))
        }
        return services
    }

    /// Returns an inspection of the newest records.
    private func inspection(_ tap: TapRun, _ server: EphemeralServer?, control: String?) -> Inspection {
        let dispatcher = tap.logs.dispatcher
        let live = LiveTable { [clock = tap.clock] in
            clock.now()
        } onChange: { [weak dispatcher] in
            dispatcher?.updateLevels()
        }
        dispatcher.add(live)
        let place =
            proxy.target.map { "\($0.jid)" } ?? proxy.upstream.map { "\($0)" }
            ?? (server == nil ? "" : "the built-in server")
        var subject = Inspection.Subject(
            title: proxy.listen.first.flatMap { $0.port == 0 ? nil : "proxy on \($0)" } ?? "proxy",
            server: place,
            tool: TapRun.tool,
            isLive: true,
            redaction: tap.options.redaction.rawValue
        )
        subject.control = control.map { ShellWords.absolute($0) }
        subject.recording = { [logs = tap.logs] in logs.recording }
        return Inspection(subject, run: tap.word, live)
    }

    private func service(
        _ plan: ProxyPlan,
        _ proxyProtocol: ProxyProtocol,
        _ targets: TargetOptions,
        _ session: SessionOptions,
        _ rules: ProxyRules?,
        _ limits: ProxyLimits,
        _ interception: (own: Interception?, ephemeral: Interception?),
        _ tap: TapRun,
        _ server: EphemeralServer?,
        _ setup: ClientSetup?,
        _ ready: Once,
        reserved: [SocketAddress]
    ) -> ProxyService {
        // A placeholder: every listener has its own server.
        let unused = Endpoint(host: "127.0.0.1", port: 5222)
        var configuration = ProxyConfiguration(
            listeners: plan.listeners,
            upstream: plan.upstream ?? .endpoint(server?.endpoint ?? unused),
            resolver: proxy.resolver,
            proxyProtocol: proxyProtocol,
            session: session,
            interception: interception.own,
            limits: limits,
            allowRemote: proxy.allowRemote,
            grace: .seconds(Int64(proxy.grace))
        )
        configuration.peers = proxy.peers
        configuration.upstreamInterception = interception.ephemeral
        configuration.rules = rules
        configuration.webListeners = proxy.listenWs
        configuration.webServer = proxy.webServer
        configuration.reserved = reserved
        configuration.web = proxy.web
        configuration.targets = targets
        configuration.inherited = InheritedSockets(environment: Console.environment)
        let welcome = Once()
        return ProxyService(
            configuration,
            run: tap.run,
            clock: tap.clock,
            dispatcher: tap.logs.dispatcher,
            logger: DiagnosticHandler.logger()
        ) { [hasTLS = configuration.interception != nil] endpoint, web in
            if let setup, plan.hasUsualServer(at: endpoint), welcome.isFirst() {
                for line in setup.lines(at: endpoint, plan.entry(at: endpoint)) { Console.printStandardError(line) }
            }
            if let server, plan.isServed(at: endpoint), welcome.isFirst() {
                for line in server.welcome(at: endpoint) { Console.printStandardError(line) }
            }
            Console.printStandardError("listening on \(endpoint)\(web.map { $0.note(hasTLS: hasTLS) } ?? "")")
            // This callback runs after all listeners are open, so the first call means that the proxy is ready.
            if ready.isFirst() { ServiceManager.ready() }
        }
    }

    /// Reopens the log files, in case they were moved, and reloads the rule files.
    private static func reload(_ tap: TapRun, _ service: ProxyService) {
        ServiceManager.reloading()
        tap.logs.reopen()
        do throws(RuleSet.LoadError) {
            if let rules = try service.reloadRules() { Console.printStandardError("rules reloaded: \(rules.count)") }
        } catch {
            for fault in error.faults { Console.printStandardError("\(fault)") }
            Console.printDiagnostic("the old rules stay in force")
        }
        ServiceManager.ready()
    }
}

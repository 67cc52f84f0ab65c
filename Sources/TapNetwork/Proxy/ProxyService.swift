package import Logging
package import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization
package import TapCore
package import TapRecord
package import TapRules
internal import TapSecurity
package import XMPPCore

/// Listens for clients, and relays each to its server as a recorded ``Session``.
///
/// ``run()`` returns after a shutdown, when the last session has delivered its last record. Sinks must stay open until
/// then.
package final class ProxyService: Service {
    /// The configuration of the proxy.
    package let configuration: ProxyConfiguration
    /// Counters, which can be read at any time.
    package let metrics = ProxyMetrics()
    /// The open sessions, to be inspected and controlled.
    package let sessions = SessionDirectory()

    private let context: RelayContext
    private let group: any EventLoopGroup
    private let logger: Logger
    private let onListening: @Sendable (Endpoint, WebListenSpec?) -> Void
    private let state = Mutex(State())
    private let reloading = Mutex(())

    private struct State {
        var loops: [NIOLoopBound<RelayLoop>] = []
        var refusal: RelayLoop.Refusal?
    }

    /// Creates a proxy that passes its records to `dispatcher`.
    ///
    /// - Parameters:
    ///   - configuration: Listeners, upstream, limits and options.
    ///   - run: The run that numbers records and sessions.
    ///   - clock: The clock of that run.
    ///   - dispatcher: The dispatcher of the records.
    ///   - eventLoopGroup: The event loops for sessions; each session stays on one. Default: one loop per core.
    ///   - logger: Receives messages about the proxy itself: notices, unreachable servers, pauses.
    ///   - onListening: Called once for each listening address, after all listeners are open; with the specification of a
    ///     web listener.
    package init(
        _ configuration: ProxyConfiguration,
        run: Run,
        clock: RunClock,
        dispatcher: RecordDispatcher,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger,
        onListening: @escaping @Sendable (Endpoint, WebListenSpec?) -> Void
    ) {
        self.configuration = configuration
        var options = configuration.session
        options.holdsProceed = configuration.interception != nil
        if let rules = configuration.rules { options.rules = rules.live }
        context = RelayContext(
            run: run,
            clock: clock,
            options: options,
            interception: configuration.interception,
            admission: Admission(configuration.limits, metrics),
            dispatcher: dispatcher,
            metrics: metrics,
            sessions: sessions,
            journal: run.journal.map { JournalQueue($0) }
        )
        group = eventLoopGroup
        self.logger = logger
        self.onListening = onListening
    }

    /// Serves clients until the task is shut down gracefully or cancelled.
    ///
    /// At a graceful shutdown, open sessions get ``ProxyConfiguration/grace`` to write all data that was read.
    /// Cancellation ends them at once, even during that time.
    ///
    /// - Throws: ``ProxyError`` if a listener cannot be opened, or fails later.
    package func run() async throws {
        try await makeLoops()
        let listeners = try await open()
        for listener in listeners.open { onListening(listener.endpoint, listener.web) }
        // Both exits wait for this task, so that the roots are not read while the program exits.
        async let roots: Void = readRoots()
        probe()
        do {
            try await waitForEnd(listeners)
        } catch {
            await listeners.close()
            await end(within: .zero)
            await roots
            // Cancellation is a requested end, not an error.
            if !(error is CancellationError) { throw error }
            return
        }
        await listeners.close()
        await end(within: configuration.grace)
        await roots
    }

    /// Reads the roots for the verification of servers, before the first session needs them.
    private func readRoots() async {
        let contexts = [configuration.interception, configuration.upstreamInterception].compactMap { $0?.serverLeg }
        // Ignore errors: the first session reports them.
        try? await NIOThreadPool.singleton.runIfActive {
            for context in contexts { try? context.readRoots() }
        }
    }

    /// Closes all sessions, and all new ones until ``acceptSessions()``, with a stream error. Used if the log is
    /// required and cannot be written.
    package func refuseSessions(_ condition: StreamErrorCondition, _ text: String) {
        setRefusal(RelayLoop.Refusal(condition: condition, text: text))
    }

    /// Accepts sessions again after ``refuseSessions(_:_:)``.
    package func acceptSessions() { setRefusal(nil) }

    private func setRefusal(_ refusal: RelayLoop.Refusal?) {
        // Schedule inside the lock, so that every loop gets changes in the same order.
        state.withLock { state in
            state.refusal = refusal
            for loop in state.loops { loop.eventLoop.execute { loop.value.refuse(refusal) } }
        }
    }

    /// Reads the rule files again. New sessions start with the new rules; open sessions apply them from their next item
    /// on.
    ///
    /// - Returns: The new rules; nil if the proxy has no rule files.
    /// - Throws: The errors in the files; in this case, all sessions keep their rules.
    @discardableResult
    package func reloadRules() throws(RuleSet.LoadError) -> RuleSet? {
        guard let files = configuration.rules else { return nil }
        // Serialize reloads, so that all sessions end up with the rules that were read last.
        return try reloading.withLock { _ throws(RuleSet.LoadError) in
            let rules = try files.reload()
            for loop in state.withLock({ $0.loops }) { loop.eventLoop.execute { loop.value.replaceRules(by: rules) } }
            return rules
        }
    }

    // MARK: Beginning

    private func makeLoops() async throws {
        let context = context
        var loops: [NIOLoopBound<RelayLoop>] = []
        for eventLoop in group.makeIterator() {
            let loop = eventLoop.submit {
                NIOLoopBound(RelayLoop(eventLoop: eventLoop, context: context), eventLoop: eventLoop)
            }
            loops.append(try await loop.get())
        }
        state.withLock { state in
            state.loops = loops
            for loop in loops { loop.eventLoop.execute { [refusal = state.refusal] in loop.value.refuse(refusal) } }
        }
    }

    private func open() async throws(ProxyError) -> Listeners {
        var listeners = Listeners(
            group: group,
            metrics: metrics,
            logger: logger,
            allowRemote: configuration.allowRemote,
            reserved: configuration.reserved,
            inherited: configuration.inherited
        )
        var byLoop: [ObjectIdentifier: NIOLoopBound<RelayLoop>] = [:]
        for loop in state.withLock({ $0.loops }) { byLoop[ObjectIdentifier(loop.eventLoop)] = loop }
        let names = NameResolver(try await resolver())
        let own = OwnAddresses()
        let proxyProtocol = configuration.proxyProtocol
        for spec in configuration.listeners {
            let upstream = spec.upstream ?? configuration.upstream
            let route = Route(upstream, timeout: configuration.connectTimeout, names: names, own: own)
            let special = spec.upstream == nil ? configuration.upstreamInterception : nil
            let targets = targets(of: spec, upstream, names, own)
            do throws(ProxyError) {
                try await listeners.open(spec, upstream: upstream.address) { [byLoop] channel in
                    guard let loop = byLoop[ObjectIdentifier(channel.eventLoop)]?.value else { throw ChannelError.eof }
                    try Self.accept(channel, loop, proxyProtocol) { channel, accepted in
                        try Self.begin(channel, accepted, loop, route, targets, special, proxyProtocol)
                    }
                }
            } catch {
                await listeners.close()
                throw error
            }
            own.set(listeners.open.map(\.address) + configuration.reserved)
        }
        for spec in configuration.webListeners {
            guard let server = spec.server ?? configuration.webServer else { continue }
            let (options, interception) = (configuration.web, configuration.interception)
            let (timeout, cryptography) = (configuration.connectTimeout, OpenSSLCryptography())
            do throws(ProxyError) {
                try await listeners.open(spec.place, web: spec, upstream: server.endpoint) { [byLoop] channel in
                    guard let loop = byLoop[ObjectIdentifier(channel.eventLoop)] else { throw ChannelError.eof }
                    let front = WebFront(
                        loop.value,
                        server,
                        path: spec.path,
                        options,
                        interception,
                        timeout: timeout,
                        cryptography: cryptography
                    )
                    try Self.accept(channel, loop.value, proxyProtocol) { channel, accepted in
                        try channel.pipeline.syncOperations.addHandler(WebEntry(front, accepted))
                        return nil
                    }
                }
            } catch {
                await listeners.close()
                throw error
            }
        }
        listeners.warnOfUnusedSockets()
        return listeners
    }

    /// Returns the parameters for a listener whose clients name their targets; nil for other listeners.
    private func targets(
        of spec: ListenSpec,
        _ upstream: Upstream,
        _ names: NameResolver,
        _ own: OwnAddresses
    ) -> NamedTargets? {
        guard spec.entry != .stream else { return nil }
        let dialer = TargetDialer(
            upstream: upstream,
            names: names,
            timeout: configuration.connectTimeout,
            own: own,
            relaysOthers: configuration.targets.relaysOthers
        )
        return NamedTargets(dialer: dialer, options: configuration.targets, isRedirected: spec.entry == .redirect)
    }

    /// Starts a session with a client, after its request for a target if that is expected; returns nil in this case.
    private static func begin(
        _ channel: any Channel,
        _ accepted: AcceptedConnection,
        _ loop: RelayLoop,
        _ route: Route,
        _ targets: NamedTargets?,
        _ interception: Interception?,
        _ options: ProxyProtocol
    ) throws -> SessionDriver? {
        func start(_ channel: any Channel, _ route: Route) throws -> SessionDriver {
            let driver = SessionDriver(
                loop: loop,
                route: route,
                accepted: accepted,
                sends: options.sends,
                interception: interception
            )
            try driver.accept(channel)
            return driver
        }
        guard let targets else { return try start(channel, route) }
        let handler = ProxyRequestHandler(loop: loop, accepted: accepted, targets: targets) { channel, target in
            try start(channel, .target(target)).activated(.client)
        }
        try channel.pipeline.syncOperations.addHandler(handler)
        return nil
    }

    /// Accepts a client's connection, after its PROXY header if one is expected.
    ///
    /// - Parameter begin: Adds the handlers that follow to the channel; returns a session that has been started.
    private static func accept(
        _ channel: any Channel,
        _ loop: RelayLoop,
        _ options: ProxyProtocol,
        _ begin: @escaping (any Channel, AcceptedConnection) throws -> SessionDriver?
    ) throws {
        try channel.becomeLeg()
        guard options.accepts else {
            _ = try begin(channel, AcceptedConnection(channel))
            return
        }
        let handler = ProxyHeaderHandler(loop: loop, options: options) { channel, header in
            try begin(channel, AcceptedConnection(channel, header))?.activated(.client)
        }
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    /// Logs a warning for each listed domain with a POSH file. Returns without waiting.
    private func warnOfPublishedCertificates() {
        guard configuration.peers == .servers, configuration.interception != nil else { return }
        let upstreams = Set(configuration.listeners.map { $0.upstream ?? configuration.upstream })
        for case .domains(let domains) in upstreams {
            for domain in domains {
                PublishedCertificates.find(domain.ascii, timeout: configuration.connectTimeout, on: group.next()) {
                    [logger] warning in
                    logger.warning("\(warning)")
                }
            }
        }
    }

    private func resolver() async throws(ProxyError) -> ServiceResolver {
        guard let endpoint = configuration.resolver else {
            return ServiceResolver(server: nil, peers: configuration.peers)
        }
        guard let address = await SystemNames.lookUp(endpoint).first else {
            throw ProxyError(code: .unknownResolver, address: endpoint.description)
        }
        return ServiceResolver(server: address, peers: configuration.peers)
    }

    /// Tries to connect to the servers that were given by name or address, and logs a warning if one cannot be reached.
    /// Returns without waiting for the result.
    private func probe() {
        warnOfPublishedCertificates()
        let upstreams = Set(configuration.listeners.compactMap { ($0.upstream ?? configuration.upstream).endpoint })
        for upstream in upstreams {
            let dialer = Dialer(upstream, timeout: configuration.connectTimeout)
            let greeting = configuration.proxyProtocol.sends.map { ProxyHeader(.local).bytes($0) }
            dialer.connect(on: group.next()).whenComplete { [logger] result in
                switch result {
                case .success(let channel):
                    if let greeting { channel.writeAndFlush(ByteBuffer(bytes: greeting), promise: nil) }
                    channel.close(promise: nil)
                case .failure(let error):
                    logger.warning("\(dialer.message(for: error)); clients get a stream error until it can be reached")
                }
            }
        }
    }

    // MARK: Ending

    /// Returns at a graceful shutdown; throws if the task is cancelled or a listener fails.
    private func waitForEnd(_ listeners: Listeners) async throws {
        let (events, continuation) = AsyncThrowingStream.makeStream(of: Never.self, throwing: (any Error).self)
        for listener in listeners.open {
            listener.channel.closeFuture.whenComplete { _ in
                continuation.finish(throwing: ProxyError(code: .listenerLost, address: listener.endpoint.description))
            }
        }
        try await withGracefulShutdownHandler {
            for try await _ in events {}
            // A stream also ends when its task is cancelled.
            try Task.checkCancellation()
        } onGracefulShutdown: {
            continuation.finish()
        }
    }

    private func end(within grace: TimeAmount) async {
        let loops = state.withLock { $0.loops }
        let count = metrics.sessionsOpen
        if count > 0 { logger.info("shutting down; open sessions: \(count)") }
        let ended = loops.map { loop in loop.eventLoop.flatSubmit { loop.value.stop() } }
        @Sendable func abandon() {
            for loop in loops { loop.eventLoop.execute { loop.value.abandon() } }
        }
        let deadline = group.next().scheduleTask(in: grace, abandon)
        await withTaskCancellationHandler {
            for future in ended { try? await future.get() }
        } onCancel: {
            abandon()
        }
        deadline.cancel()
    }
}

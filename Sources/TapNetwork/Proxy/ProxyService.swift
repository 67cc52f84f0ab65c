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

/// Listens, and relays each client to its server as a tapped ``Session``.
///
/// ``run()`` returns after a shutdown, when the last session has delivered its last record: sinks may be closed
/// then, and not before.
package final class ProxyService: Service {
    /// The configuration.
    package let configuration: ProxyConfiguration
    /// Counters, readable at any time.
    package let metrics = ProxyMetrics()
    /// The sessions that have not ended, for those who look at them and act on them.
    package let sessions = SessionDirectory()

    private let context: RelayContext
    private let group: any EventLoopGroup
    private let logger: Logger
    private let onListening: @Sendable (Endpoint) -> Void
    private let state = Mutex(State())
    private let reloading = Mutex(())

    private struct State {
        var loops: [NIOLoopBound<RelayLoop>] = []
        var refusal: RelayLoop.Refusal?
    }

    /// A proxy that hands its records to `recorder`.
    ///
    /// - Parameters:
    ///   - run: The run that numbers records and sessions.
    ///   - clock: The clock of that run.
    ///   - eventLoopGroup: Where sessions run; each stays on one loop. Default: a loop for each core.
    ///   - logger: For what is to be said of the proxy itself: notices, servers that are down, pauses.
    ///   - onListening: Called once for each address on which clients are accepted, when all are.
    package init(
        _ configuration: ProxyConfiguration,
        run: Run,
        clock: RunClock,
        dispatcher: RecordDispatcher,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger,
        onListening: @escaping @Sendable (Endpoint) -> Void
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

    /// Serves until graceful shutdown, which gives open sessions ``ProxyConfiguration/grace`` to have all written that
    /// was read, or until the task is cancelled, which ends them at once; also during the former.
    ///
    /// - Throws: ``ProxyError`` if a listener cannot be opened, or fails later.
    package func run() async throws {
        try await makeLoops()
        let listeners = try await open()
        for listener in listeners.open { onListening(listener.endpoint) }
        // The program does not end while they are being read.
        async let roots: Void = readRoots()
        probe()
        do {
            try await waitForEnd(listeners)
        } catch {
            await listeners.close()
            await end(within: .zero)
            await roots
            // A cancelled run has been asked to end, and has.
            if !(error is CancellationError) { throw error }
            return
        }
        await listeners.close()
        await end(within: configuration.grace)
        await roots
    }

    /// Reads the roots that servers are verified by before the first session needs them.
    private func readRoots() async {
        let contexts = [configuration.interception, configuration.upstreamInterception].compactMap { $0?.serverLeg }
        // Errors of the roots are reported by the first session.
        try? await NIOThreadPool.singleton.runIfActive {
            for context in contexts { try? context.readRoots() }
        }
    }

    /// Ends every session, and every later one until ``acceptSessions()``, with a stream error: the log is required and
    /// cannot be written.
    package func refuseSessions(_ condition: StreamErrorCondition, _ text: String) {
        setRefusal(RelayLoop.Refusal(condition: condition, text: text))
    }

    /// Serves sessions again after ``refuseSessions(_:_:)``.
    package func acceptSessions() { setRefusal(nil) }

    private func setRefusal(_ refusal: RelayLoop.Refusal?) {
        // With the lock held, so that every loop hears of changes in their order.
        state.withLock { state in
            state.refusal = refusal
            for loop in state.loops { loop.eventLoop.execute { loop.value.refuse(refusal) } }
        }
    }

    /// Reads the rule files again. New sessions follow the new rules, and running ones from their next item on.
    ///
    /// - Returns: The new rules; nil if the proxy has no rule files.
    /// - Throws: The mistakes in the files. All sessions keep their rules then.
    @discardableResult
    package func reloadRules() throws(RuleSet.LoadError) -> RuleSet? {
        guard let files = configuration.rules else { return nil }
        // One after the other: all sessions end up with the rules that were read last.
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
            do throws(ProxyError) {
                try await listeners.open(spec, upstream: upstream.address) { [byLoop] channel in
                    guard let loop = byLoop[ObjectIdentifier(channel.eventLoop)] else { throw ChannelError.eof }
                    try Self.accept(channel, loop.value, route, special, proxyProtocol)
                }
            } catch {
                await listeners.close()
                throw error
            }
            own.set(listeners.open.map(\.address))
        }
        listeners.warnOfUnusedSockets()
        return listeners
    }

    /// Begins a session with a client, after its PROXY header if one is expected.
    private static func accept(
        _ channel: any Channel,
        _ loop: RelayLoop,
        _ route: Route,
        _ interception: Interception?,
        _ options: ProxyProtocol
    ) throws {
        guard options.accepts else {
            let driver = SessionDriver(
                loop: loop,
                route: route,
                accepted: AcceptedConnection(channel),
                sends: options.sends,
                interception: interception
            )
            return try driver.accept(channel)
        }
        try channel.becomeLeg()
        let handler = ProxyHeaderHandler(loop: loop, options: options) { channel, header in
            let accepted = AcceptedConnection(channel, header)
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
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    private func resolver() async throws(ProxyError) -> ServiceResolver {
        guard let endpoint = configuration.resolver else { return ServiceResolver(server: nil) }
        guard let address = await SystemNames.lookUp(endpoint).first else {
            throw ProxyError(code: .unknownResolver, address: endpoint.description)
        }
        return ServiceResolver(server: address)
    }

    /// Sees whether the servers that were given by name or address are up, and says so if not. Nothing waits for it.
    private func probe() {
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
                    logger.warning("\(dialer.words(for: error)); clients get a stream error until it can be reached")
                }
            }
        }
    }

    // MARK: Ending

    /// Returns at graceful shutdown. Throws when cancelled, or when a listener fails.
    private func waitForEnd(_ listeners: Listeners) async throws {
        let (events, tell) = AsyncThrowingStream.makeStream(of: Never.self, throwing: (any Error).self)
        for listener in listeners.open {
            listener.channel.closeFuture.whenComplete { _ in
                tell.finish(throwing: ProxyError(code: .listenerLost, address: listener.endpoint.description))
            }
        }
        try await withGracefulShutdownHandler {
            for try await _ in events {}
            // A stream also ends when its task is cancelled.
            try Task.checkCancellation()
        } onGracefulShutdown: {
            tell.finish()
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

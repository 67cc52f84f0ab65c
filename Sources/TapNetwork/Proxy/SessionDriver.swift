internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapRules
internal import TapSecurity
internal import XMPPCore

/// Runs one ``Session`` on one event loop: passes the events of its two connections to it, and performs its commands.
///
/// NIO may call back from inside a write, a flush or a close. No session method calls out, so that calls of the session
/// are never nested. Events that arrive while its commands are performed are queued, so that bytes keep their order.
///
/// The driver, its two ``LegHandler``s and their channels reference each other during the session; when both
/// connections are closed, the driver releases them.
final class SessionDriver {
    enum Stage {
        /// The client has not named the domain that selects its server.
        case awaitingDomain
        /// Connecting to the server; data from the client is queued.
        case connecting
        case relaying
        /// The session has ended; output is flushed, input is discarded.
        case closing
        case over
    }

    /// An event, as it is queued while the session cannot handle it.
    enum Event {
        /// The offsets in the bytes at which further TLS records begin are nil if the bytes did not arrive in TLS.
        case received(Leg, ByteBuffer, records: [Int]? = nil)
        case ended(Leg, LegEnd)
        indirect case tls(Leg, TLSHandler.Event)
    }

    let loop: RelayLoop
    let accepted: AcceptedConnection
    /// TLS termination; nil if TLS is passed through.
    let interception: Interception?
    let route: Route
    /// The version of the PROXY header sent to the server; nil if none is sent.
    private let sends: ProxyProtocol.Version?
    let runner: SessionRunner
    var stage = Stage.connecting
    let client = LegHandler(.client)
    let server = LegHandler(.server)
    /// Reads the client's first data, if it selects the server.
    var opening: Opening?
    var search: ServiceDiscovery?
    var deferred = DeferredEvents()
    /// The certificate shown to the client, until the handshake is complete.
    var shown: ShownCertificate?
    /// The certificate shown to the server on behalf of another one.
    var shownToServer: ShownCertificate?
    private(set) var isPerforming = false
    /// Whether a command must be completed elsewhere before others are performed. Meanwhile, ``isPerforming`` stays
    /// true.
    var isPaused = false
    var isStalled = false
    /// Whether the session permits reading each leg.
    private var wantsBytes = (client: true, server: true)
    /// The time of the scheduled release of a delayed item, in nanoseconds of the run; nil if none is scheduled.
    private var alarm: Int64?
    /// Whether data was read and a call of ``decodeReceived()`` is scheduled.
    private var isDue = false
    /// The time at which the first of the bytes was read that the next ``pass()`` flushes, in nanoseconds of the run.
    var readTime: Int64?
    var isAdmitted = false
    /// In stage `closing`: the time of the next check of the connections, in nanoseconds of the run, and whether the
    /// connections end with an RST.
    var nextLook: Int64 = 0
    var isReset = false

    /// Creates a driver for a client that has just connected; call ``accept(_:)`` next.
    init(
        loop: RelayLoop,
        route: Route,
        accepted: AcceptedConnection,
        sends: ProxyProtocol.Version? = nil,
        interception: Interception? = nil,
        options: SessionOptions? = nil
    ) {
        self.loop = loop
        self.interception = route.isBlind ? nil : interception ?? loop.context.interception
        self.route = route
        self.accepted = accepted
        self.sends = sends
        let context = loop.context
        runner = SessionRunner(
            Session(
                run: context.run,
                options: options ?? (route.isBlind ? context.options.withoutDecoding : context.options),
                tools: loop.tools,
                remote: accepted.remote?.endpoint?.description,
                upstream: route.description,
                beginning: route.beginning(accepted),
                at: context.clock.now()
            )
        )
    }

    var session: Session {
        _read { yield runner.session }
        _modify { yield &runner.session }
    }

    // MARK: Beginning

    /// Adds the client's channel, which is about to become active.
    func accept(_ channel: any Channel) throws {
        try channel.becomeLeg()
        try client.join(channel, self)
    }

    /// Handles an established connection to the client; the dialer reports the server's connection.
    func activated(_ leg: Leg) {
        guard leg == .client, stage == .connecting else { return }
        guard !loop.isStopping else {
            stage = .over
            dropTarget()
            return client.close()
        }
        loop.add(self)
        if let refusal = loop.refusal ?? loop.context.admission.admit(accepted.remote?.ipAddress) {
            dropTarget()
            return refuse(refusal)
        }
        isAdmitted = true
        switch route {
        case .endpoint(let dialer):
            perform()
            dialer.connect(on: loop.eventLoop).assumeIsolated().whenComplete { [self] result in
                switch result {
                case .success(let channel): connected(channel)
                case .failure(let error): failed(dialer.message(for: error), Dialer.fault(of: error))
                }
            }
        case .domains:
            stage = .awaitingDomain
            opening = Opening(loop.context.options.unauthenticatedLimits)
            perform()
        case .web: assertionFailure("the session begins after the handshake: see openWebSocket")
        case .target(let target):
            perform()
            for step in target.steps { handle(.attempted(step)) }
            connected(target.channel)
        }
    }

    /// Closes the connection to the target that the client named, because the session does not use it.
    private func dropTarget() { if case .target(let target) = route { target.channel.close(promise: nil) } }

    func connected(_ channel: any Channel, beginsWithTLS: Bool = false, tls: TLSHandler? = nil) {
        guard stage == .connecting else { return channel.close(promise: nil) }
        do {
            try server.join(channel, self, tls: tls)
        } catch {
            channel.close(promise: nil)
            return failed("cannot use the connection to \(route.description): \(error)")
        }
        guard channel.isActive else { return failed("the connection to \(route.description) was closed immediately") }
        stage = .relaying
        if let sends, !route.isBlind { server.write(accepted.header(session: session.number).bytes(sends).span) }
        let address = channel.remoteAddress?.endpoint?.description ?? route.description
        handle(.connected(address, beginsWithTLS: beginsWithTLS))
    }

    func failed(_ reason: String, _ fault: ConnectionFault = .unreachable) {
        guard stage == .connecting else { return }
        stage = .relaying
        loop.context.metrics.connectionFailed()
        handle(.connectionFailed(reason, fault))
    }

    // MARK: Events of the connections

    func received(_ leg: Leg, _ buffer: ByteBuffer, records: [Int]?) {
        if stage == .awaitingDomain, leg == .client { return open(buffer) }
        if stage == .closing { return handler(leg).discard(buffer.readableBytes) }
        guard stage == .relaying, !isPerforming else {
            return postpone(.received(leg, buffer, records: records))
        }
        if receive(leg, buffer, records) == .keep { perform() }
    }

    /// Handles the end of a read burst.
    func readCompleted(_ leg: Leg) {
        guard stage == .relaying, !isPerforming, !isDue else { return }
        isDue = true
        loop.schedule(self)
    }

    /// Flushes relayed bytes.
    func pass() {
        guard stage == .relaying, !isPaused else { return }
        client.flush()
        server.flush()
    }

    /// Decodes the data that was read.
    func decodeReceived() {
        isDue = false
        guard stage == .relaying else { return }
        perform()
    }

    /// Handles the end of a connection's input.
    func ended(_ leg: Leg, _ end: LegEnd) {
        // An aborted connection sent no close_notify.
        if end != .finished { handler(leg.other).tls?.sendsCloseNotify = false }
        if stage == .awaitingDomain, leg == .client {
            postpone(.ended(leg, end))
            return refuseClient(.hostUnknown, "The client disconnected before it named a domain.")
        }
        deliver(.ended(leg, end))
    }

    /// Passes an event to the session, or queues it if the session cannot handle it now.
    func deliver(_ event: Event) {
        guard stage == .relaying, !isPerforming else { return postpone(event) }
        if let input = input(event) { runner.process(input) }
        perform()
    }

    func writabilityChanged(_ leg: Leg) {
        // A connection that becomes full is checked after the reads that filled it: a flush may empty it.
        guard stage == .relaying, handler(leg).isWritable else { return }
        updateReading(leg.other)
    }

    func closed(_ leg: Leg) {
        guard !isPerforming else { return }
        conclude()
    }

    private func receive(_ leg: Leg, _ buffer: ByteBuffer, _ records: [Int]?) -> Disposition {
        let direction = leg.inbound
        loop.count(direction, buffer.readableBytes)
        let now = now
        let disposition = session.receive(direction, buffer.readableBytesUInt8Span, records: records, at: now)
        if disposition == .relay {
            handler(leg.other).write(buffer)
            readTime = readTime ?? now.monotonic
        }
        return disposition
    }

    func postpone(_ event: Event) {
        guard isLive else { return }
        deferred.append(event)
    }

    /// Passes an input to the session, and performs its commands.
    func handle(_ input: SessionInput) {
        session.handle(input, at: now)
        perform()
    }

    func replaceRules(by rules: RuleSet) { if isLive, !route.isBlind { handle(.rules(rules)) } }

    // MARK: Commands of the session

    /// Performs the session's commands and passes it the queued events, until there are none; then updates the
    /// connections.
    func perform() {
        guard !isPerforming else { return }
        isPerforming = true
        var (source, performer) = (self, self)
        runner.run(&source, by: &performer)
        guard !isPaused else { return updateReading() }
        isPerforming = false
        client.flush()
        server.flush()
        readTime = nil
        updateReading()
        setAlarm()
        conclude()
    }

    /// Continues with the remaining commands after a pause.
    func endPause() {
        guard isPaused, stage != .over else { return }
        isPaused = false
        isPerforming = false
        perform()
    }

    /// Schedules the release of a delayed item. The loop's regular checks are too infrequent for that.
    private func setAlarm() {
        guard let due = session.releaseDeadline, isLive, alarm.map({ due < $0 }) ?? true else { return }
        alarm = due
        let wait = TimeAmount.nanoseconds(max(0, due &- now.monotonic))
        // Capture weakly, so that the task does not keep an ended session alive.
        loop.eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in
            guard let self, alarm == due else { return }
            alarm = nil
            tick(now)
            setAlarm()
        }
    }

    // MARK: Backpressure

    /// Continues after a sink has space again.
    func resume() {
        isStalled = false
        updateReading()
    }

    func updateReading() {
        guard stage != .over else { return }
        if !isStalled, stage == .relaying, loop.records.isCongested {
            isStalled = true
            loop.wait(self)
        }
        updateReading(.client)
        updateReading(.server)
    }

    private func updateReading(_ leg: Leg) {
        let isWanted =
            switch stage {
            case .awaitingDomain: !isStalled && leg == .client
            case .connecting, .over: false
            case .relaying:
                !isStalled && !isPaused && handler(leg.other).isWritable
                    && (leg == .client ? wantsBytes.client : wantsBytes.server)
            // Closing with unread bytes would send a reset, which would discard the last written bytes.
            case .closing: true
            }
        handler(leg).setReading(isWanted)
    }

    /// Whether the session is still open.
    var isLive: Bool { stage != .closing && stage != .over }

    var now: Run.Instant { loop.context.clock.now() }

    func handler(_ leg: Leg) -> LegHandler { leg == .client ? client : server }
}

/// The queued events as a source of inputs.
extension SessionDriver: Source {
    func next() -> SourceInput? {
        guard stage != .connecting, stage != .awaitingDomain else { return nil }
        while let event = deferred.takeFirst() {
            if let input = input(event) { return input }
        }
        return nil
    }

    /// Converts an event to an input of the session; nil if the session does not need it.
    private func input(_ event: Event) -> SourceInput? {
        switch event {
        case .received(let leg, let buffer, let records):
            loop.count(leg.inbound, buffer.readableBytes)
            return input(.received(leg.inbound, Array(buffer: buffer), records: records), at: now)
        case .ended(let leg, let end):
            let failure = session.tls == nil ? nil : failure(leg, TLSFault(.endedInHandshake))
            return input(.input(.ended(leg, end, inHandshake: failure)), at: now)
        case .tls(let leg, let event):
            return tlsEvent(leg, event).map { input(.input(.tls(leg, $0)), at: now) }
        }
    }

    private func input(_ kind: SourceInput.Kind, at now: Run.Instant) -> SourceInput {
        SourceInput(session: session.number, at: now, kind)
    }
}

extension SessionDriver: CommandPerformer {
    func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
        loop.records.write(record, content: content)
    }

    func forward(_ direction: Direction, _ content: Span<UInt8>) { handler(direction.destination).write(content) }

    func perform(_ command: consuming Command) {
        switch consume command {
        case .record, .forward: break
        case .send(let leg, let bytes): handler(leg).write(bytes.span)
        case .tls(let command): run(command)
        case .compute(let step): compute(step)
        case .injected(let number, let outcome): loop.context.sessions.report(outcome, of: number, in: session.number)
        case .displace(let session): displace(session)
        // The runner performs requests to shared state.
        case .shared: break
        case .addToJournal(let mark): addToJournal(mark)
        case .searchJournal(let marks): searchJournal(marks)
        case .shape(let leg, let shape): handler(leg).shape(shape)
        case .read(.client, let isWanted): wantsBytes.client = isWanted
        case .read(.server, let isWanted): wantsBytes.server = isWanted
        case .finish(let leg): handler(leg).finish()
        case .close(let reset): beginClosing(reset: reset)
        }
    }
}

extension Route {
    /// Returns the content of the first record of a session with this route.
    fileprivate func beginning(_ accepted: AcceptedConnection) -> Record.Beginning {
        Record.Beginning(
            client: accepted.remote?.endpoint?.description,
            relay: accepted.relay?.endpoint?.description,
            upstream: description,
            request: request,
            isBlind: isBlind
        )
    }
}

internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapRules
internal import XMPPCore

/// The state shared by all event loops of a proxy; each part is safe to use from any of them.
struct RelayContext: Sendable {
    let run: Run
    let clock: RunClock
    let options: SessionOptions
    /// TLS termination; nil if TLS is passed through.
    let interception: Interception?
    let admission: Admission
    let dispatcher: RecordDispatcher
    let metrics: ProxyMetrics
    let sessions: SessionDirectory
    let slowSteps = SlowSteps()
    let bosh = BOSHTable()
    /// The journal of sessions that cannot be resumed after a restart; nil if it is disabled.
    let journal: JournalQueue?
}

/// The sessions of one event loop, and the state that they share. Used on that event loop only.
final class RelayLoop {
    /// Interval of the checks for space in the sinks.
    private static let congestionPoll = TimeAmount.milliseconds(5)

    let eventLoop: any EventLoop
    let context: RelayContext
    /// The parser and redactor for all sessions, shared so that their buffers are reused.
    let tools: SessionTools
    let records: RecordDispatcher.Producer

    private var drivers: [ObjectIdentifier: SessionDriver] = [:]
    /// Sessions of BOSH, which are observed, but not relayed here.
    private var observed: [ObjectIdentifier: BOSHDriver] = [:]
    /// Sessions that have read data in this turn of the event loop and have not decoded it yet.
    private var due: [SessionDriver] = []
    /// Sessions that do not read because a sink is full.
    private var stalled: [SessionDriver] = []
    private var freedMemory = FreedMemory()
    private var isWatching = false
    /// Durations from read to write of bytes forwarded in cut-through, since the last ``takeRelayLatency()``.
    private(set) var relayLatency = DurationHistogram()
    private var whenEmpty: EventLoopPromise<Void>?
    private(set) var isStopping = false
    /// The refusal for new sessions; nil if they are accepted.
    private(set) var refusal: Refusal?

    /// A stream error for all sessions, open and new.
    struct Refusal: Sendable {
        var condition: StreamErrorCondition
        var text: String
    }

    init(eventLoop: any EventLoop, context: RelayContext) {
        self.eventLoop = eventLoop
        self.context = context
        tools = SessionTools(run: context.run, redaction: context.options.redaction)
        records = RecordDispatcher.Producer(context.dispatcher)
    }

    /// Number of open sessions.
    var count: Int { drivers.count }

    func add(_ driver: SessionDriver) {
        drivers[ObjectIdentifier(driver)] = driver
        context.metrics.sessionBegan()
        context.sessions.add(driver)
        freedMemory.sessionOpened(total: drivers.count)
        if drivers.count == 1 { watch() }
    }

    /// Checks the deadlines of all sessions with one timer, as long as there are sessions. Idle sessions therefore need
    /// no timers, and stanzas reset none.
    private func watch() {
        guard !isWatching else { return }
        isWatching = true
        eventLoop.assumeIsolated().scheduleTask(in: interval) { [self] in
            isWatching = false
            let now = context.clock.now()
            for driver in drivers.values { driver.tick(now) }
            if !drivers.isEmpty { watch() }
        }
    }

    /// Interval of the deadline checks: a quarter of the shortest limit, from 10 to 500 ms.
    private var interval: TimeAmount {
        let ping = context.options.ping.map { min($0.interval, $0.timeout) }
        let least = min(context.options.loginTime ?? .max, context.options.idleTime ?? .max, ping ?? .max)
        return .nanoseconds(min(500_000_000, max(10_000_000, least / 4)))
    }

    /// Returns ``relayLatency``, and resets it.
    func takeRelayLatency() -> DurationHistogram {
        defer { relayLatency = DurationHistogram() }
        return relayLatency
    }

    func remove(_ driver: SessionDriver) {
        guard drivers.removeValue(forKey: ObjectIdentifier(driver)) != nil else { return }
        context.metrics.sessionEnded()
        context.sessions.remove(driver)
        giveBackMemory(in: freedMemory.sessionClosed(remaining: drivers.count))
        guard drivers.isEmpty, let promise = whenEmpty else { return }
        whenEmpty = nil
        promise.succeed()
    }

    func add(_ driver: BOSHDriver) { observed[ObjectIdentifier(driver)] = driver }

    func remove(_ driver: BOSHDriver) { observed[ObjectIdentifier(driver)] = nil }

    private func giveBackMemory(in wait: TimeAmount?) {
        guard let wait else { return }
        eventLoop.assumeIsolated().scheduleTask(in: wait) { [self] in
            giveBackMemory(in: freedMemory.check(drivers.count))
        }
    }

    /// Schedules calls of the driver's ``SessionDriver/pass()`` and then ``SessionDriver/decodeReceived()`` for when all ready
    /// connections have been read.
    ///
    /// The data of all sessions is forwarded first, and decoded afterwards. A peer that the first session wakes up then
    /// finds the other sessions' data too, and works while this loop decodes. Waking up a peer for each session costs
    /// the system more than decoding.
    func schedule(_ driver: SessionDriver) {
        due.append(driver)
        guard due.count == 1 else { return }
        eventLoop.assumeIsolated().execute { [self] in
            let batch = due
            due.removeAll(keepingCapacity: true)
            for driver in batch { driver.pass() }
            let now = context.clock.now().monotonic
            for driver in batch {
                if let read = driver.readTime.take() { relayLatency.add(now &- read) }
            }
            for driver in batch { driver.decodeReceived() }
        }
    }

    // MARK: Connections without a session

    /// Counts a connection without a session; returns nil if there are too many, or the proxy is stopping.
    func admit() -> PendingConnection? {
        guard !isStopping, context.admission.admitPending() else { return nil }
        return PendingConnection(on: eventLoop) { [admission = context.admission] in admission.leavePending() }
    }

    /// Records that a client was refused before its session began; nothing while the proxy is stopping.
    ///
    /// - Parameter reason: A clause.
    func refused(_ client: SocketAddress?, _ code: String, _ reason: Prose, _ level: Level = .warn) {
        guard !isStopping else { return }
        record(client, code, level, "refused \(client?.endpoint?.description ?? "a client"): \(reason)")
    }

    /// Records an event of a client's connection that belongs to no session.
    func record(
        _ client: SocketAddress?,
        _ code: String,
        _ level: Level,
        _ message: Prose,
        details: Attributes? = nil
    ) {
        guard level <= context.options.level else { return }
        let now = context.clock.now()
        var record = Record(
            sequence: context.run.nextSequence(),
            time: now.time,
            monotonic: now.monotonic,
            kind: level <= .warn ? .error : .note,
            level: level,
            part: .net
        )
        record.remote = client?.endpoint?.description
        record.leg = .client
        record.code = code
        record.message = message
        record.details = details
        let nothing: [UInt8] = []
        records.write(tools.redactor.redact(record), content: nothing.span)
    }

    // MARK: Reading

    /// Adds to the number of bytes that sessions have read.
    func count(_ direction: Direction, _ bytes: Int) {
        context.metrics.count(direction, bytes)
    }

    /// Schedules a call of the driver's ``SessionDriver/resume()`` for when the sinks have space again.
    func wait(_ driver: SessionDriver) {
        stalled.append(driver)
        if stalled.count == 1 { poll() }
    }

    private func poll() {
        eventLoop.assumeIsolated().scheduleTask(in: Self.congestionPoll) { [self] in
            if records.isCongested { return poll() }
            let waiting = stalled
            stalled.removeAll()
            for driver in waiting { driver.resume() }
        }
    }

    /// Closes all sessions, and all new ones, with a stream error; nil accepts new ones again.
    func refuse(_ refusal: Refusal?) {
        let isRefusing = self.refusal != nil
        self.refusal = refusal
        guard let refusal, !isRefusing else { return }
        for driver in drivers.values { driver.refuse(refusal) }
    }

    /// Replaces the rules of all sessions.
    func replaceRules(by rules: RuleSet) { for driver in drivers.values { driver.replaceRules(by: rules) } }

    /// Ends all sessions after the data read so far has been written. The future completes when no session is left.
    /// Call it only once.
    func stop() -> EventLoopFuture<Void> {
        isStopping = true
        let promise = eventLoop.makePromise(of: Void.self)
        if drivers.isEmpty { promise.succeed() } else { whenEmpty = promise }
        for driver in drivers.values { driver.stop() }
        for driver in observed.values { driver.stop() }
        return promise.futureResult
    }

    /// Ends all sessions immediately, and discards unwritten data.
    func abandon() {
        isStopping = true
        for driver in drivers.values { driver.abandon() }
    }
}

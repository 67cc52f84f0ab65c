internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapRules
internal import XMPPCore

/// The state that all event loops of a proxy share; each part may be used from any of them.
struct RelayContext: Sendable {
    let run: Run
    let clock: RunClock
    let options: SessionOptions
    /// The TLS interception; nil if TLS is passed through.
    let interception: Interception?
    let admission: Admission
    let dispatcher: RecordDispatcher
    let metrics: ProxyMetrics
    let sessions: SessionDirectory
    let slowSteps = SlowSteps()
    /// The journal of sessions that cannot be resumed after a restart; nil if there is none.
    let journal: JournalQueue?
}

/// The sessions of one event loop and the state that they share. Belongs to that loop.
final class RelayLoop {
    /// How long sources wait before they look whether the sinks have room again.
    private static let congestionPoll = TimeAmount.milliseconds(5)

    let eventLoop: any EventLoop
    let context: RelayContext
    /// One parser and redactor for all sessions, so that their buffers stay allocated.
    let tools: SessionTools
    let records: RecordDispatcher.Producer

    private var drivers: [ObjectIdentifier: SessionDriver] = [:]
    /// Sessions that have read in this turn of the event loop, and have not looked at it yet.
    private var due: [SessionDriver] = []
    /// Sessions that do not read because a sink has no room.
    private var stalled: [SessionDriver] = []
    private var freedMemory = FreedMemory()
    private var isWatching = false
    /// How long bytes took that passed as they came, from their read to their write, since ``takeRelayLatency()``.
    private(set) var relayLatency = DurationHistogram()
    private var whenEmpty: EventLoopPromise<Void>?
    private(set) var isStopping = false
    /// Why sessions are refused, if they are.
    private(set) var refusal: Refusal?

    /// A stream error for every session, open or new.
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

    /// Sessions that have not ended.
    var count: Int { drivers.count }

    func add(_ driver: SessionDriver) {
        drivers[ObjectIdentifier(driver)] = driver
        context.metrics.sessionBegan()
        context.sessions.add(driver)
        freedMemory.rose(to: drivers.count)
        if drivers.count == 1 { watch() }
    }

    /// Looks at the sessions' deadlines while there are sessions: one timer for all, so that an idle one costs nothing for
    /// it, and which is never reset for a stanza.
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

    /// How often deadlines are looked at, so that the shortest of the limits is passed by a quarter at most.
    private var interval: TimeAmount {
        let ping = context.options.ping.map { min($0.interval, $0.timeout) }
        let least = min(context.options.loginTime ?? .max, context.options.idleTime ?? .max, ping ?? .max)
        return .nanoseconds(min(500_000_000, max(10_000_000, least / 4)))
    }

    /// Gives up what ``relayLatency`` has, which begins anew.
    func takeRelayLatency() -> DurationHistogram {
        defer { relayLatency = DurationHistogram() }
        return relayLatency
    }

    func remove(_ driver: SessionDriver) {
        guard drivers.removeValue(forKey: ObjectIdentifier(driver)) != nil else { return }
        context.metrics.sessionEnded()
        context.sessions.remove(driver)
        giveBackMemory(in: freedMemory.fell(to: drivers.count))
        guard drivers.isEmpty, let promise = whenEmpty else { return }
        whenEmpty = nil
        promise.succeed()
    }

    private func giveBackMemory(in wait: TimeAmount?) {
        guard let wait else { return }
        eventLoop.assumeIsolated().scheduleTask(in: wait) { [self] in
            giveBackMemory(in: freedMemory.look(drivers.count))
        }
    }

    /// Calls the driver's ``SessionDriver/pass()`` and then ``SessionDriver/look()`` when all connections that are ready
    /// have been read.
    ///
    /// The data of all sessions is forwarded first and decoded afterwards. A peer that is woken up by the first session
    /// finds the others' bytes too, and works while this loop decodes. Waking up a peer for each session costs the
    /// system more than the decoding.
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
            for driver in batch { driver.look() }
        }
    }

    /// Counts bytes that a session has read.
    func count(_ direction: Direction, _ bytes: Int) {
        context.metrics.count(direction, bytes)
    }

    /// Calls the driver's ``SessionDriver/resume()`` when the sinks have room.
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

    /// Ends every session, and every new one, with a stream error; nil serves new ones again.
    func refuse(_ refusal: Refusal?) {
        let isRefusing = self.refusal != nil
        self.refusal = refusal
        guard let refusal, !isRefusing else { return }
        for driver in drivers.values { driver.refuse(refusal) }
    }

    /// Replaces the rules of every session.
    func replaceRules(by rules: RuleSet) { for driver in drivers.values { driver.replaceRules(by: rules) } }

    /// Ends every session after what has been read is written. The result comes when none is left. Called once.
    func stop() -> EventLoopFuture<Void> {
        isStopping = true
        let promise = eventLoop.makePromise(of: Void.self)
        if drivers.isEmpty { promise.succeed() } else { whenEmpty = promise }
        for driver in drivers.values { driver.stop() }
        return promise.futureResult
    }

    /// Ends every session at once, and discards unwritten data.
    func abandon() {
        isStopping = true
        for driver in drivers.values { driver.abandon() }
    }
}

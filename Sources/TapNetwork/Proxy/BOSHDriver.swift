internal import NIOCore
internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Runs the ``Session`` of a BOSH session, which only observes: its bodies are relayed as HTTP by ``WebHandler``.
///
/// Used on one event loop only, that of the connection with the first request.
final class BOSHDriver {
    private struct Performer: CommandPerformer {
        let records: RecordDispatcher.Producer

        func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
            records.write(record, content: content)
        }

        func forward(_ direction: Direction, _ content: Span<UInt8>) {}
        func perform(_ command: consuming Command) {}
    }

    let loop: RelayLoop
    private let runner: SessionRunner
    private var source: BOSHSource
    private var key: BOSHTable.Key?
    private var timer: Scheduled<Void>?
    /// The time for which ``timer`` is scheduled.
    private var alarm = Int64.max

    /// Creates a driver, for which a place in the table was reserved.
    init(_ loop: RelayLoop, _ server: WebServer, remote: String?, rid: UInt64, isJoined: Bool, at now: Run.Instant) {
        self.loop = loop
        runner = SessionRunner(
            Session(
                run: loop.context.run,
                options: loop.context.options.observingBOSH,
                tools: loop.tools,
                remote: remote,
                upstream: "\(server)",
                at: now
            )
        )
        source = BOSHSource(session: runner.session.number, rid: rid, isJoined: isJoined, at: now)
        loop.add(self)
    }

    /// Whether the session has ended.
    var isOver: Bool { source.isOver }

    /// Stores the id of the session, by which later requests find it; returns the session that has the id already, if
    /// there is one.
    func register(_ key: BOSHTable.Key) -> NIOLoopBound<BOSHDriver>? {
        guard self.key == nil, !isOver else { return nil }
        if let known = loop.context.bosh.add(NIOLoopBound(self, eventLoop: loop.eventLoop), key) { return known }
        self.key = key
        return nil
    }

    func handle(_ event: BOSHEvent, at now: Run.Instant) { change { $0.handle(event, at: now) } }

    func request(_ rid: UInt64, _ body: BOSHBody, at now: Run.Instant) { change { $0.request(rid, body, at: now) } }

    func response(to rid: UInt64, _ answer: BOSHAnswer, at now: Run.Instant) {
        change { $0.response(to: rid, answer, at: now) }
    }

    func lost(_ rid: UInt64, at now: Run.Instant) { change { $0.lost(rid, at: now) } }

    /// Ends the session because xmpptap stops.
    func stop() { change { $0.stop(at: loop.context.clock.now()) } }

    private func change(_ body: (inout BOSHSource) -> Void) {
        guard !isOver else { return }
        body(&source)
        var performer = Performer(records: loop.records)
        runner.run(&source, by: &performer)
        guard !isOver else { return end() }
        schedule()
    }

    /// Schedules the next deadline. Activity moves it to a later time, which is checked when the timer fires.
    private func schedule() {
        guard let deadline = source.deadline, deadline < alarm else { return }
        timer?.cancel()
        alarm = deadline
        let wait = max(0, deadline &- loop.context.clock.now().monotonic)
        timer = loop.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { [self] in
            alarm = .max
            timer = nil
            change { $0.tick(at: loop.context.clock.now()) }
        }
    }

    private func end() {
        timer?.cancel()
        timer = nil
        loop.remove(self)
        loop.context.bosh.release(key)
    }
}

internal import NIOCore
internal import Synchronization
package import TapCore
package import TapRecord
package import XMPPCore

/// The open sessions of a running proxy, for other threads to inspect and control.
///
/// Every access to a session runs on its event loop, between two reads. Each session takes the directory's lock once
/// when it starts and once when it ends.
package final class SessionDirectory: Sendable {
    /// No open session has this number.
    package struct NoSuchSession: Error, Hashable {
        /// The session number.
        package let number: UInt64
    }

    /// The outcomes of an injected stanza, in order. The stream ends after an answer or a fault, or when the session
    /// ends.
    package typealias Outcomes = AsyncStream<InjectionOutcome>

    private struct Entry {
        let driver: NIOLoopBound<SessionDriver>
        var waiting: [UInt64: Outcomes.Continuation] = [:]
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var injections: UInt64 = 0
        var ended = SessionTotals()
    }

    /// Maximum number of sessions inspected in one turn of an event loop.
    private static let batch = 64

    private let state = Mutex(State())

    init() {}

    func add(_ driver: SessionDriver) {
        let entry = Entry(driver: NIOLoopBound(driver, eventLoop: driver.loop.eventLoop))
        state.withLock { $0.entries[driver.session.number] = entry }
    }

    func remove(_ driver: SessionDriver) {
        let waiting = state.withLock { state in
            state.ended.add(ended: driver)
            // ``totals()`` asks only the loops that have sessions, so the latency is moved here.
            state.ended.add(relayLatency: driver.loop.takeRelayLatency())
            return state.entries.removeValue(forKey: driver.session.number)?.waiting
        }
        for outcomes in (waiting ?? [:]).values { outcomes.finish() }
    }

    /// Passes an outcome of an injected stanza to the task that waits for it.
    func report(_ outcome: InjectionOutcome, of number: UInt64, in session: UInt64) {
        let outcomes = state.withLock { $0.entries[session]?.waiting[number] }
        outcomes?.yield(outcome)
        if outcome != .sent { outcomes?.finish() }
    }

    // MARK: Inspection

    /// Calls `body` with a session, on the session's event loop.
    package func inspect<Answer: Sendable>(
        _ number: UInt64,
        _ body: @escaping @Sendable (borrowing Session, Run.Instant) throws -> Answer
    ) async throws -> Answer {
        try await perform(on: number) { try body($0.session, $0.now) }
    }

    /// Returns a snapshot of a session.
    package func snapshot(of number: UInt64) async throws -> SessionSnapshot {
        try await perform(on: number) { $0.snapshot }
    }

    /// Returns snapshots of all sessions, or of a JID's sessions, ordered by number. Sessions that start or end in the
    /// meantime may be missing.
    package func snapshots(of jid: JID? = nil) async -> [SessionSnapshot] {
        var snapshots: [SessionSnapshot] = []
        await forEachBatch { drivers, _ in
            drivers.compactMap { driver in
                // Skip sessions that have ended while their connections are still closing, as look-ups by number do.
                guard driver.isLive, jid.map({ driver.session.info.isOf($0) }) ?? true else { return nil }
                return driver.snapshot
            }
        } then: {
            snapshots += $0
        }
        return snapshots.sorted { $0.number < $1.number }
    }

    /// Returns the items that rules and pauses hold for the user, with the numbers of their sessions.
    ///
    /// - Parameter limit: Maximum number of items; those of other sessions are left out.
    package func heldItems(limit: Int) async -> [(session: UInt64, item: HeldItem)] {
        var found: [(session: UInt64, item: HeldItem)] = []
        await forEachBatch { drivers, _ in
            drivers.filter(\.isLive).flatMap { driver in
                driver.session.heldItems.map { (session: driver.session.number, item: $0) }
            }
        } then: {
            found += $0.prefix(max(0, limit - found.count))
        }
        return found
    }

    /// Returns the summed counters of all sessions, including ended ones.
    package func totals() async -> SessionTotals {
        var totals = state.withLock { $0.ended }
        await forEachBatch { drivers, isFirst in
            var totals = SessionTotals()
            for driver in drivers { totals.add(open: driver) }
            if isFirst, let loop = drivers.first?.loop { totals.add(relayLatency: loop.relayLatency) }
            return totals
        } then: {
            totals.add($0)
        }
        return totals
    }

    /// Calls `body` with the sessions of each loop, in batches, so that each call occupies the loop only briefly. The
    /// flag is true for a loop's first batch.
    private func forEachBatch<Answer: Sendable>(
        _ body: @escaping @Sendable ([SessionDriver], Bool) -> Answer,
        then take: (Answer) -> Void
    ) async {
        let drivers = state.withLock { $0.entries.values.map(\.driver) }
        for drivers in Dictionary(grouping: drivers, by: { ObjectIdentifier($0.eventLoop) }).values {
            for start in stride(from: 0, to: drivers.count, by: Self.batch) {
                let batch = drivers[start..<min(start + Self.batch, drivers.count)]
                let answer = try? await batch[start].eventLoop.submit { body(batch.map(\.value), start == 0) }.get()
                if let answer { take(answer) }
            }
        }
    }

    // MARK: Control

    /// Passes an input to a session.
    package func deliver(_ input: SessionInput, to number: UInt64) async throws {
        try await perform(on: number) { $0.handle(input) }
    }

    /// Holds the next stanzas of a session; a nil `pause` stops holding.
    ///
    /// - Returns: The reason why stanzas cannot be held; nil on success.
    package func pause(_ pause: StanzaPause?, _ direction: Direction?, in number: UInt64) async throws
        -> InjectionFault?
    {
        try await perform(on: number) { driver in
            if pause != nil, let obstacle = driver.session.obstacle(toPausing: direction) { return obstacle }
            driver.handle(.pause(pause))
            return nil
        }
    }

    /// The held items and the pause of a session.
    package struct Holding: Sendable {
        /// The number of the session.
        package let session: UInt64
        /// The held items.
        package let items: [HeldItem]
        /// The pause; nil if there is none.
        package let pause: StanzaPause.Description?
        /// The number of stanzas that the pause is still to hold.
        package let left: Int
        /// The time of the session's clock, in nanoseconds of the run.
        package let now: Int64
    }

    /// Returns the sessions with held items or a pause, ordered by number.
    package func holdings() async -> [Holding] {
        var holdings: [Holding] = []
        await forEachBatch { drivers, _ in
            drivers.compactMap { $0.isLive ? $0.holding : nil }
        } then: {
            holdings += $0
        }
        return holdings.sorted { $0.session < $1.session }
    }

    /// Ends all pauses of a user, and passes the items that they hold. Items that rules hold stay held.
    package func endPauses(of owner: StanzaPause.Owner) async {
        await forEachBatch { drivers, _ in
            for driver in drivers where driver.isLive {
                if driver.session.pause?.pause.owner == owner { driver.handle(.pause(nil)) }
                // Two items at most, one in each direction; each release may end the session.
                for item in driver.session.heldItems where item.pause?.owner == owner && driver.isLive {
                    driver.handle(.release(item.number, .pass))
                }
            }
        } then: { _ in
        }
    }

    /// The result of releasing an item that a rule holds.
    package enum Release: Sendable, Hashable {
        /// The item is released.
        case released
        /// No held item has this number.
        case notHeld
        /// The item cannot be replaced in this way, for this reason; it is still held.
        case refused(String)
    }

    /// Releases an item that a rule of a session holds.
    package func release(_ item: UInt64, _ release: HeldRelease, in number: UInt64) async throws -> Release {
        try await perform(on: number) { driver in
            guard driver.session.heldItems.contains(where: { $0.number == item }) else { return .notHeld }
            let problem = driver.session.problem(with: release, of: item)
            driver.handle(.release(item, release))
            return problem.map { .refused($0) } ?? .released
        }
    }

    /// Closes a session with a stream error.
    package func close(_ number: UInt64, _ condition: StreamErrorCondition, _ text: String) async throws {
        try await perform(on: number) { $0.refuse(RelayLoop.Refusal(condition: condition, text: text)) }
    }

    /// Injects a stanza.
    ///
    /// - Parameter make: Creates the injection with the given number; called on the session's event loop.
    /// - Returns: The injection, and its outcomes.
    package func inject(
        into number: UInt64,
        _ make: @escaping @Sendable (borrowing Session, _ number: UInt64) throws -> Injection
    ) async throws -> (injection: Injection, outcomes: Outcomes) {
        try await perform(on: number) { [self] driver in
            let number = driver.session.number
            let place = state.withLock { state in
                state.injections += 1
                return state.injections
            }
            let injection = try make(driver.session, place)
            let (outcomes, continuation) = Outcomes.makeStream()
            state.withLock { $0.entries[number]?.waiting[place] = continuation }
            continuation.onTermination = { [weak self] _ in self?.forget(place, in: number) }
            driver.handle(.inject(injection))
            return (injection, outcomes)
        }
    }

    private func forget(_ injection: UInt64, in session: UInt64) {
        let outcomes = state.withLock { $0.entries[session]?.waiting.removeValue(forKey: injection) }
        // Release the continuation outside the lock, because its end calls this method again.
        _ = outcomes
    }

    private func perform<Answer: Sendable>(
        on number: UInt64,
        _ body: @escaping @Sendable (SessionDriver) throws -> Answer
    ) async throws -> Answer {
        guard let driver = state.withLock({ $0.entries[number]?.driver }) else { throw NoSuchSession(number: number) }
        return try await driver.eventLoop.submit {
            guard driver.value.isLive else { throw NoSuchSession(number: number) }
            return try body(driver.value)
        }.get()
    }
}

extension SessionDriver {
    /// The held items and the pause; nil if there are neither.
    fileprivate var holding: SessionDirectory.Holding? {
        let (items, pending) = (session.heldItems, session.pause)
        guard !items.isEmpty || pending != nil else { return nil }
        return SessionDirectory.Holding(
            session: session.number,
            items: items,
            pause: pending?.pause,
            left: pending?.left ?? 0,
            now: now.monotonic
        )
    }

    /// A snapshot of the session, including the server's address.
    fileprivate var snapshot: SessionSnapshot {
        var snapshot = session.snapshot(at: now)
        snapshot.server = server.address?.endpoint?.description
        return snapshot
    }
}

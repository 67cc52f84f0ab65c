internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TapCore

/// Reads and writes a ``ResumptionJournal`` on NIO's thread pool, for all sessions of a proxy: one thread at a time, and all
/// requests that wait at once. Another process that holds the journal's file delays them together.
final class JournalQueue: Sendable {
    private struct Addition: Sendable {
        let mark: [UInt8]
        let promise: EventLoopPromise<Void>
    }

    private struct Search: Sendable {
        let marks: [[UInt8]]
        let promise: EventLoopPromise<Bool>
    }

    private struct State {
        var isRunning = false
        /// Whether the next attempt to write marks is scheduled.
        var isRetrying = false
        var additions: [Addition] = []
        var searches: [Search] = []
    }

    private let journal: any ResumptionJournal
    private let pool: NIOThreadPool
    private let retryInterval: TimeAmount
    private let state = Mutex(State())

    /// Works on a thread of a pool.
    ///
    /// - Parameter retryInterval: Time after which marks that the journal could not store are tried again; default 1 s.
    init(
        _ journal: any ResumptionJournal,
        on pool: NIOThreadPool = .singleton,
        retryInterval: TimeAmount = .seconds(1)
    ) {
        self.journal = journal
        self.pool = pool
        self.retryInterval = retryInterval
    }

    /// Adds a mark. Completes later on the event loop, also if the journal cannot be written.
    func add(_ mark: [UInt8], on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        let addition = Addition(mark: mark, promise: eventLoop.makePromise())
        submit { $0.additions.append(addition) }
        return addition.promise.futureResult
    }

    /// Returns whether one of the marks is in the journal, with those of earlier calls of ``add(_:on:)``. Completes later on the
    /// event loop.
    func search(_ marks: [[UInt8]], on eventLoop: any EventLoop) -> EventLoopFuture<Bool> {
        let search = Search(marks: marks, promise: eventLoop.makePromise())
        submit { $0.searches.append(search) }
        return search.promise.futureResult
    }

    private func submit(_ append: (inout State) -> Void) {
        let begins = state.withLock { state in
            append(&state)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        // A pool that does not run any more has the caller do it.
        if begins { pool.submit { _ in self.run() } }
    }

    /// Schedules an attempt to write the marks that the journal could not store, if there are any.
    private func retryLater(on eventLoop: any EventLoop) {
        guard journal.hasUnwrittenMarks else { return }
        let isFirst = state.withLock { state in
            defer { state.isRetrying = true }
            return !state.isRetrying
        }
        guard isFirst else { return }
        eventLoop.scheduleTask(in: retryInterval) {
            self.pool.submit { _ in
                self.journal.writeAgain()
                self.state.withLock { $0.isRetrying = false }
                self.retryLater(on: eventLoop)
            }
        }
    }

    /// Answers all that wait, until none do.
    private func run() {
        while true {
            let (additions, searches) = state.withLock { state in
                let requests = (state.additions, state.searches)
                (state.additions, state.searches) = ([], [])
                state.isRunning = !requests.0.isEmpty || !requests.1.isEmpty
                return requests
            }
            guard !additions.isEmpty || !searches.isEmpty else { return }
            if !additions.isEmpty { journal.add(additions.map(\.mark)) }
            if let addition = additions.first { retryLater(on: addition.promise.futureResult.eventLoop) }
            let found = searches.isEmpty ? [] : journal.found(of: searches.flatMap(\.marks))
            // Always asynchronously: the caller may be performing commands.
            for addition in additions {
                addition.promise.futureResult.eventLoop.execute { addition.promise.succeed() }
            }
            for search in searches {
                let isFound = search.marks.contains { found.contains($0) }
                search.promise.futureResult.eventLoop.execute { search.promise.succeed(isFound) }
            }
        }
    }
}

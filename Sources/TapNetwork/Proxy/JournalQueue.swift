internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TapCore

/// Reads and writes a ``ResumptionJournal`` on NIO's thread pool, for all sessions of a proxy. Only one thread works at
/// a time, and it handles all waiting requests together. If another process has locked the journal's file, all of them
/// wait.
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

    /// Creates a queue for a journal.
    ///
    /// - Parameters:
    ///   - pool: The threads that access the journal.
    ///   - retryInterval: Time until marks that could not be stored are written again; default 1 s.
    init(
        _ journal: any ResumptionJournal,
        on pool: NIOThreadPool = .singleton,
        retryInterval: TimeAmount = .seconds(1)
    ) {
        self.journal = journal
        self.pool = pool
        self.retryInterval = retryInterval
    }

    /// Adds a mark. The future completes later on the event loop, even if the journal cannot be written.
    func add(_ mark: [UInt8], on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        let addition = Addition(mark: mark, promise: eventLoop.makePromise())
        submit { $0.additions.append(addition) }
        return addition.promise.futureResult
    }

    /// Searches the journal for the marks; marks of earlier ``add(_:on:)`` calls are included. The future completes
    /// later on the event loop, with whether one was found.
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
        // If the pool is shut down, the work runs on the caller's thread.
        if begins { pool.submit { _ in self.run() } }
    }

    /// Schedules a retry for the marks that the journal could not store, if there are any.
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

    /// Handles the waiting requests until there are no more.
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
            // Complete the futures asynchronously: the caller may still be performing commands of its session.
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

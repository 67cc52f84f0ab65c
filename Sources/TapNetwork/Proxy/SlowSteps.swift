internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TapCore

/// Does the steps of logins that take long on NIO's thread pool, for all sessions of a proxy: on half of its threads at most.
///
/// The others are for what else waits there, names that are looked up and certificates that are made: many logins at once
/// would keep all of it waiting.
final class SlowSteps: Sendable {
    private struct Work: Sendable {
        var step: SlowStep
        let promise: EventLoopPromise<SlowStep>
    }

    private struct State {
        var running = 0
        var waiting = CircularBuffer<Work>()
    }

    private let pool: NIOThreadPool
    private let limit: Int
    private let state = Mutex(State())

    /// Works on the threads of a pool; of one thread it takes that.
    init(on pool: NIOThreadPool = .singleton) {
        self.pool = pool
        limit = max(1, pool.numberOfThreads / 2)
    }

    /// Performs a step after the earlier ones. The future always completes later, on the event loop. If the pool has
    /// stopped, the caller performs the step.
    func perform(_ step: SlowStep, on eventLoop: any EventLoop) -> EventLoopFuture<SlowStep> {
        let work = Work(step: step, promise: eventLoop.makePromise())
        let begins = state.withLock { state in
            guard state.running < limit else {
                state.waiting.append(work)
                return false
            }
            state.running += 1
            return true
        }
        if begins { pool.submit { _ in self.run(work) } }
        return work.promise.futureResult
    }

    /// Performs a step, and all that wait by then.
    private func run(_ first: Work) {
        var next: Work? = first
        while var work = next {
            work.step.perform()
            let (step, promise) = (work.step, work.promise)
            // Always asynchronously: the caller may be performing commands.
            promise.futureResult.eventLoop.execute { promise.succeed(step) }
            next = state.withLock { state in
                if let next = state.waiting.popFirst() { return next }
                state.running -= 1
                return nil
            }
        }
    }
}

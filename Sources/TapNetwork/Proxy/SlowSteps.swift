internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TapCore

/// Performs slow login steps on NIO's thread pool, for all sessions of a proxy, on at most half of the pool's threads.
///
/// The other threads serve name lookups and the issuing of certificates, which many simultaneous logins would otherwise
/// delay.
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

    /// Creates a queue for a thread pool. It uses half of the threads, but at least one.
    init(on pool: NIOThreadPool = .singleton) {
        self.pool = pool
        limit = max(1, pool.numberOfThreads / 2)
    }

    /// Performs a step; steps start in the order of the calls. The future completes later, on the event loop. If the
    /// pool is shut down, the step runs on the caller's thread.
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

    /// Performs a step, and then the waiting ones until there are no more.
    private func run(_ first: Work) {
        var next: Work? = first
        while var work = next {
            work.step.perform()
            let (step, promise) = (work.step, work.promise)
            // Complete the future asynchronously: the caller may still be performing commands of its session.
            promise.futureResult.eventLoop.execute { promise.succeed(step) }
            next = state.withLock { state in
                if let next = state.waiting.popFirst() { return next }
                state.running -= 1
                return nil
            }
        }
    }
}

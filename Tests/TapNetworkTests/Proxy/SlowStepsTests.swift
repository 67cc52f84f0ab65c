import Glibc
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import TapCore
@testable import TapNetwork

/// Tests that slow login steps leave threads for other work of the pool.
struct SlowStepsTests {
    /// The number of steps that are performed at the same time: now, and at most.
    private final class Gauge: Sendable {
        let counts = Mutex((now: 0, most: 0))

        func begin() {
            counts.withLock { counts in
                counts.now += 1
                counts.most = max(counts.most, counts.now)
            }
        }

        func end() { counts.withLock { $0.now -= 1 } }
    }

    private struct Slow: SASLExchange {
        let gauge: Gauge
        let mechanism = "X-SLOW"
        let identity: SASLIdentity? = nil

        mutating func step(_ incoming: [UInt8]?) -> SASLStep {
            gauge.begin()
            defer { gauge.end() }
            usleep(20_000)
            return .send(incoming ?? [])
        }
    }

    @Test(arguments: [(1, 1), (2, 1), (4, 2)])
    func `at most half of the threads perform steps, and all steps complete`(threads: Int, most: Int) async throws {
        let pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
        let steps = SlowSteps(on: pool)
        let gauge = Gauge()
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        let futures = (0..<12).map { steps.perform(SlowStep(Slow(gauge: gauge), [$0]), on: eventLoop) }
        for (index, future) in futures.enumerated() {
            #expect(try await future.get().outcome == .send([UInt8(index)]))
        }
        #expect(gauge.counts.withLock { $0.most } == most)
        // The threads are free for more steps.
        #expect(try await steps.perform(SlowStep(Slow(gauge: gauge), [12]), on: eventLoop).get().outcome == .send([12]))
        try await pool.shutdownGracefully()
    }

    @Test func `the caller performs the step if the pool has stopped`() async throws {
        let pool = NIOThreadPool(numberOfThreads: 2)
        pool.start()
        let steps = SlowSteps(on: pool)
        try await pool.shutdownGracefully()
        let gauge = Gauge()
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        for byte in 0..<UInt8(3) {
            let step = SlowStep(Slow(gauge: gauge), [byte])
            #expect(try await steps.perform(step, on: eventLoop).get().outcome == .send([byte]))
        }
    }
}

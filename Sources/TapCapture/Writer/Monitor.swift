// The headers of CPcap declare `timespec` too, and the compiler may use that definition.
internal import CPcap
internal import Glibc

/// A mutex with two condition variables, whose deadlines use the monotonic clock.
///
/// A monitor guards everything that a ``RecordWriter`` shares between threads. Appenders and the writer thread hold
/// it while they copy a record or swap two buffers, but never during a system call or a callback: event loops wait for it.
package final class Monitor: @unchecked Sendable {  // Sendable: it contains only a mutex and its conditions.
    package enum Condition: Int {
        /// A thread has work to do.
        case work
        /// Records have been written or dropped, so that the buffer has space, a flush is finished or the thread has
        /// ended.
        case progress
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let conditions = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 2)

    package init() {
        // An adaptive mutex spins before it sleeps: the lock is held for less time than putting a thread to sleep
        // takes.
        var kind = pthread_mutexattr_t()
        pthread_mutexattr_init(&kind)
        pthread_mutexattr_settype(&kind, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        pthread_mutex_init(mutex, &kind)
        pthread_mutexattr_destroy(&kind)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(conditions, &attributes)
        pthread_cond_init(conditions + 1, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(conditions)
        pthread_cond_destroy(conditions + 1)
        pthread_mutex_destroy(mutex)
        conditions.deallocate()
        mutex.deallocate()
    }

    package func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Releases the lock until the condition is signalled or `deadline`, on the clock of ``now``, has passed. Must be
    /// called with the lock held. May return early, as condition variables do.
    package func wait(for condition: Condition, until deadline: Int64? = nil) {
        guard let deadline else {
            pthread_cond_wait(conditions + condition.rawValue, mutex)
            return
        }
        var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
        pthread_cond_timedwait(conditions + condition.rawValue, mutex, &time)
    }

    package func signal(_ condition: Condition) {
        pthread_cond_broadcast(conditions + condition.rawValue)
    }

    /// The time of the monotonic clock in nanoseconds.
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

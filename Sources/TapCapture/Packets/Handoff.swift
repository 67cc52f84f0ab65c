/// A bounded queue of batches from one thread to another.
///
/// Sendable: the mutable state is accessed only with the monitor's lock.
final class Handoff<Batch: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private let capacity: Int
    private var waiting: [Batch] = []
    /// Whether the producer has called ``finish()``.
    private var hasEnded = false
    /// Whether ``abandon()`` was called.
    private var isAbandoned = false

    /// Creates a queue of at most `capacity` batches.
    init(capacity: Int) { self.capacity = capacity }

    /// Adds a batch. Waits while the queue is full.
    ///
    /// - Returns: False if the queue was abandoned.
    func push(_ batch: Batch) -> Bool {
        monitor.withLock {
            while waiting.count >= capacity, !isAbandoned { monitor.wait(for: .progress) }
            guard !isAbandoned else { return false }
            waiting.append(batch)
            monitor.signal(.work)
            return true
        }
    }

    /// Removes and returns the next batch. Waits while the queue is empty; nil if it has ended or was abandoned.
    func pop() -> Batch? {
        monitor.withLock {
            while waiting.isEmpty, !hasEnded, !isAbandoned { monitor.wait(for: .work) }
            guard !waiting.isEmpty, !isAbandoned else { return nil }
            monitor.signal(.progress)
            return waiting.removeFirst()
        }
    }

    /// Ends the queue: the producer adds no more batches.
    func finish() {
        monitor.withLock {
            hasEnded = true
            monitor.signal(.work)
        }
    }

    /// Abandons the queue: discards its batches, and makes all waiting and later calls return at once.
    func abandon() {
        monitor.withLock {
            isAbandoned = true
            waiting = []
            monitor.signal(.work)
            monitor.signal(.progress)
        }
    }
}

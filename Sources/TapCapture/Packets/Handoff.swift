/// A bounded queue of batches from one thread to another.
///
/// Sendable: what changes is touched with the monitor's lock only.
final class Handoff<Batch: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private let capacity: Int
    private var waiting: [Batch] = []
    /// The producer has ended, or nothing is taken any more.
    private var hasEnded = false
    private var isAbandoned = false

    /// A queue in which so many batches can wait.
    init(capacity: Int) { self.capacity = capacity }

    /// Hands a batch over, as soon as there is room for it.
    ///
    /// - Returns: False if the consumer has ended.
    func push(_ batch: Batch) -> Bool {
        monitor.withLock {
            while waiting.count >= capacity, !isAbandoned { monitor.wait(for: .progress) }
            guard !isAbandoned else { return false }
            waiting.append(batch)
            monitor.signal(.work)
            return true
        }
    }

    /// Takes the next batch, as soon as there is one; nil at the end.
    func pop() -> Batch? {
        monitor.withLock {
            while waiting.isEmpty, !hasEnded, !isAbandoned { monitor.wait(for: .work) }
            guard !waiting.isEmpty, !isAbandoned else { return nil }
            monitor.signal(.progress)
            return waiting.removeFirst()
        }
    }

    /// No more comes behind what was pushed.
    func finish() {
        monitor.withLock {
            hasEnded = true
            monitor.signal(.work)
        }
    }

    /// Nothing is taken any more.
    func abandon() {
        monitor.withLock {
            isAbandoned = true
            waiting = []
            monitor.signal(.work)
            monitor.signal(.progress)
        }
    }
}

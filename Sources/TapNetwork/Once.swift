internal import Synchronization

/// A thread-safe flag for something that may happen only once.
package final class Once: Sendable {
    private let isDone = Atomic(false)

    /// Creates a flag that is not set.
    package init() {}

    /// Sets the flag; returns true at the first call only.
    package func isFirst() -> Bool {
        isDone.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }
}

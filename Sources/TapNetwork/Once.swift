internal import Synchronization

/// Something that happens once.
package final class Once: Sendable {
    private let happened = Atomic(false)

    /// Something that has not happened yet.
    package init() {}

    /// Whether this is the first time.
    package func isFirst() -> Bool {
        happened.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }
}

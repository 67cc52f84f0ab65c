internal import Synchronization

/// Something that happens once.
final class Once: Sendable {
    private let happened = Atomic(false)

    /// Whether this is the first time.
    func isFirst() -> Bool {
        happened.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }
}

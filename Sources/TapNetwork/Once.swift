internal import Synchronization

/// Something that happens once.
public final class Once: Sendable {
    private let happened = Atomic(false)

    /// Something that has not happened yet.
    public init() {}

    /// Whether this is the first time.
    public func isFirst() -> Bool {
        happened.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }
}

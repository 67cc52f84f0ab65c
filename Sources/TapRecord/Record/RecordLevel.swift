internal import Synchronization

/// The level up to which records are made, shared by a ``RecordDispatcher`` and all that make records for it.
///
/// Reading it is one relaxed atomic load; another thread's change is seen soon after.
public final class RecordLevel: Sendable {
    private let value: Atomic<UInt8>

    /// A level that holds until it is set.
    public init(_ level: Level) { value = Atomic(level.rawValue) }

    /// The least severe level of records that are made.
    public var current: Level { Level(rawValue: value.load(ordering: .relaxed)) ?? .off }

    /// Sets the level; sessions follow from their next item on.
    public func set(_ level: Level) { value.store(level.rawValue, ordering: .relaxed) }
}

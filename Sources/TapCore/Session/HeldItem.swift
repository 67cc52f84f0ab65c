public import TapRecord

/// An item that a rule holds for a person, and all that follows it in its direction: see ``Session/heldItems``.
public struct HeldItem: Sendable, Hashable {
    /// Its number within the session, from 1.
    public let number: UInt64
    /// Which way it goes.
    public let direction: Direction
    /// The whole item, as it would go out. Nothing is redacted.
    public let bytes: [UInt8]
    /// The rule that holds it.
    public let rule: RulePlace
    /// When it came.
    public let since: Run.Instant
    /// When it passes by itself, in nanoseconds of the run.
    public let deadline: Int64
}

/// What becomes of an item that was held: see ``SessionInput/release(_:_:)``.
public enum HeldRelease: Sendable, Hashable {
    /// It goes on.
    case pass
    /// It goes no further.
    case drop
    /// One other whole element goes on in its place. One that cannot stand there is refused, and the item stays held.
    case replace([UInt8])
}

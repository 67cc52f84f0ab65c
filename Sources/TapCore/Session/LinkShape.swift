/// The traffic shaping of a leg: see ``Command/shape(_:_:)``.
public struct LinkShape: Sendable, Hashable {
    /// The largest number of bytes per second; nil for no limit.
    public var bytesPerSecond: Int?
    /// The largest piece in bytes; nil for no limit.
    public var slice: Int?
    /// Nanoseconds between two pieces. Requires ``slice``.
    public var sliceEvery: Int64?
}

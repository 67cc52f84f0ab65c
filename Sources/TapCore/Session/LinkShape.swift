/// How what is written to a leg goes out: see ``Command/shape(_:_:)``.
public struct LinkShape: Sendable, Hashable {
    /// Bytes a second at most; nil is no limit.
    public var bytesPerSecond: Int?
    /// Bytes of one piece at most; nil is whatever is written.
    public var slice: Int?
    /// Nanoseconds between two pieces. Goes with ``slice``.
    public var sliceEvery: Int64?
}

/// The traffic shaping of a leg: see ``Command/shape(_:_:)``.
package struct LinkShape: Sendable, Hashable {
    /// The largest number of bytes per second; nil for no limit.
    package var bytesPerSecond: Int?
    /// The largest number of bytes that are written at once; nil for no limit.
    package var slice: Int?
    /// The time between two pieces in nanoseconds. Requires ``slice``.
    package var sliceEvery: Int64?
}

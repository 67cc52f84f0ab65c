/// The traffic shaping of a leg: see ``Command/shape(_:_:)``.
package struct LinkShape: Sendable, Hashable {
    /// The largest number of bytes per second; nil for no limit.
    package var bytesPerSecond: Int?
    /// The largest piece in bytes; nil for no limit.
    package var slice: Int?
    /// Nanoseconds between two pieces. Requires ``slice``.
    package var sliceEvery: Int64?
}

public import TapRules

/// Which records a capture keeps: those around each record that meets a condition.
public struct CaptureTrigger: Sendable, Hashable {
    /// A record that meets it is a match.
    public var condition: RecordFilter
    /// Records of the same session that are kept before a match; default 200. See ``Bounds``.
    public var before = 200
    /// Records of the same session that are kept after a match; default 500.
    public var after = 500
    /// Matches after which no others count; nil is any number. The capture ends with the last record after them.
    public var matches: Int?
    /// Time from the beginning of the capture to its end; nil is any.
    public var duration: Duration?

    /// A trigger with the defaults.
    public init(_ condition: RecordFilter) { self.condition = condition }

    /// The most bytes of lines that wait for a match. The oldest are left out beyond.
    public struct Bounds: Sendable, Hashable {
        /// Of a login in a session without a match so far; default 64 KiB. Session records after it have as much again.
        public var login = 64 << 10
        /// Of a session; default 1 MiB.
        public var session = 1 << 20
        /// Of all sessions; default 64 MiB. Beyond it every session keeps the newer half.
        public var total = 64 << 20

        /// The defaults.
        public init() {}
    }
}

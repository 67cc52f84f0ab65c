package import TapRules

/// Which records a capture keeps: those around each record that meets a condition.
package struct CaptureTrigger: Sendable, Hashable {
    /// A record that meets it is a match.
    package var condition: RecordFilter
    /// Records of the same session that are kept before a match; default 200. See ``Bounds``.
    package var before = 200
    /// Records of the same session that are kept after a match; default 500.
    package var after = 500
    /// Matches after which no others count; nil is any number. The capture ends with the last record after them.
    package var matches: Int?
    /// Time from the beginning of the capture to its end; nil is any.
    package var duration: Duration?

    /// A trigger with the defaults.
    package init(_ condition: RecordFilter) { self.condition = condition }

    /// The most bytes of lines that wait for a match. The oldest are left out beyond.
    package struct Bounds: Sendable, Hashable {
        /// Of a login in a session without a match so far; default 64 KiB. Session records after it have as much again.
        package var login = 64 << 10
        /// Of a session; default 1 MiB.
        package var session = 1 << 20
        /// Of all sessions; default 64 MiB. Beyond it every session keeps the newer half.
        package var total = 64 << 20

        /// The defaults.
        package init() {}
    }
}

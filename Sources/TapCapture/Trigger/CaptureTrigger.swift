package import TapRules

/// Selects the records of a capture: those around each record that meets a condition.
package struct CaptureTrigger: Sendable, Hashable {
    /// The condition; a record that meets it is a match.
    package var condition: RecordFilter
    /// The number of records of the same session that are kept before a match; default 200. See ``Bounds``.
    package var before = 200
    /// The number of records of the same session that are kept after a match; default 500.
    package var after = 500
    /// The maximum number of matches; later ones are ignored. The capture ends after the records that follow the last
    /// match. Nil for no limit.
    package var matches: Int?
    /// The time from the beginning of the capture to its end; nil for no limit.
    package var duration: Duration?

    /// Creates a trigger with the default values.
    package init(_ condition: RecordFilter) { self.condition = condition }

    /// The maximum sizes of the lines that are buffered until a match. If a limit is exceeded, the oldest lines are
    /// discarded.
    package struct Bounds: Sendable, Hashable {
        /// The maximum bytes of the login of a session that has no match yet; default 64 KiB. Later session records
        /// may take the same size again.
        package var login = 64 << 10
        /// The maximum bytes of a session; default 1 MiB.
        package var session = 1 << 20
        /// The maximum bytes of all sessions; default 64 MiB. If it is exceeded, the older half of every session's
        /// lines is discarded.
        package var total = 64 << 20

        /// Creates the default limits.
        package init() {}
    }
}

internal import Glibc
package import TapCore
internal import TapRecord

/// Reads the system's clocks for a run: the wall-clock time, and the time since the run began.
package struct RunClock: Sendable {
    private let origin: Int64

    /// Creates the clock of a run that begins now.
    package init() { origin = Self.read(CLOCK_MONOTONIC) }

    /// Returns the readings of both clocks.
    package func now() -> Run.Instant {
        Run.Instant(
            time: Timestamp(nanoseconds: Self.read(CLOCK_REALTIME)),
            monotonic: Self.read(CLOCK_MONOTONIC) &- origin
        )
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

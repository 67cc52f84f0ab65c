internal import CResolv
internal import NIOCore
internal import NIOPosix

/// Returns memory of ended sessions to the system. Otherwise the allocator keeps it for later sessions, which may not
/// come for days.
///
/// Used on one event loop.
struct FreedMemory {
    /// Minimum peak of sessions for which memory is returned.
    private static let fewest = 256
    /// Delay before memory is returned, because new sessions may need it immediately.
    private static let delay = TimeAmount.seconds(1)

    /// Peak number of sessions since memory was last returned.
    private var peak = 0
    /// Number of sessions at the last check; nil if no check is scheduled.
    private var seen: Int?

    /// Updates the peak after a session was opened; `count` is the number of open sessions.
    mutating func sessionOpened(total count: Int) { peak = max(peak, count) }

    /// Handles the end of a session; `count` is the number of open sessions. If at most a quarter of the peak is left,
    /// returns the delay after which to call ``check(_:)``.
    mutating func sessionClosed(remaining count: Int) -> TimeAmount? {
        guard seen == nil, peak >= Self.fewest, count <= peak / 4 else { return nil }
        seen = count
        return Self.delay
    }

    /// Returns free memory to the system on a background thread. If the number of sessions is still falling, returns
    /// the delay after which to call this again instead.
    mutating func check(_ count: Int) -> TimeAmount? {
        if let seen, count < seen {
            self.seen = count
            return Self.delay
        }
        seen = nil
        peak = count
        NIOThreadPool.singleton.submit { _ in _ = malloc_trim(0) }
        return nil
    }
}

internal import CResolv
internal import NIOCore
internal import NIOPosix

/// Gives the memory of sessions that have ended back to the system: the allocator keeps it for the next ones, which
/// after a rush may be days.
///
/// Belongs to one event loop.
struct FreedMemory {
    /// Fewer sessions at once are not worth the work.
    private static let fewest = 256
    /// Memory that is needed again at once is not given back.
    private static let delay = TimeAmount.seconds(1)

    /// Sessions at once since memory was given back last.
    private var most = 0
    /// Sessions when it was last looked whether they still become fewer; nil while there are not few enough.
    private var seen: Int?

    /// Notes how many sessions there are after one has come.
    mutating func rose(to count: Int) { most = max(most, count) }

    /// Notes how many sessions there are after one has ended. When a quarter of the most remains, gives the time after
    /// which to ``look(_:)``.
    mutating func fell(to count: Int) -> TimeAmount? {
        guard seen == nil, most >= Self.fewest, count <= most / 4 else { return nil }
        seen = count
        return Self.delay
    }

    /// Returns free memory to the system, on a background thread; while sessions still become fewer, gives the time
    /// after which to look again.
    mutating func look(_ count: Int) -> TimeAmount? {
        if let seen, count < seen {
            self.seen = count
            return Self.delay
        }
        seen = nil
        most = count
        NIOThreadPool.singleton.submit { _ in _ = malloc_trim(0) }
        return nil
    }
}

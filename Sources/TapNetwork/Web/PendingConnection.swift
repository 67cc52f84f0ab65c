internal import NIOCore

/// An accepted connection that has not begun a session: it counts for a limit of such connections, and its time is limited.
final class PendingConnection {
    private let eventLoop: any EventLoop
    private var leave: (() -> Void)?
    private var timer: Scheduled<Void>?

    /// - Parameter leave: Subtracts the connection, which has been counted; called once.
    init(on eventLoop: any EventLoop, leave: @escaping () -> Void) {
        self.eventLoop = eventLoop
        self.leave = leave
    }

    /// Whether ``end()`` has not been called.
    var isWaiting: Bool { leave != nil }

    /// Calls `expire` after a time; replaces an earlier limit. If the time is nil, there is no limit.
    func limit(to time: TimeAmount?, expire: @escaping () -> Void) {
        timer?.cancel()
        timer = time.map { eventLoop.assumeIsolated().scheduleTask(in: $0, expire) }
    }

    /// Stops counting and timing: a session has begun, or the connection is closed. Further calls have no effect.
    func end() {
        timer?.cancel()
        timer = nil
        leave.take()?()
    }
}

internal import Synchronization
internal import TapRecord

/// Counters of a running proxy, readable from anywhere at any time.
public final class ProxyMetrics: Sendable {
    private let began = Atomic<UInt64>(0)
    private let ended = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)
    private let pauses = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)

    /// All counters at zero.
    public init() {}

    /// Sessions since the start.
    public var sessionsTotal: UInt64 { began.load(ordering: .relaxed) }
    /// Sessions that have not ended.
    public var sessionsOpen: UInt64 {
        let ended = ended.load(ordering: .acquiring)
        return began.load(ordering: .relaxed) &- ended
    }
    /// Sessions whose server could not be reached.
    public var connectionsFailed: UInt64 { failed.load(ordering: .relaxed) }
    /// How often a listener had to pause because a connection could not be accepted.
    public var acceptPauses: UInt64 { pauses.load(ordering: .relaxed) }
    /// Bytes that have come from clients.
    public var bytesSent: UInt64 { sent.load(ordering: .relaxed) }
    /// Bytes that have come from servers.
    public var bytesReceived: UInt64 { received.load(ordering: .relaxed) }

    func sessionBegan() { began.add(1, ordering: .relaxed) }
    func sessionEnded() { ended.add(1, ordering: .releasing) }
    func connectionFailed() { failed.add(1, ordering: .relaxed) }
    func acceptPaused() { pauses.add(1, ordering: .relaxed) }

    func count(_ direction: Direction, _ bytes: Int) {
        switch direction {
        case .send: sent.add(UInt64(bytes), ordering: .relaxed)
        case .recv: received.add(UInt64(bytes), ordering: .relaxed)
        }
    }
}

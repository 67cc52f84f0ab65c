internal import Synchronization
internal import TapRecord

/// Counters of a running proxy, readable from anywhere at any time.
package final class ProxyMetrics: Sendable {
    private let began = Atomic<UInt64>(0)
    private let ended = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)
    private let pauses = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)
    private let certificates = Mutex<[String: Int64]>([:])
    private let limits = Mutex<[Limit: UInt64]>([:])
    /// Maximum number of domains whose certificate expiry is kept; a proxy for many domains sees more.
    private static let mostCertificates = 100

    /// A limit of the proxy as a whole; the raw value is its name on the command line.
    package enum Limit: String, Sendable, CaseIterable {
        case connections
        /// Connections that have not sent their PROXY header yet: an eighth of all, or 64.
        case connectionsWithoutHeader = "connections-without-header"
        case connectionsPerAddress = "connections-per-address"
        case authorities
    }

    /// All counters at zero.
    package init() {}

    /// Sessions since the start.
    package var sessionsTotal: UInt64 { began.load(ordering: .relaxed) }
    /// Sessions that have not ended.
    package var sessionsOpen: UInt64 {
        let ended = ended.load(ordering: .acquiring)
        return began.load(ordering: .relaxed) &- ended
    }
    /// Sessions whose server could not be reached.
    package var connectionsFailed: UInt64 { failed.load(ordering: .relaxed) }
    /// How often a listener had to pause because a connection could not be accepted.
    package var acceptPauses: UInt64 { pauses.load(ordering: .relaxed) }
    /// Bytes that have come from clients.
    package var bytesSent: UInt64 { sent.load(ordering: .relaxed) }
    /// Bytes that have come from servers.
    package var bytesReceived: UInt64 { received.load(ordering: .relaxed) }

    /// When the certificates end that servers have last shown, by domain, in seconds since 1970; of 100 domains at most.
    package var serverCertificateEnds: [String: Int64] { certificates.withLock { $0 } }

    /// How often a limit was reached: connections refused, certificates not made.
    package func hits(of limit: Limit) -> UInt64 { limits.withLock { $0[limit] ?? 0 } }

    func reached(_ limit: Limit) { limits.withLock { $0[limit, default: 0] += 1 } }

    func serverCertificate(of domain: String, ends: Int64) {
        certificates.withLock {
            if $0.count < Self.mostCertificates || $0[domain] != nil { $0[domain] = ends }
        }
    }

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

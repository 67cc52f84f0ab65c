internal import Synchronization
internal import TapRecord

/// Counters of a running proxy; they can be read from any thread.
package final class ProxyMetrics: Sendable {
    private let began = Atomic<UInt64>(0)
    private let ended = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)
    private let pauses = Atomic<UInt64>(0)
    private let requests = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)
    private let certificates = Mutex<[String: Int64]>([:])
    private let limits = Mutex<[Limit: UInt64]>([:])
    /// Maximum number of domains whose certificate expiry is kept; a proxy may serve more domains.
    private static let maximumCertificates = 100

    /// A limit of the proxy as a whole; the raw values are the names on the command line.
    package enum Limit: String, Sendable, CaseIterable {
        case connections
        /// Connections without a session: they have not sent their PROXY header, or their request for a target or a page.
        /// The limit is an eighth of the connection limit, but at least 64.
        case connectionsWithoutHeader = "connections-without-header"
        case connectionsPerAddress = "connections-per-address"
        case authorities
    }

    /// Creates counters at zero.
    package init() {}

    /// Number of sessions since the start.
    package var sessionsTotal: UInt64 { began.load(ordering: .relaxed) }
    /// Number of open sessions.
    package var sessionsOpen: UInt64 {
        let ended = ended.load(ordering: .acquiring)
        return began.load(ordering: .relaxed) &- ended
    }
    /// Number of sessions whose server could not be reached.
    package var connectionsFailed: UInt64 { failed.load(ordering: .relaxed) }
    /// Number of HTTP requests on web listeners that are not for a WebSocket.
    package var httpRequests: UInt64 { requests.load(ordering: .relaxed) }
    /// Number of times that a listener paused because it could not accept a connection.
    package var acceptPauses: UInt64 { pauses.load(ordering: .relaxed) }
    /// Number of bytes received from clients.
    package var bytesSent: UInt64 { sent.load(ordering: .relaxed) }
    /// Number of bytes received from servers.
    package var bytesReceived: UInt64 { received.load(ordering: .relaxed) }

    /// Expiry of the certificate that each domain's server last sent, in seconds since 1970; for at most 100 domains.
    package var serverCertificateEnds: [String: Int64] { certificates.withLock { $0 } }

    /// Returns how often a limit was reached: connections refused, or certificates not issued.
    package func hits(of limit: Limit) -> UInt64 { limits.withLock { $0[limit] ?? 0 } }

    func reached(_ limit: Limit) { limits.withLock { $0[limit, default: 0] += 1 } }

    func serverCertificate(of domain: String, ends: Int64) {
        certificates.withLock {
            if $0.count < Self.maximumCertificates || $0[domain] != nil { $0[domain] = ends }
        }
    }

    func sessionBegan() { began.add(1, ordering: .relaxed) }
    func sessionEnded() { ended.add(1, ordering: .releasing) }
    func connectionFailed() { failed.add(1, ordering: .relaxed) }
    func httpRequest() { requests.add(1, ordering: .relaxed) }
    func acceptPaused() { pauses.add(1, ordering: .relaxed) }

    func count(_ direction: Direction, _ bytes: Int) {
        switch direction {
        case .send: sent.add(UInt64(bytes), ordering: .relaxed)
        case .recv: received.add(UInt64(bytes), ordering: .relaxed)
        }
    }
}

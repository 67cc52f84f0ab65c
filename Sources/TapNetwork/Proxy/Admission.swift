internal import Synchronization
internal import XMPPCore

/// Enforces the connection limits: counts the connections of the proxy and of each address.
final class Admission: Sendable {
    private struct State {
        var total = 0
        /// Connections without a session: they have not sent their PROXY header, or their request for a target or a page.
        var pending = 0
        var byAddress: [String: Int] = [:]
    }

    /// The assumed maximum number of connections if no limit applies.
    private static let assumedMaximum = 8192

    private let limits: ProxyLimits
    private let metrics: ProxyMetrics
    private let state = Mutex(State())

    init(_ limits: ProxyLimits, _ metrics: ProxyMetrics) {
        self.limits = limits
        self.metrics = metrics
    }

    /// Counts a connection from an IP address; returns a refusal instead if it exceeds a limit.
    func admit(_ address: String?) -> RelayLoop.Refusal? {
        state.withLock { state in
            if let limit = limits.connections, state.total >= limit {
                metrics.reached(.connections)
                return refusal(.resourceConstraint, "More than \(limit) connections at once (limit connections).")
            }
            if let limit = limits.connectionsPerAddress, let address {
                let count = state.byAddress[address, default: 0]
                guard count < limit else {
                    metrics.reached(.connectionsPerAddress)
                    return refusal(
                        .policyViolation,
                        "More than \(limit) connections at once from \(address) (limit connections-per-address)."
                    )
                }
                state.byAddress[address] = count + 1
            }
            state.total += 1
            return nil
        }
    }

    /// Subtracts a connection counted by ``admit(_:)``.
    func leave(_ address: String?) {
        state.withLock { state in
            state.total -= 1
            guard limits.connectionsPerAddress != nil, let address, let count = state.byAddress[address] else { return }
            state.byAddress[address] = count > 1 ? count - 1 : nil
        }
    }

    /// Counts a connection without a session; returns false if there are too many.
    func admitPending() -> Bool {
        state.withLock { state in
            guard state.pending < max(64, (limits.connections ?? Self.assumedMaximum) / 8) else {
                metrics.reached(.connectionsWithoutHeader)
                return false
            }
            state.pending += 1
            return true
        }
    }

    /// Subtracts a connection counted by ``admitPending()``.
    func leavePending() { state.withLock { $0.pending -= 1 } }

    private func refusal(_ condition: StreamErrorCondition, _ text: String) -> RelayLoop.Refusal {
        RelayLoop.Refusal(condition: condition, text: text)
    }
}

internal import Synchronization
internal import XMPPCore

/// Who may come in: counts the connections of a whole proxy and of each address.
final class Admission: Sendable {
    private struct State {
        var total = 0
        /// Connections without a PROXY header so far, from unknown clients.
        var unknown = 0
        var byAddress: [String: Int] = [:]
    }

    /// The assumed number of connections if the system sets no limit.
    private static let mostUnknown = 8192

    private let limits: ProxyLimits
    private let metrics: ProxyMetrics
    private let state = Mutex(State())

    init(_ limits: ProxyLimits, _ metrics: ProxyMetrics) {
        self.limits = limits
        self.metrics = metrics
    }

    /// Counts a connection from an IP address, or returns why it exceeds a limit.
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

    /// Counts a connection out that was counted in.
    func leave(_ address: String?) {
        state.withLock { state in
            state.total -= 1
            guard limits.connectionsPerAddress != nil, let address, let count = state.byAddress[address] else { return }
            state.byAddress[address] = count > 1 ? count - 1 : nil
        }
    }

    /// Counts a connection that has no PROXY header yet, unless there are too many of them.
    func admitUnknown() -> Bool {
        state.withLock { state in
            guard state.unknown < max(64, (limits.connections ?? Self.mostUnknown) / 8) else {
                metrics.reached(.connectionsWithoutHeader)
                return false
            }
            state.unknown += 1
            return true
        }
    }

    /// Counts such a connection out.
    func leaveUnknown() { state.withLock { $0.unknown -= 1 } }

    private func refusal(_ condition: StreamErrorCondition, _ text: String) -> RelayLoop.Refusal {
        RelayLoop.Refusal(condition: condition, text: text)
    }
}

package import TapRecord

/// Why a request to a running proxy failed.
package enum ControlClientError: Error, Sendable, Hashable {
    /// No proxy of this user runs; sockets were looked for in this folder.
    case noProxy(String)
    /// Several run, and none was chosen.
    case severalProxies([RunningProxy])
    /// Nothing can be reached at the socket, for this reason.
    case unreachable(String, String)
    /// The answer did not come within this time.
    case timeout(Duration)
    /// The connection ended before the answer was complete, for this reason if it is known.
    case ended(String?)
    /// The proxy refused it: the code, nil for one of a later version; the message; the body of the answer.
    case refused(ControlProblem?, String, JSONValue)
    /// The answer is not one of xmpptap: the reason.
    case unexpected(String)
}

extension ControlClientError: CustomStringConvertible {
    /// The failure, in one line.
    package var description: String {
        switch self {
        case .noProxy(let folder):
            "no running proxy found in \(folder)"
        case .severalProxies(let proxies):
            "several proxies are running: \(proxies.map { "PID \($0.pid) at \($0.path)" }.joined(separator: ", "))"
        case .unreachable(let path, let reason): "cannot connect to a proxy at \(path): \(reason)"
        case .timeout(let time): "the proxy did not answer within \(time)"
        case .ended(let reason): "the connection to the proxy ended\(reason.map { ": \($0)" } ?? "")"
        case .refused(_, let detail, _): detail
        case .unexpected(let reason): "unexpected answer from the proxy: \(reason)"
        }
    }
}

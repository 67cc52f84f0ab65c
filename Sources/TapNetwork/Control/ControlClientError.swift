package import TapRecord

/// Why a request to a running proxy failed.
package enum ControlClientError: Error, Sendable, Hashable {
    /// No proxy of this user is running; the folder is where sockets were looked for.
    case noProxy(String)
    /// Several proxies are running, and none was chosen.
    case severalProxies([RunningProxy])
    /// Cannot connect to the socket: its path and the reason.
    case unreachable(String, String)
    /// The answer did not arrive within this time.
    case timeout(Duration)
    /// The connection ended before the answer was complete; with the reason, if known.
    case ended(String?)
    /// The proxy refused the request: its code (nil if unknown to this version), its message, and the body of its
    /// answer.
    case refused(ControlProblem?, String, JSONValue)
    /// The answer is not one that xmpptap sends; with the reason.
    case unexpected(String)
}

extension ControlClientError: CustomStringConvertible {
    /// The failure as one line.
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

public import TapRecord

/// Why a running proxy could not be asked, or did not do what it was asked.
public enum ControlClientError: Error, Sendable, Hashable {
    /// No proxy of this user runs; sockets were looked for in this folder.
    case noProxy(String)
    /// Several run, and nobody said which is meant.
    case severalProxies([RunningProxy])
    /// Nothing can be reached at the socket, for this reason.
    case unreachable(String, String)
    /// The answer did not come within this time.
    case timeout(Duration)
    /// The connection ended before the answer was complete, for this reason if it is known.
    case ended(String?)
    /// The proxy refuses it: why, if it is a reason that is known here, what it says of it, and the answer's body.
    case refused(ControlProblem?, String, JSONValue)
    /// The answer is none of such a proxy: what is wrong with it.
    case unexpected(String)
}

extension ControlClientError: CustomStringConvertible {
    /// What happened, in one line.
    public var description: String {
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

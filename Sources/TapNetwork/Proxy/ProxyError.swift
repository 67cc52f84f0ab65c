/// The reason why a proxy cannot start or stopped: the failure, and the address that it concerns.
package struct ProxyError: Error, Sendable, Hashable {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// Other machines could reach the address, and this is not allowed.
        case remoteNotAllowed
        /// The upstream is a listener of this proxy.
        case relaysToItself(upstream: String)
        /// Another program listens on the port.
        case portInUse
        /// The user lacks the permission to listen on the port.
        case portNotAllowed
        /// This machine has neither 127.0.0.1 nor ::1.
        case noLoopback
        /// Listening failed; with the reason, mostly the operating system's error text.
        case cannotListen(String)
        /// The DNS server's name cannot be resolved.
        case unknownResolver
        /// A listener failed while the proxy was running.
        case listenerLost
    }

    /// Who has to fix the failure; it determines the exit code of the program.
    package enum Blame: Sendable, Hashable {
        /// The request is invalid: the user has to change the command line.
        case usage
        /// The network or the system prevents it.
        case network
    }

    /// The kind of failure.
    package let code: Code
    /// The address of the listener or of the DNS server, as `HOST:PORT`.
    package let address: String

    /// Who has to fix the failure.
    package var blame: Blame {
        switch code {
        case .remoteNotAllowed, .relaysToItself: .usage
        case .portInUse, .portNotAllowed, .noLoopback, .cannotListen, .unknownResolver, .listenerLost: .network
        }
    }
}

extension ProxyError: CustomStringConvertible {
    /// The failure as one line for users.
    package var description: String {
        switch code {
        case .remoteNotAllowed: "other machines can reach \(address), log in through this proxy and be recorded"
        case .relaysToItself(let upstream): "the upstream \(upstream) is this proxy itself, listening on \(address)"
        case .portInUse: "cannot listen on \(address): the port is already in use"
        case .portNotAllowed: "cannot listen on \(address): ports below 1024 need root permissions"
        case .noLoopback: "cannot listen on \(address): this machine has neither 127.0.0.1 nor ::1"
        case .cannotListen(let reason): "cannot listen on \(address): \(reason)"
        case .unknownResolver: "cannot resolve the DNS server \(address)"
        case .listenerLost: "the listener on \(address) failed"
        }
    }
}

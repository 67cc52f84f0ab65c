/// The reason why a proxy does not run: the failure, and its address.
package struct ProxyError: Error, Sendable, Hashable {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// The address would be reached by other machines, and that was not allowed.
        case remoteNotAllowed
        /// The server to relay to is a listener of this proxy.
        case relaysToItself(upstream: String)
        /// Another program listens on the port.
        case portInUse
        /// The system refuses the port to this user.
        case portNotAllowed
        /// Neither IPv4 nor IPv6 has a loopback address here.
        case noLoopback
        /// The name or address does not belong to this machine; words of the operating system.
        case cannotListen(String)
        /// The name server's name is not known.
        case unknownResolver
        /// A listener has failed while it ran.
        case listenerLost
    }

    /// The party that has to act; it determines the exit code of a program.
    package enum Blame: Sendable, Hashable {
        /// The request is invalid: change the command line.
        case usage
        /// The network or the system: something else is in the way.
        case network
    }

    /// The kind of failure.
    package let code: Code
    /// The listener's address, or the name server's, `HOST:PORT`.
    package let address: String

    /// The party that has to act.
    package var blame: Blame {
        switch code {
        case .remoteNotAllowed, .relaysToItself: .usage
        case .portInUse, .portNotAllowed, .noLoopback, .cannotListen, .unknownResolver, .listenerLost: .network
        }
    }
}

extension ProxyError: CustomStringConvertible {
    /// The failure, in one line for people.
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

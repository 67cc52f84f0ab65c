internal import Glibc
package import NIOCore

/// A TCP port for HTTP: that of the metrics, or that of the page.
package struct TCPPort: Sendable {
    /// `HOST:PORT`, with the port that the system chose for 0.
    package let address: String
    /// The address of the listening socket.
    package let socketAddress: SocketAddress
    /// Whether the port is only reachable from this machine.
    let isLoopback: Bool
    /// The listening socket. The listener that accepts connections on it closes it.
    let descriptor: Int32

    /// Listens on an address.
    ///
    /// - Parameters:
    ///   - host: The IP address.
    ///   - port: The port; 0 lets the system choose.
    /// - Throws: ``ControlError``.
    package init(host: String, port: Int) throws(ControlError) {
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        guard let address = try? SocketAddress(ipAddress: host, port: port) else {
            throw ControlError(code: .system(EADDRNOTAVAIL), place: place)
        }
        isLoopback = host.hasPrefix("127.") || host == "::1"
        let family = address.protocol == .inet6 ? AF_INET6 : AF_INET
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw ControlError(code: .system(errno), place: place) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let isBound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) == 0 }
        guard isBound, listen(descriptor, 128) == 0 else {
            let error = errno
            close(descriptor)
            throw ControlError(code: error == EADDRINUSE ? .portInUse : .system(error), place: place)
        }
        self.descriptor = descriptor
        var bound = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &bound) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        // Both address families have the port at the same offset, in network byte order.
        let chosen = withUnsafeBytes(of: &bound) { Int($0[2]) << 8 | Int($0[3]) }
        self.address = host.contains(":") ? "[\(host)]:\(chosen)" : "\(host):\(chosen)"
        socketAddress = (try? SocketAddress(ipAddress: host, port: chosen)) ?? address
    }

    /// Returns whether requests for a host, given in `Host`, are served.
    ///
    /// A web page can make its domain resolve to this machine (DNS rebinding), so a loopback port accepts only
    /// `localhost` and IP addresses. For other ports the valid names are unknown.
    func answers(host: String?) -> Bool {
        guard isLoopback else { return true }
        guard let host else { return false }
        let isIPv6 = host.hasPrefix("[")
        let name = isIPv6 ? host.dropFirst().prefix { $0 != "]" } : host.prefix { $0 != ":" }
        if name.lowercased() == "localhost" { return true }
        return (try? SocketAddress(ipAddress: String(name), port: 0)) != nil
    }
}

internal import Glibc
internal import NIOCore

/// A TCP port of the loopback interface.
enum LoopbackPort {
    enum Family: CaseIterable {
        case v4, v6

        var address: String { self == .v4 ? "127.0.0.1" : "[::1]" }
    }

    /// Tries to listen on the port, then closes it.
    ///
    /// - Returns: 0 on success, otherwise the error number.
    static func listen(_ port: UInt16, _ family: Family) -> Int32 {
        let descriptor = socket(
            family == .v4 ? AF_INET : AF_INET6,
            Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let host = family == .v4 ? "127.0.0.1" : "::1"
        let address = try? SocketAddress(ipAddress: host, port: Int(port))
        guard address?.withSockAddr({ bind(descriptor, $0, socklen_t($1)) }) == 0, Glibc.listen(descriptor, 1) == 0
        else {
            return errno
        }
        return 0
    }
}

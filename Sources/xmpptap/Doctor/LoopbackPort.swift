internal import Glibc

/// A TCP port of the loopback interface.
enum LoopbackPort {
    /// An address family.
    enum Family: CaseIterable {
        case v4, v6

        /// The loopback address.
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
        guard bind(descriptor, port, family) == 0, Glibc.listen(descriptor, 1) == 0 else { return errno }
        return 0
    }

    private static func bind(_ descriptor: Int32, _ port: UInt16, _ family: Family) -> Int32 {
        switch family {
        case .v4:
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return withSocketAddress(address) { Glibc.bind(descriptor, $0, $1) }
        case .v6:
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            return withSocketAddress(address) { Glibc.bind(descriptor, $0, $1) }
        }
    }

    private static func withSocketAddress<Address>(
        _ address: Address,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}

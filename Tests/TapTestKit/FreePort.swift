import Glibc
import Synchronization

/// TCP ports of the loopback interface on which no program listens.
package enum FreePort {
    private static let taken = Mutex<Set<UInt16>>([])

    /// Returns a port that was just free on 127.0.0.1 and ::1, each port only once in a run.
    ///
    /// The port is below the range of outgoing connections, so that none of them can use it in the meantime.
    package static func next() throws -> UInt16 {
        for _ in 0..<1000 {
            let port = UInt16.random(in: 20_000..<32_000)
            guard taken.withLock({ $0.insert(port).inserted }) else { continue }
            if isFree(port, AF_INET), isFree(port, AF_INET6) { return port }
        }
        throw KitError("no free port between 20000 and 32000")
    }

    /// Returns whether a connection to the port on 127.0.0.1 is accepted.
    package static func accepts(_ port: UInt16) -> Bool {
        with(port, AF_INET) { connect($0, $1, $2) } == 0
    }

    /// Returns whether a port is free. An address family that the machine does not support counts as free.
    private static func isFree(_ port: UInt16, _ family: Int32) -> Bool {
        let outcome = with(port, family) { descriptor, address, length in
            var yes: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            return bind(descriptor, address, length)
        }
        return outcome == 0 || outcome == EADDRNOTAVAIL || outcome == EAFNOSUPPORT
    }

    /// Calls `body` with a new socket and the loopback address of the family. Returns 0 or the error number.
    private static func with(
        _ port: UInt16,
        _ family: Int32,
        _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var storage = sockaddr_storage()
        let length: Int
        if family == AF_INET6 {
            length = MemoryLayout<sockaddr_in6>.size
        } else {
            length = MemoryLayout<sockaddr_in>.size
        }
        return withUnsafeMutableBytes(of: &storage) { bytes in
            if family == AF_INET6 {
                let address = bytes.bindMemory(to: sockaddr_in6.self)
                address[0].sin6_family = sa_family_t(family)
                address[0].sin6_port = port.bigEndian
                address[0].sin6_addr = in6addr_loopback
            } else {
                let address = bytes.bindMemory(to: sockaddr_in.self)
                address[0].sin_family = sa_family_t(family)
                address[0].sin_port = port.bigEndian
                address[0].sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            }
            let address = bytes.bindMemory(to: sockaddr.self)
            guard let base = address.baseAddress else { return EINVAL }
            return body(descriptor, base, socklen_t(length)) == 0 ? 0 : errno
        }
    }
}

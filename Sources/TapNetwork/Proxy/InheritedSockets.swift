internal import Glibc
internal import NIOCore

/// The listening sockets that a service manager opened for this process: descriptors from 3 on, announced by the
/// environment variables `LISTEN_PID` and `LISTEN_FDS` (sd_listen_fds(3)).
///
/// A listener with the address and port of such a socket uses that socket. Connections that arrived before the program was
/// ready wait in it, and the program needs no right to the port.
package struct InheritedSockets: Sendable {
    /// More than any unit file lists; a number beyond it is not believed.
    private static let most: Int32 = 1024
    private static let first: Int32 = 3

    private var sockets: [(descriptor: Int32, address: SocketAddress)] = []

    /// None.
    package init() {}

    /// Finds the sockets that `environment` announces to this process. Other descriptors than listening IP sockets are
    /// left alone.
    ///
    /// - Parameter environment: The value of a variable; nil if it is not set.
    package init(environment: (String) -> String?) {
        guard environment("LISTEN_PID").flatMap(Int32.init) == getpid(),
            let count = environment("LISTEN_FDS").flatMap(Int32.init), (1...Self.most).contains(count)
        else { return }
        for descriptor in Self.first..<(Self.first + count) {
            guard let address = Self.listeningAddress(of: descriptor) else { continue }
            // No program that this one starts should hold the port.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            sockets.append((descriptor, address))
        }
    }

    /// The addresses of the sockets that have not been taken.
    var addresses: [SocketAddress] { sockets.map(\.address) }

    /// Hands over the socket that listens at `address`; nil if there is none. It belongs to the caller from then on.
    mutating func take(_ address: SocketAddress) -> Int32? {
        guard let index = sockets.firstIndex(where: { $0.address == address }) else { return nil }
        return sockets.remove(at: index).descriptor
    }

    private static func listeningAddress(of descriptor: Int32) -> SocketAddress? {
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0 else {
            return nil
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress else { return Int32(-1) }
            return getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard result == 0 else { return nil }
        let family = Int32(storage.ss_family)
        return withUnsafeBytes(of: &storage) { bytes in
            switch family {
            case AF_INET: SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self))
            case AF_INET6: SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self))
            default: nil
            }
        }
    }
}

internal import Glibc
internal import NIOCore

/// Listening sockets that a service manager opened for this process: file descriptors from 3 on, announced by the
/// environment variables `LISTEN_PID` and `LISTEN_FDS` (sd_listen_fds(3)).
///
/// A listener uses the socket that has its address and port. Connections that arrived before the program was ready wait
/// in the socket's queue, and the program needs no privilege for the port.
package struct InheritedSockets: Sendable {
    /// Maximum credible value of `LISTEN_FDS`; larger values are ignored.
    private static let maximumCount: Int32 = 1024
    private static let first: Int32 = 3

    private var sockets: [(descriptor: Int32, address: SocketAddress)] = []

    package init() {}

    /// Finds the sockets that the environment announces to this process. Descriptors that are not listening IP sockets
    /// are ignored.
    ///
    /// - Parameter environment: Returns the value of a variable; nil if it is not set.
    package init(environment: (String) -> String?) {
        guard environment("LISTEN_PID").flatMap(Int32.init) == getpid(),
            let count = environment("LISTEN_FDS").flatMap(Int32.init), (1...Self.maximumCount).contains(count)
        else { return }
        for descriptor in Self.first..<(Self.first + count) {
            guard let address = Self.listeningAddress(of: descriptor) else { continue }
            // Child processes must not keep the port open.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            sockets.append((descriptor, address))
        }
    }

    /// The addresses of the sockets that no listener has taken.
    var addresses: [SocketAddress] { sockets.map(\.address) }

    /// Removes and returns the socket that listens on `address`; nil if there is none. The caller must close it.
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

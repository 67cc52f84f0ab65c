package import Glibc
import Synchronization

/// A TCP or Unix connection without a protocol above it: tests control what it sends and how it ends.
///
/// It never blocks for long and never raises SIGPIPE. It is closed when the last reference is released.
package final class RawConnection: Sendable {
    private let descriptor: Mutex<Int32>

    init(descriptor: Int32) {
        self.descriptor = Mutex(descriptor)
    }

    /// Connects to a port of 127.0.0.1. The source address is 127.0.0.1 or another address that begins with 127.
    package convenience init(port: UInt16, from source: String? = nil) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw KitError("no socket: errno \(errno)") }
        if let source, LoopbackAddress.with(0, host: source, { Glibc.bind(descriptor, $0, $1) }) != 0 {
            let error = errno
            Glibc.close(descriptor)
            throw KitError("cannot connect from \(source): errno \(error)")
        }
        guard LoopbackAddress.with(port, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            let error = errno
            Glibc.close(descriptor)
            throw KitError("cannot connect to port \(port): errno \(error)")
        }
        self.init(descriptor: descriptor)
    }

    /// Connects to a Unix socket.
    package convenience init(path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let outcome = withUnsafeBytes(of: &address) { bytes in
            bytes.assumingMemoryBound(to: sockaddr.self).baseAddress.map {
                Glibc.connect(descriptor, $0, socklen_t(bytes.count))
            }
        }
        guard outcome == 0 else {
            let error = errno
            Glibc.close(descriptor)
            throw KitError("cannot connect to \(path): errno \(error)")
        }
        self.init(descriptor: descriptor)
    }

    deinit { close() }

    /// The local port.
    package var localPort: UInt16 {
        get throws {
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let outcome = withDescriptor { descriptor in
                withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
                }
            }
            guard outcome == 0 else { throw KitError("no port: errno \(errno)") }
            return UInt16(bigEndian: address.sin_port)
        }
    }

    /// Writes bytes. Returns the number of bytes written before the peer closed the connection, or did not read for
    /// `patience`.
    @discardableResult
    package func write(_ bytes: [UInt8], patience: Duration = .seconds(10)) async throws -> Int {
        var taken = 0
        var last = ContinuousClock.now
        while taken < bytes.count {
            let count = withDescriptor { descriptor in
                bytes[taken..<min(bytes.count, taken + 262_144)].withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Self.flags)
                }
            }
            if count > 0 {
                taken += count
                last = .now
            } else if count < 0, errno == EAGAIN || errno == EINTR {
                guard ContinuousClock.now - last < patience else { return taken }
                try await Task.sleep(for: .milliseconds(1))
            } else {
                return taken
            }
        }
        return taken
    }

    /// Writes a text.
    @discardableResult
    package func write(_ text: String) async throws -> Int { try await write(Array(text.utf8)) }

    /// Reads until the data suffices, the peer closes the connection, or the time is up. Returns the received data.
    package func read(
        within limit: Duration = .seconds(20),
        until isEnough: ([UInt8]) -> Bool
    ) async throws -> (bytes: [UInt8], end: End) {
        let deadline = ContinuousClock.now + limit
        var bytes: [UInt8] = []
        while !isEnough(bytes) {
            switch look() {
            case .bytes(let more): bytes += more
            case .end(let end): return (bytes, end)
            case .nothing:
                guard ContinuousClock.now < deadline else { return (bytes, .silent) }
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        return (bytes, .enough)
    }

    /// The reason why reading stopped.
    package enum End: Sendable {
        /// The expected data has arrived.
        case enough
        /// The peer has closed its direction (FIN).
        case finished
        /// The peer reset the connection.
        case reset
        /// The time limit has passed.
        case silent
    }

    /// Reads until a text has arrived.
    ///
    /// - Throws: ``KitError`` if the text does not arrive.
    @discardableResult
    package func read(through text: String, within limit: Duration = .seconds(20)) async throws -> String {
        let wanted = Array(text.utf8)
        let (bytes, end) = try await read(within: limit) { $0.firstRange(of: wanted) != nil }
        let got = String(decoding: bytes, as: UTF8.self)
        guard end == .enough else { throw KitError("no \(text) but \(end) after: \(got.suffix(2000))") }
        return got
    }

    /// Reads and discards data until the peer closes the connection or the time is up. Returns the number of bytes.
    package func drain(within limit: Duration = .seconds(60)) async throws -> (count: Int, end: End) {
        let deadline = ContinuousClock.now + limit
        var count = 0
        while true {
            switch look() {
            case .bytes(let more): count += more.count
            case .end(let end): return (count, end)
            case .nothing:
                guard ContinuousClock.now < deadline else { return (count, .silent) }
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    private enum Look {
        case bytes([UInt8])
        case end(End)
        case nothing
    }

    private func look() -> Look {
        var count = 0
        let buffer = withDescriptor { descriptor in
            [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
                count = recv(descriptor, buffer.baseAddress, buffer.count, Self.flags)
                initialized = max(0, count)
            }
        }
        if count > 0 { return .bytes(buffer) }
        if count == 0 { return .end(.finished) }
        return errno == EAGAIN || errno == EINTR ? .nothing : .end(.reset)
    }

    /// Closes the sending direction (FIN).
    package func finish() {
        withDescriptor { _ = shutdown($0, Int32(SHUT_WR)) }
    }

    /// Closes the connection; the system resets it if there are unread bytes.
    package func close() {
        descriptor.withLock {
            if $0 >= 0 { Glibc.close($0) }
            $0 = -1
        }
    }

    /// Resets the connection (RST).
    package func reset() {
        withDescriptor {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt($0, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        }
        close()
    }

    private func withDescriptor<Result>(_ body: (Int32) -> Result) -> Result {
        descriptor.withLock { body($0) }
    }

    private static let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
}

/// A port of a loopback address on which a test accepts connections explicitly.
package final class RawListener: Sendable {
    package let port: UInt16
    private let descriptor: Int32

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - host: A loopback address: `127.0.0.1`, another that begins with 127, or `::1`.
    ///   - port: The port; a free one by default.
    ///   - backlog: The backlog of the socket; one more connection than this number may wait to be accepted.
    ///   - room: The size of the system's receive buffer of each connection, in bytes; nil uses the default of the
    ///     system.
    package init(host: String = "127.0.0.1", port: UInt16? = nil, backlog: Int32 = 64, room: Int32? = nil) throws {
        let port = try port ?? FreePort.next()
        let descriptor = socket(
            host == "::1" ? AF_INET6 : AF_INET,
            Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
            0
        )
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        if var room { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size)) }
        guard descriptor >= 0, LoopbackAddress.with(port, host: host, { bind(descriptor, $0, $1) }) == 0,
            listen(descriptor, backlog) == 0
        else { throw KitError("cannot listen on port \(port) of \(host): errno \(errno)") }
        self.port = port
        self.descriptor = descriptor
    }

    deinit { Glibc.close(descriptor) }

    /// Accepts the next connection.
    package func accept(within limit: Duration = .seconds(20)) async throws -> RawConnection {
        let deadline = ContinuousClock.now + limit
        while ContinuousClock.now < deadline {
            let accepted = Glibc.accept(descriptor, nil, nil)
            if accepted >= 0 {
                // Programs that a test starts must not inherit the connection and keep it open.
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                return RawConnection(descriptor: accepted)
            }
            try await Task.sleep(for: .milliseconds(1))
        }
        throw KitError("nobody connected to port \(port) in \(limit)")
    }
}

/// Loopback addresses for system calls.
package enum LoopbackAddress {
    /// Calls `body` with a port and a loopback address, 127.0.0.1 by default.
    package static func with<Result>(
        _ port: UInt16,
        host: String = "127.0.0.1",
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        guard host != "::1" else {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

internal import Glibc
internal import NIOCore
internal import NIOPosix

// Socket options of both legs.
extension Channel {
    /// Configures the channel as a leg: it reads only on request, supports half-closure, and its read buffer grows with
    /// the traffic. Call it on the event loop, before the channel is active.
    ///
    /// Other options are set when the channel is created. Accepted connections inherit from the listener the options
    /// that would cost a system call each. One of them is keep-alive: without it, a proxy would not notice that a
    /// peer's machine is unreachable. NIO sets TCP_NODELAY.
    func becomeLeg() throws {
        guard let options = syncOptions else { return }
        try options.setOption(.autoRead, value: false)
        try options.setOption(.allowRemoteHalfClosure, value: true)
        // NIO reuses the size of the last read buffer for the next one, and doubles it when reads fill it. It starts
        // small, so that idle legs use little memory.
        try options.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 1024, maximum: 65536)
        )
    }

    /// Closes the sending side, and the connection after two seconds, if the peer does not close it before.
    ///
    /// If the connection were closed at once, with unread bytes, the system would send an RST, and the peer could lose the
    /// answer that was sent before.
    func closeAfterAnswer() {
        close(mode: .output, promise: nil)
        try? syncOptions?.setOption(.autoRead, value: true)
        eventLoop.assumeIsolated().scheduleTask(in: .seconds(2)) { self.close(promise: nil) }
    }

    /// Makes the next close a reset: unsent data is discarded, and the peer gets an RST.
    func resetOnClose() {
        _ = (self as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }

    /// Number of written bytes that the system has not accepted yet.
    var unsentBytes: Int { (try? syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }
}

extension ClientBootstrap {
    /// Creates a bootstrap for connections that become legs, on this event loop.
    static func leg(on eventLoop: any EventLoop, timeout: TimeAmount) -> ClientBootstrap {
        ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try channel.becomeLeg() } }
    }
}

extension SocketAddress {
    /// `HOST:PORT`, an IPv6 address in brackets; nil if the address has no port.
    var endpoint: Endpoint? {
        guard let host = ipAddress, let port else { return nil }
        return Endpoint(host: host, port: port)
    }

    /// Whether the address can be reached only from this machine.
    var isLoopback: Bool {
        guard let ipAddress else { return true }
        // `::ffff:127.` begins IPv4-mapped loopback addresses.
        return ipAddress == "::1" || ipAddress.hasPrefix("127.") || ipAddress.hasPrefix("::ffff:127.")
    }

    /// Whether this is the wildcard address, which means all addresses of this machine.
    var isWildcard: Bool { ipAddress == "0.0.0.0" || ipAddress == "::" }
}

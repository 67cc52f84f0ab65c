internal import Glibc
internal import NIOCore
internal import NIOPosix

// Options of the sockets of both legs.
extension Channel {
    /// Makes this channel a leg: read only on request, half-closed as its peer does, with buffers that grow with the
    /// traffic. Call on the event loop, before the channel is active.
    ///
    /// Other options are set when the channel is created. Accepted connections inherit from the listener the options
    /// that would cost a system call each: keep-alive, without which a side behind a proxy would not notice that the
    /// other's machine is gone. NIO sets TCP_NODELAY.
    func becomeLeg() throws {
        guard let options = syncOptions else { return }
        try options.setOption(.autoRead, value: false)
        try options.setOption(.allowRemoteHalfClosure, value: true)
        // NIO keeps the buffer of the last read for the next: small while there is little to read, doubled as reads fill
        // it, so that an idle leg holds little.
        try options.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 1024, maximum: 65536)
        )
    }

    /// Makes the next close a reset: unsent data is discarded, and the peer gets an RST.
    func resetOnClose() {
        _ = (self as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }

    /// Bytes written that the system has not taken.
    var unsentBytes: Int { (try? syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }
}

extension ClientBootstrap {
    /// Makes connections that are legs, on this event loop.
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

    /// Whether only this machine reaches it.
    var isLoopback: Bool {
        guard let ipAddress else { return true }
        // The second is how IPv6 writes the addresses of IPv4.
        return ipAddress == "::1" || ipAddress.hasPrefix("127.") || ipAddress.hasPrefix("::ffff:127.")
    }

    /// Whether it is the wildcard address, for all addresses of this machine.
    var isWildcard: Bool { ipAddress == "0.0.0.0" || ipAddress == "::" }
}

internal import Glibc
internal import NIOCore

// The destination of connections that netfilter redirects to this machine.
extension Channel {
    /// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` in the headers of Linux, which Swift cannot import.
    private static var option: NIOBSDSocket.Option { NIOBSDSocket.Option(rawValue: 80) }

    /// The destination to which the peer has connected, before the system redirected the connection to the local address;
    /// nil if the system does not know it. Without a redirection it is the local address, or nil. Call it on the event
    /// loop.
    var originalDestination: SocketAddress? {
        guard let provider = self as? any SocketOptionProvider else { return nil }
        switch localAddress {
        case .v4:
            return Self.value(of: provider.unsafeGetSocketOption(level: .ip, name: Self.option), sockaddr_in.self)
                .map { SocketAddress($0) }
        case .v6:
            return Self.value(of: provider.unsafeGetSocketOption(level: .ipv6, name: Self.option), sockaddr_in6.self)
                .map { SocketAddress($0) }
        case .unixDomainSocket, nil: return nil
        }
    }

    /// Returns the value of a future that is complete already, as options are on the event loop.
    private static func value<Value: Sendable>(of future: EventLoopFuture<Value>, _: Value.Type) -> Value? {
        var value: Value?
        future.assumeIsolated().whenSuccess { value = $0 }
        return value
    }

    /// Makes an IPv6 socket not accept IPv4 connections. Other sockets are not changed.
    func separateIPv6() {
        guard let provider = self as? any SocketOptionProvider else { return }
        provider.unsafeSetSocketOption(level: .ipv6, name: .ipv6_v6only, value: CInt(1)).whenFailure { _ in }
    }
}

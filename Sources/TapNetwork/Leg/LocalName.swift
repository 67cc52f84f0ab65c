internal import NIOCore
internal import NIOPosix

/// `localhost` or a name under it; these always mean this machine. They are never looked up (RFC 6761 §6.3), not even
/// by the system, whose hosts file may be missing.
struct LocalName: Sendable {
    private static let hosts = (v4: "127.0.0.1", v6: "::1")

    /// Parses a name; nil if it is not local. A trailing dot is ignored.
    init?(_ name: String) {
        var name = name.lowercased()[...]
        if name.hasSuffix(".") { name = name.dropLast() }
        guard name == "localhost" || name.hasSuffix(".localhost") else { return nil }
    }

    /// Returns the loopback addresses in the order in which to try them: IPv6 before IPv4 (RFC 6724 §10.3).
    func addresses(port: Int) -> [SocketAddress] {
        [Self.hosts.v6, Self.hosts.v4].compactMap { try? SocketAddress(ipAddress: $0, port: port) }
    }
}

/// Resolves one ``LocalName`` immediately, so that a bootstrap tries both addresses without a lookup.
final class LocalResolver: Resolver, Sendable {
    private let eventLoop: any EventLoop
    private let name: LocalName

    init(_ name: LocalName, on eventLoop: any EventLoop) {
        self.name = name
        self.eventLoop = eventLoop
    }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { answer(.inet, port) }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { answer(.inet6, port) }

    func cancelQueries() {}

    private func answer(_ family: NIOBSDSocket.ProtocolFamily, _ port: Int) -> EventLoopFuture<[SocketAddress]> {
        eventLoop.makeSucceededFuture(name.addresses(port: port).filter { $0.protocol == family })
    }
}

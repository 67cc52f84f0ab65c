internal import NIOCore

/// The addresses that result from a ``ListenSpec``.
struct ListenerAddresses {
    /// The addresses to bind to; both of a pair have the same port.
    let addresses: [SocketAddress]
    /// Whether these are both loopback addresses, one of which may be missing on this machine.
    let isPair: Bool

    /// Resolves the host. Without a host, or with a local name, the result is both loopback addresses.
    init(_ spec: ListenSpec) async throws(ProxyError) {
        guard let host = spec.host, LocalName(host) == nil else {
            addresses = ["127.0.0.1", "::1"].compactMap { try? SocketAddress(ipAddress: $0, port: spec.port) }
            isPair = true
            return
        }
        isPair = false
        let found = await SystemNames.lookUp(Endpoint(host: host, port: spec.port))
        guard let first = found.first else {
            throw ProxyError(
                code: .cannotListen("cannot resolve \"\(host)\""),
                address: Endpoint(host: host, port: spec.port).description
            )
        }
        addresses = [first]
    }
}

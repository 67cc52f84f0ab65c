internal import NIOCore

/// The addresses of a ``ListenSpec``.
struct ListenerAddresses {
    /// Where to bind; of a pair the port is the same.
    let addresses: [SocketAddress]
    /// Whether one of them may be missing on this machine.
    let isPair: Bool

    /// Looks the host up; without one, or with a name of this machine, it is both loopback addresses.
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

internal import Glibc
internal import NIOCore
internal import NIOPosix

/// The addresses a ``ListenSpec`` stands for.
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
        let found = await Self.lookUp(Endpoint(host: host, port: spec.port))
        guard let first = found.first else {
            throw ProxyError(
                code: .cannotListen("cannot resolve \"\(host)\""),
                address: Endpoint(host: host, port: spec.port).description
            )
        }
        addresses = [first]
    }

    /// All addresses of a name, or the address itself; empty if it cannot be resolved. Blocks a thread of NIO's pool.
    static func lookUp(_ endpoint: Endpoint) async -> [SocketAddress] {
        if let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port) { return [address] }
        let found = try? await NIOThreadPool.singleton.runIfActive { resolve(endpoint) }
        return found ?? []
    }

    /// The same of a name, blocking. The system is asked, except for names of this machine.
    static func resolve(_ endpoint: Endpoint) -> [SocketAddress] {
        if let name = LocalName(endpoint.host) { return name.addresses(port: endpoint.port) }
        return SystemNames.addresses(of: endpoint.host).compactMap {
            try? SocketAddress(ipAddress: $0, port: endpoint.port)
        }
    }
}

/// What the system says of names, by its hosts file and its name servers.
public enum SystemNames {
    /// The addresses of a name, each once, as numbers; empty if it cannot be resolved. Blocks.
    public static func addresses(of name: String) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var entry = list
        while let current = entry?.pointee {
            var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let status = getnameinfo(
                current.ai_addr,
                current.ai_addrlen,
                &host,
                socklen_t(host.count),
                nil,
                0,
                NI_NUMERICHOST
            )
            let text = String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if status == 0, !addresses.contains(text) { addresses.append(text) }
            entry = current.ai_next
        }
        return addresses
    }
}

extension SocketAddress {
    /// Whether a connection to `target` would come to a listener bound to this address.
    func accepts(_ target: SocketAddress) -> Bool {
        guard port == target.port, port != 0 else { return false }
        // A connection to the address of all addresses goes to the machine itself.
        if target.isWildcard { return isWildcard || isLoopback }
        guard isWildcard else { return ipAddress == target.ipAddress }
        if target.isLoopback { return true }
        let own = (try? System.enumerateDevices()) ?? []
        return own.contains { $0.address?.ipAddress == target.ipAddress }
    }

    func with(port: Int) -> SocketAddress {
        var copy = self
        copy.port = port
        return copy
    }
}

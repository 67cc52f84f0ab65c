internal import Glibc
internal import NIOCore
internal import NIOPosix

/// Name lookups by the system, with its hosts file and its name servers.
package enum SystemNames {
    /// Returns all addresses of a name, or the IP address itself; empty if it cannot be resolved. Blocks a thread of
    /// NIO's pool.
    static func lookUp(_ endpoint: Endpoint) async -> [SocketAddress] {
        if let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port) { return [address] }
        let found = try? await NIOThreadPool.singleton.runIfActive { resolve(endpoint) }
        return found ?? []
    }

    /// Returns all addresses of a name, blocking. Local names are not looked up.
    static func resolve(_ endpoint: Endpoint) -> [SocketAddress] {
        if let name = LocalName(endpoint.host) { return name.addresses(port: endpoint.port) }
        return addresses(of: endpoint.host).compactMap {
            try? SocketAddress(ipAddress: $0, port: endpoint.port)
        }
    }

    /// Returns the distinct addresses of a name as text; empty if it cannot be resolved. Blocks.
    package static func addresses(of name: String) -> [String] {
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
    /// Returns whether a connection to `target` would reach a listener bound to this address.
    func accepts(_ target: SocketAddress) -> Bool {
        guard port == target.port, port != 0 else { return false }
        // A connection to the wildcard address reaches this machine.
        if target.isWildcard { return isWildcard || isLoopback }
        guard isWildcard else { return ipAddress == target.ipAddress }
        if target.isLoopback { return true }
        let own = (try? System.enumerateDevices()) ?? []
        return own.contains { $0.address?.ipAddress == target.ipAddress }
    }

    /// Whether this is an address of this machine.
    var isOfThisMachine: Bool {
        isLoopback || ((try? System.enumerateDevices()) ?? []).contains { $0.address?.ipAddress == ipAddress }
    }

    func with(port: Int) -> SocketAddress {
        var copy = self
        copy.port = port
        return copy
    }
}

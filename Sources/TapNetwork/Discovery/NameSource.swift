internal import CResolv
internal import NIOCore

/// A source of names. Its methods block.
protocol NameSource: Sendable {
    /// Returns the SRV records of a name; empty if the name or record does not exist.
    func servers(_ name: String) throws(LookupFault) -> [DNSReply.Server]
    /// Returns the TLSA records of a name; empty if the name or record does not exist.
    func associations(_ name: String) throws(LookupFault) -> [DNSReply.Association]
    /// Returns the addresses of a host with this port, in the order to try them; empty if the name does not exist.
    func addresses(_ host: String, port: Int) throws(LookupFault) -> [SocketAddress]
}

/// A failed lookup: it is unknown whether the name exists.
struct LookupFault: Error, Sendable, Hashable {
    /// The failure, as a human-readable clause.
    var message: String
}

/// DNS lookups by the C library's resolver, with a given name server or with the system's.
struct NameServers: NameSource {
    /// Maximum size of a DNS reply over TCP.
    private static let maximumReplyBytes = 65535

    /// The given name server; nil uses the system's.
    let server: SocketAddress?

    func servers(_ name: String) throws(LookupFault) -> [DNSReply.Server] { try ask(name, .srv)?.servers ?? [] }

    func associations(_ name: String) throws(LookupFault) -> [DNSReply.Association] {
        try ask(name, .tlsa)?.associations ?? []
    }

    func addresses(_ host: String, port: Int) throws(LookupFault) -> [SocketAddress] {
        let endpoint = Endpoint(host: host, port: port)
        if let address = try? SocketAddress(ipAddress: host, port: port) { return [address] }
        if let name = LocalName(host) { return name.addresses(port: port) }
        // Ask the system: it also knows names that are not in the DNS, such as those of the hosts file, and it sorts
        // addresses.
        guard server != nil else { return SystemNames.resolve(endpoint) }
        var found: [SocketAddress] = []
        var fault: LookupFault?
        for type in [DNSReply.RecordType.aaaa, .a] {
            do throws(LookupFault) {
                for bytes in try ask(host, type)?.addresses ?? [] {
                    let packed = ByteBuffer(bytes: bytes)
                    if let address = try? SocketAddress(packedIPAddress: packed, port: port) { found.append(address) }
                }
            } catch {
                fault = error
            }
        }
        if found.isEmpty, let fault { throw fault }
        return found
    }

    /// Returns the reply; nil if the name or record does not exist.
    private func ask(_ name: String, _ type: DNSReply.RecordType) throws(LookupFault) -> DNSReply? {
        var answer = [UInt8](repeating: 0, count: Self.maximumReplyBytes)
        var fault: Int32 = 0
        let address = server?.packedAddress ?? []
        let length = xmpptap_resolve(
            name,
            Int32(type.rawValue),
            address,
            Int32(address.count),
            Int32(server?.port ?? 0),
            &answer,
            Int32(answer.count),
            &fault
        )
        guard length >= 0 else {
            // h_errno: HOST_NOT_FOUND and NO_DATA.
            if fault == 1 || fault == 4 { return nil }
            let who = server?.endpoint.map { "the DNS server \($0)" } ?? "the DNS server"
            throw LookupFault(message: fault == 2 ? "\(who) does not answer" : "\(who) answered with an error")
        }
        do {
            return try DNSReply(Array(answer.prefix(Int(length))))
        } catch {
            throw LookupFault(message: "malformed reply from the DNS server (\(error))")
        }
    }
}

extension SocketAddress {
    /// The 4 or 16 bytes of the IP address; empty for a Unix socket.
    var packedAddress: [UInt8] {
        switch self {
        // The address follows the family and the port; in IPv6 the flow information too.
        case .v4(let address): withUnsafeBytes(of: address.address) { Array($0.dropFirst(4).prefix(4)) }
        case .v6(let address): withUnsafeBytes(of: address.address) { Array($0.dropFirst(8).prefix(16)) }
        case .unixDomainSocket: []
        }
    }
}

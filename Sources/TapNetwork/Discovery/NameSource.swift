internal import CResolv
internal import NIOCore

/// A source of names. Its methods block.
protocol NameSource: Sendable {
    /// Returns the SRV records of a name; empty if the name or record does not exist.
    func servers(_ name: String) throws(LookupFault) -> [DNSReply.Server]
    /// Returns the addresses of a host with this port, in the order to try them; empty if the name does not exist.
    func addresses(_ host: String, port: Int) throws(LookupFault) -> [SocketAddress]
}

/// A name could not be looked up, so that nothing is known of it.
struct LookupFault: Error, Sendable, Hashable {
    /// The failure, as a clause for people.
    var words: String
}

/// Name servers, asked by the C library's resolver: one that was named, or those of the system.
struct NameServers: NameSource {
    /// A TCP reply cannot be longer.
    private static let mostReplyBytes = 65535

    /// The one that was named.
    let server: SocketAddress?

    func servers(_ name: String) throws(LookupFault) -> [DNSReply.Server] { try ask(name, .srv)?.servers ?? [] }

    func addresses(_ host: String, port: Int) throws(LookupFault) -> [SocketAddress] {
        let endpoint = Endpoint(host: host, port: port)
        if let address = try? SocketAddress(ipAddress: host, port: port) { return [address] }
        if let name = LocalName(host) { return name.addresses(port: port) }
        // The system knows names that are in no DNS, of its hosts file for one, and how to sort what it finds.
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
        var answer = [UInt8](repeating: 0, count: Self.mostReplyBytes)
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
            // h_errno: no such name, and no such record.
            if fault == 1 || fault == 4 { return nil }
            let who = server?.endpoint.map { "the DNS server \($0)" } ?? "the DNS server"
            throw LookupFault(words: fault == 2 ? "\(who) does not answer" : "\(who) answered with an error")
        }
        do {
            return try DNSReply(Array(answer.prefix(Int(length))))
        } catch {
            throw LookupFault(words: "malformed reply from the DNS server (\(error))")
        }
    }
}

extension SocketAddress {
    /// The 4 or 16 bytes of an IP address.
    var packedAddress: [UInt8] {
        switch self {
        // Behind family and port; in IPv6 also behind the flow.
        case .v4(let address): withUnsafeBytes(of: address.address) { Array($0.dropFirst(4).prefix(4)) }
        case .v6(let address): withUnsafeBytes(of: address.address) { Array($0.dropFirst(8).prefix(16)) }
        case .unixDomainSocket: []
        }
    }
}

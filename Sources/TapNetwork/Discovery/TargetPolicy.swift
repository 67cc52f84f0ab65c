internal import NIOCore

/// Which addresses a connection to a domain's server may go to.
///
/// Whoever owns a domain says in the DNS where its servers are, and could so have this program connect to what only this
/// machine reaches. An address of this machine is therefore refused where an SRV record led to it, unless the domain is
/// one of this machine (`localhost`) or the name server was named and is on this machine too. Addresses of the link,
/// among which clouds have their metadata services, and those that are no host's are refused wherever they come from.
struct TargetPolicy: Sendable {
    /// Whether SRV records of any domain may lead to this machine.
    let allowsLoopback: Bool

    /// A policy for names that are asked of this server; nil is the system's.
    init(resolver: SocketAddress?) { allowsLoopback = resolver?.isLoopback ?? false }

    /// Whether a domain is one of this machine (RFC 6761 §6.3).
    static func isLocal(_ domain: String) -> Bool {
        if LocalName(domain) != nil { return true }
        let literal = domain.hasPrefix("[") ? String(domain.dropFirst().dropLast()) : domain
        return (try? SocketAddress(ipAddress: literal, port: 0))?.isLoopback ?? false
    }

    /// Why connecting to an address is not allowed; nil if it is.
    func refusal(of address: SocketAddress, domain: String, isFromRecord: Bool) -> String? {
        var bytes = address.packedAddress
        // IPv4 in IPv6: mapped, and through the gateways of RFC 6052.
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        let translated: [UInt8] = [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]
        if bytes.count == 16, bytes.starts(with: mapped) || bytes.starts(with: translated) {
            bytes.removeFirst(12)
        }
        switch (bytes.count, bytes.first ?? 0) {
        case (4, 0), (4, 224...): return "not a unicast address"
        case (4, 169) where bytes[1] == 254: return "a link-local address"
        case (4, 127): return loopback(domain, isFromRecord)
        case (4, _): return nil
        case (16, 0xFF): return "not a unicast address"
        case (16, 0xFE) where bytes[1] & 0xC0 == 0x80: return "a link-local address"
        case (16, 0xFD) where bytes.starts(with: [0xFD, 0x00, 0x0E, 0xC2]):
            return "the address of a cloud metadata service"
        case (16, 0) where bytes.dropLast().allSatisfy { $0 == 0 }:
            return bytes.last == 1 ? loopback(domain, isFromRecord) : "not a unicast address"
        case (16, _): return nil
        default: return "not an IP address"
        }
    }

    private func loopback(_ domain: String, _ isFromRecord: Bool) -> String? {
        guard isFromRecord, !allowsLoopback, !Self.isLocal(domain) else { return nil }
        return "a loopback address, which DNS records of \(domain) must not contain"
    }
}

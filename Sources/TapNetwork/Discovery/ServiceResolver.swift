internal import NIOCore
internal import TapSecurity

/// Finds the servers of a domain for clients, or for servers of other domains (RFC 6120 §3.2, XEP-0368): by SRV records,
/// or if there are none, by the domain's own addresses and the usual port.
///
/// Its methods block until the name server answers.
struct ServiceResolver: Sendable {
    /// The source of the names.
    let names: any NameSource
    /// The policy that decides which addresses may be connected to.
    let policy: TargetPolicy
    /// Whether a name server was given. If so, local names such as `localhost` are looked up too.
    let isNamed: Bool
    /// The peers of the servers that are looked up.
    var peers = ServerReference.Service.clients
}

extension ServiceResolver {
    /// Creates a resolver that asks the given name server; nil uses the system's.
    init(server: SocketAddress?, peers: ServerReference.Service = .clients) {
        self.init(
            names: NameServers(server: server),
            policy: TargetPolicy(resolver: server),
            isNamed: server != nil,
            peers: peers
        )
    }

    /// Returns whether SRV records of a domain are looked up: never for IP addresses, and for `localhost` only if a
    /// name server was given.
    func asksForRecords(of domain: String) -> Bool {
        !Self.isLiteral(domain) && (isNamed || !TargetPolicy.isLocal(domain))
    }

    /// Looks up the SRV records of one service of a domain. `domain` is in ASCII.
    func records(_ service: ServiceRecord.Service, of domain: String) throws(LookupFault) -> [ServiceRecord] {
        try names.servers("\(service.labels(for: peers)).\(domain)").map {
            ServiceRecord(
                service: service,
                priority: $0.priority,
                weight: $0.weight,
                port: $0.port,
                target: $0.target
            )
        }
    }

    /// Looks up the addresses of a server. Returns the usable ones, and those that the policy refuses, with the reason.
    func addresses(
        of server: ServiceRecord,
        domain: String,
        isFromRecord: Bool
    ) throws(LookupFault) -> NameResolver.Addresses {
        let host = server.target.hasPrefix("[") ? String(server.target.dropFirst().dropLast()) : server.target
        var found = NameResolver.Addresses()
        for address in try names.addresses(host, port: Int(server.port)) {
            if let why = policy.refusal(of: address, domain: domain, isFromRecord: isFromRecord) {
                found.refused.append((address, why))
            } else {
                found.usable.append(address)
            }
        }
        if peers == .servers, !Self.isLiteral(host) {
            found.associations = (try? names.associations("_\(server.port)._tcp.\(host)")) ?? []
        }
        return found
    }

    private static func isLiteral(_ domain: String) -> Bool {
        domain.hasPrefix("[") || (try? SocketAddress(ipAddress: domain, port: 0)) != nil
    }
}

/// The result of the SRV lookups for a domain's two services.
enum ServiceChoice: Sendable, Hashable {
    /// Servers in the order in which to try them.
    case servers([ServiceRecord])
    /// The domain says that it has no service for clients (`.`): its own address must not be tried either.
    case refused
    /// The domain has no SRV records: its own address and the standard port are tried.
    case fallback
    /// A name server did not answer. Records may exist, so the domain's own address is not tried.
    case failed(LookupFault)

    /// Combines the answers for both services.
    ///
    /// A `.` for direct TLS does not affect the other service: if that one has no records, the domain's own address is
    /// tried.
    init(
        clear: Result<[ServiceRecord], LookupFault>,
        tls: Result<[ServiceRecord], LookupFault>,
        using generator: inout some RandomNumberGenerator
    ) {
        let found = [clear, tls].flatMap { (try? $0.get()) ?? [] }
        let servers = found.filter { !$0.isRefusal }
        guard servers.isEmpty else {
            self = .servers(servers.arranged(using: &generator))
            return
        }
        if found.contains(where: { $0.service == .clear }) {
            self = .refused
        } else if case .failure(let fault) = clear {
            self = .failed(fault)
        } else if case .failure(let fault) = tls {
            self = .failed(fault)
        } else {
            self = .fallback
        }
    }
}

/// Decides which addresses may be connected to for a domain.
///
/// The owner of a domain publishes its servers in the DNS, and could direct this program to services that only this
/// machine can reach. A loopback address from an SRV record is therefore refused, unless the domain is local
/// (`localhost`), or the name server was given by the user and is on this machine too. Link-local addresses, which
/// include the metadata services of clouds, and addresses that are not unicast are always refused.
struct TargetPolicy: Sendable {
    /// Whether SRV records of any domain may point to this machine.
    let allowsLoopback: Bool

    /// Creates the policy for names looked up with this name server; nil is the system's.
    init(resolver: SocketAddress?) { allowsLoopback = resolver?.isLoopback ?? false }

    /// Returns whether a domain is local to this machine (RFC 6761 §6.3).
    static func isLocal(_ domain: String) -> Bool {
        if LocalName(domain) != nil { return true }
        let literal = domain.hasPrefix("[") ? String(domain.dropFirst().dropLast()) : domain
        return (try? SocketAddress(ipAddress: literal, port: 0))?.isLoopback ?? false
    }

    /// Returns why connecting to an address is not allowed; nil if it is allowed.
    func refusal(of address: SocketAddress, domain: String, isFromRecord: Bool) -> String? {
        var bytes = address.packedAddress
        // Check an IPv4 address inside an IPv6 address: IPv4-mapped, or translated (RFC 6052).
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
        return "a loopback address, which \(domain) must not name"
    }
}

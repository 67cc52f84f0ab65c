internal import NIOCore

/// Finds the servers of a domain for its clients (RFC 6120 §3.2, XEP-0368): first by SRV records, and where there are
/// none by the domain's own addresses and port 5222.
///
/// Its methods block for as long as a name server takes.
struct ServiceResolver: Sendable {
    /// The port of a domain without SRV records.
    static let standardPort: UInt16 = 5222

    /// Who is asked.
    let names: any NameSource
    /// Where connections may go.
    let policy: TargetPolicy
    /// A name server was named: then also names are asked for that never leave a machine.
    let isNamed: Bool

    /// Asks the name server given, or those of the system.
    init(server: SocketAddress?) {
        self.init(names: NameServers(server: server), policy: TargetPolicy(resolver: server), isNamed: server != nil)
    }

    init(names: any NameSource, policy: TargetPolicy, isNamed: Bool) {
        self.names = names
        self.policy = policy
        self.isNamed = isNamed
    }

    /// Whether a domain's SRV records are asked for at all: not those of addresses and, unless a name server was named,
    /// of `localhost`.
    func asksForRecords(of domain: String) -> Bool {
        !Self.isLiteral(domain) && (isNamed || !TargetPolicy.isLocal(domain))
    }

    /// The SRV records of one of a domain's services. `domain` is in ASCII.
    func records(_ service: ServiceRecord.Service, of domain: String) throws(LookupFault) -> [ServiceRecord] {
        try names.servers("\(service.rawValue).\(domain)").map {
            ServiceRecord(
                service: service,
                priority: $0.priority,
                weight: $0.weight,
                port: $0.port,
                target: $0.target
            )
        }
    }

    /// The addresses of a server, and those of its addresses to which no connection may go, with the reason.
    func addresses(
        of server: ServiceRecord,
        domain: String,
        isFromRecord: Bool
    ) throws(LookupFault) -> (usable: [SocketAddress], refused: [(SocketAddress, String)]) {
        let host = server.target.hasPrefix("[") ? String(server.target.dropFirst().dropLast()) : server.target
        var usable: [SocketAddress] = []
        var refused: [(SocketAddress, String)] = []
        for address in try names.addresses(host, port: Int(server.port)) {
            if let why = policy.refusal(of: address, domain: domain, isFromRecord: isFromRecord) {
                refused.append((address, why))
            } else {
                usable.append(address)
            }
        }
        return (usable, refused)
    }

    private static func isLiteral(_ domain: String) -> Bool {
        domain.hasPrefix("[") || (try? SocketAddress(ipAddress: domain, port: 0)) != nil
    }
}

/// What the SRV records of a domain's two services come to.
enum ServiceChoice: Sendable, Hashable {
    /// Servers in the order in which to try them.
    case servers([ServiceRecord])
    /// The domain says that it has no service for clients (`.`): its own address must not be tried either.
    case refused
    /// It has no records: its own address and the usual port are tried.
    case fallback
    /// A name server did not answer. Records may exist, so the domain's own address is not tried.
    case failed(LookupFault)

    /// Judges both answers.
    ///
    /// `.` for TLS from the first byte says nothing of the other service: where that has no records the domain's own
    /// address is tried.
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

import NIOCore
import TapSecurity
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests the resolver with a real name server on a loopback address.
@Suite(.enabled(if: TestProgram.areInstalled(.dnsmasq), "dnsmasq is missing"), .timeLimit(.minutes(2)))
struct ServiceResolverTests {
    private static let records = [
        "srv-host=_xmpp-client._tcp.example.org,xmpp1.example.org,5222,5,10",
        "srv-host=_xmpp-client._tcp.example.org,xmpp2.example.org,5322,7,10",
        "srv-host=_xmpps-client._tcp.example.org,xmpp1.example.org,5223,3,10",
        "srv-host=_xmpp-client._tcp.gone.example", "host-record=xmpp1.example.org,192.0.2.1,2001:db8::1",
        "host-record=xmpp2.example.org,127.0.0.1", "host-record=plain.example,192.0.2.7",
    ]

    private func resolver(_ port: UInt16, address: String = "127.0.0.1") throws -> ServiceResolver {
        ServiceResolver(server: try SocketAddress(ipAddress: address, port: Int(port)))
    }

    private func choice(_ resolver: ServiceResolver, _ domain: String) -> ServiceChoice {
        var generator = SeededGenerator(seed: 1)
        func ask(_ service: ServiceRecord.Service) -> Result<[ServiceRecord], LookupFault> {
            Result { () throws(LookupFault) in try resolver.records(service, of: domain) }
        }
        return ServiceChoice(clear: ask(.clear), tls: ask(.tls), using: &generator)
    }

    @Test(
        "The servers of both services are found, with IPv4 and IPv6 addresses",
        arguments: ["127.0.0.1", "::1"]
    )
    func found(_ address: String) async throws {
        let server = try await NameServer(address: address, Self.records)
        let resolver = try resolver(server.port, address: address)
        guard case .servers(let found) = choice(resolver, "example.org") else {
            Issue.record("\(choice(resolver, "example.org"))")
            return
        }
        #expect(
            found.map { "\($0.service.labels(for: .clients)) \($0)" } == [
                "_xmpps-client._tcp xmpp1.example.org:5223 (3 10)", "_xmpp-client._tcp xmpp1.example.org:5222 (5 10)",
                "_xmpp-client._tcp xmpp2.example.org:5322 (7 10)",
            ]
        )
        let addresses = try resolver.addresses(of: found[0], domain: "example.org", isFromRecord: true)
        #expect(addresses.usable.compactMap(\.endpoint?.description) == ["[2001:db8::1]:5223", "192.0.2.1:5223"])
        #expect(addresses.refused.isEmpty)
        try await server.stop()
    }

    @Test func `The servers for other servers are found, with the certificates that the DNS names`() async throws {
        let server = try await NameServer([
            "srv-host=_xmpp-server._tcp.example.org,xmpp1.example.org,5269,5,10",
            "srv-host=_xmpps-server._tcp.example.org,xmpp1.example.org,5270,3,10",
            "host-record=xmpp1.example.org,192.0.2.1", "dns-rr=_5270._tcp.xmpp1.example.org,52,0301010A0B0C",
        ])
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: Int(server.port))
        let resolver = ServiceResolver(server: address, peers: .servers)
        guard case .servers(let found) = choice(resolver, "example.org") else {
            Issue.record("\(choice(resolver, "example.org"))")
            return
        }
        #expect(
            found.map { "\($0.service.labels(for: .servers)) \($0)" } == [
                "_xmpps-server._tcp xmpp1.example.org:5270 (3 10)", "_xmpp-server._tcp xmpp1.example.org:5269 (5 10)",
            ]
        )
        let named = try resolver.addresses(of: found[0], domain: "example.org", isFromRecord: true)
        #expect(named.associations == [DNSReply.Association(usage: 3, selector: 1, matching: 1)])
        let other = try resolver.addresses(of: found[1], domain: "example.org", isFromRecord: true)
        #expect(other.associations.isEmpty && other.usable.count == 1)
        try await server.stop()
    }

    @Test func `Missing records, a refused service and a silent name server are distinguished`() async throws {
        let server = try await NameServer(Self.records)
        let resolver = try resolver(server.port)
        #expect(choice(resolver, "plain.example") == .fallback)
        #expect(choice(resolver, "nowhere.example") == .fallback)
        #expect(choice(resolver, "gone.example") == .refused)
        let fallback = ServiceRecord(service: .clear, priority: 0, weight: 0, port: 5222, target: "nowhere.example")
        let none = try resolver.addresses(of: fallback, domain: "nowhere.example", isFromRecord: false)
        #expect(none.usable.isEmpty && none.refused.isEmpty)
        try await server.stop()

        guard case .failed(let fault) = choice(resolver, "example.org") else {
            Issue.record("a server that is gone has answered")
            return
        }
        #expect(fault.message == "the DNS server 127.0.0.1:\(server.port) does not answer")
        #expect(throws: LookupFault.self) {
            try resolver.addresses(of: fallback, domain: "nowhere.example", isFromRecord: false)
        }
    }

    @Test func `A name under localhost is resolved without a name server`() throws {
        // No DNS server listens on the discard port: a query would fail.
        let found = try resolver(9).addresses(
            of: ServiceRecord(service: .clear, priority: 0, weight: 0, port: 5222, target: "xmpp.localhost"),
            domain: "localhost",
            isFromRecord: false
        )
        #expect(found.usable.compactMap(\.endpoint?.description) == ["[::1]:5222", "127.0.0.1:5222"])
    }

    @Test func `SRV records are not queried for names under localhost and for IP addresses`() throws {
        let system = ServiceResolver(server: nil)
        #expect(!system.asksForRecords(of: "localhost"))
        #expect(system.asksForRecords(of: "example.org"))
        #expect(try resolver(53).asksForRecords(of: "localhost"))
        for literal in ["127.0.0.1", "[::1]"] { #expect(try !resolver(53).asksForRecords(of: literal)) }
        let own = ServiceRecord(service: .clear, priority: 0, weight: 0, port: 5222, target: "[::1]")
        let found = try system.addresses(of: own, domain: "[::1]", isFromRecord: false)
        #expect(found.usable.compactMap(\.endpoint?.description) == ["[::1]:5222"])
    }
}

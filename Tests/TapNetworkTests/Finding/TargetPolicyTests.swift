import NIOCore
import Testing

@testable import TapNetwork

struct TargetPolicyTests {
    private func isRefused(
        _ address: String,
        domain: String = "example.org",
        isFromRecord: Bool = true,
        resolver: String? = nil
    ) throws -> Bool {
        let policy = TargetPolicy(resolver: try resolver.map { try SocketAddress(ipAddress: $0, port: 53) })
        let address = try SocketAddress(ipAddress: address, port: 5222)
        return policy.refusal(of: address, domain: domain, isFromRecord: isFromRecord) != nil
    }

    @Test(
        "Link-local, metadata, multicast and unspecified addresses are always refused",
        arguments: [
            "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "0.0.0.0", "::", "224.0.0.1",
            "255.255.255.255",
            "ff02::1", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254",
        ]
    )
    func never(_ address: String) throws {
        #expect(try isRefused(address))
        #expect(try isRefused(address, domain: "localhost", isFromRecord: false, resolver: "127.0.0.1"))
    }

    @Test(
        "Loopback addresses are refused if they come from a foreign domain's records",
        arguments: ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"]
    )
    func loopback(_ address: String) throws {
        #expect(try isRefused(address))
        #expect(try isRefused(address, resolver: "192.0.2.53"))
        #expect(try isRefused(address, domain: "localhost.example.org"))
        #expect(try !isRefused(address, resolver: "127.0.0.1"))
        #expect(try !isRefused(address, domain: "localhost"))
        #expect(try !isRefused(address, domain: "xmpp.LOCALHOST"))
        #expect(try !isRefused(address, domain: "[::1]"))
        #expect(try !isRefused(address, isFromRecord: false))
    }

    @Test(
        "Other addresses are allowed",
        arguments: ["192.0.2.1", "10.0.0.1", "2001:db8::1", "fd12::1", "169.253.0.1"]
    )
    func usual(_ address: String) throws { #expect(try !isRefused(address)) }
}

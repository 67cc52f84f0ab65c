import TapTestKit
import Testing

/// Tests of different TLS modes on the two legs: every combination between slixmpp and Prosody.
@Suite(
    .timeLimit(.minutes(5)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing")
) struct LegsTests {
    /// How a client starts TLS, if it does.
    private enum Way: String {
        case clear, startTLS, direct
    }

    /// The values of the two flags, how the client starts TLS, and the legs on which TLS is established, in order.
    private typealias Combination = (client: String, server: String, way: Way, legs: [String])

    private static let combinations: [Combination] = [
        ("off", "auto", .clear, ["server"]), ("off", "required", .clear, ["server"]),
        ("off", "direct", .clear, ["server"]), ("off", "off", .clear, []),
        ("auto", "direct", .startTLS, ["server", "client"]), ("auto", "direct", .direct, ["server", "client"]),
        ("auto", "off", .startTLS, ["client"]), ("auto", "off", .direct, ["client"]),
        ("auto", "required", .startTLS, ["server", "client"]), ("required", "auto", .startTLS, ["server", "client"]),
        ("required", "required", .startTLS, ["server", "client"]),
        ("required", "direct", .startTLS, ["server", "client"]), ("required", "off", .startTLS, ["client"]),
        ("direct", "direct", .direct, ["server", "client"]), ("direct", "off", .direct, ["client"]),
    ]

    private static func flags(_ client: String, _ server: String, _ own: InterceptAuthority, _ real: TestCertificate)
        -> [String]
    {
        own.arguments + ["--client-tls", client, "--server-tls", server]
            + (server == "off" ? [] : ["--upstream-ca", real.certificate])
    }

    private static func client(_ way: Way, _ tap: Tap, port: UInt16, _ own: InterceptAuthority) throws -> ScriptedClient
    {
        try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: port,
            startTLS: way != .clear,
            .init(ping: true),
            options: ["--ca", own.certificate, "--timeout", "10"] + (way == .direct ? ["--direct"] : [])
        )
    }

    @Test func `every useful combination of TLS modes logs in with TLS on the requested legs`() async throws {
        let real = try await TestCertificate()
        let own = try await InterceptAuthority()
        let direct = try FreePort.next()
        let server = try await ProsodyServer(encryption: .offered(real, direct: direct))
        for (client, toServer, way, legs) in Self.combinations {
            let name = "--client-tls \(client) --server-tls \(toServer), \(way)"
            let tap = try await Tap(
                upstream: toServer == "direct" ? direct : server.port,
                arguments: Self.flags(client, toServer, own, real)
            )
            let juliet = try Self.client(way, tap, port: tap.port, own)
            do {
                let heard = try await juliet.finish()
                #expect(heard.contains { $0.event == "pong" }, "\(name)")
            } catch {
                Issue.record("\(name): \(error)\n\(Tap.read(tap.text).suffix(6000))")
            }
            try await tap.stop()
            let records = try tap.records()
            let opened = records.filter { $0.code == "tls-opened" }.compactMap(\.message)
            #expect(opened.map { $0.contains("with the client") ? "client" : "server" } == legs, "\(name): \(opened)")
            #expect(records.contains { $0.code == "session-ready" }, "\(name)")
            #expect(!records.contains { $0.code == "unexpected-restart" }, "\(name)")
            records.checkNoByteIsMissing()
        }
        try await server.stop()
    }

    @Test func `if TLS is required, a stream that continues in clear is refused on either side`() async throws {
        let real = try await TestCertificate()
        let own = try await InterceptAuthority()
        let direct = try FreePort.next()
        let server = try await ProsodyServer(encryption: .offered(real, direct: direct))
        let combinations: [Combination] = [
            ("required", "auto", .clear, []), ("auto", "required", .clear, []), ("direct", "auto", .startTLS, []),
            ("auto", "off", .clear, []), ("off", "auto", .direct, []),
        ]
        for (client, toServer, way, _) in combinations {
            let name = "--client-tls \(client) --server-tls \(toServer), \(way)"
            let tap = try await Tap(upstream: server.port, arguments: Self.flags(client, toServer, own, real))
            let juliet = try Self.client(way, tap, port: tap.port, own)
            await #expect(throws: KitError.self, "\(name)") { try await juliet.finish() }
            try await tap.wait(for: "\"login-failed\"", in: tap.json)
            try await tap.stop()
            let records = try tap.records()
            #expect(!records.contains { $0.code == "session-ready" }, "\(name)")
            let diagnosis = records.first { $0.code == "login-failed" }?.details
            #expect(
                diagnosis?.cause == (client == "off" ? "leg-with-tls" : "leg-without-tls"),
                "\(name): \(diagnosis?.cause ?? "")"
            )
            #expect(diagnosis?.side == "xmpptap" && diagnosis?.proxyIsCause == true, "\(name)")
        }
        try await server.stop()
    }

    @Test func `a server without TLS is refused if TLS is required, and otherwise used in clear`() async throws {
        let own = try await InterceptAuthority()
        let server = try await ProsodyServer()
        for (client, toServer, isServed) in [
            ("off", "required", false), ("required", "auto", false), ("off", "auto", true),
        ] {
            let tap = try await Tap(
                upstream: server.port,
                arguments: own.arguments + ["--client-tls", client, "--server-tls", toServer]
            )
            let juliet = try Self.client(.clear, tap, port: tap.port, own)
            if isServed {
                try await juliet.finish()
            } else {
                await #expect(throws: KitError.self) { try await juliet.finish() }
            }
            try await tap.stop()
            let records = try tap.records()
            #expect(records.contains { $0.code == "tls-required" } == !isServed)
            #expect(records.contains { $0.details?.cause == "leg-without-tls" } == !isServed)
            #expect(records.contains { $0.code == "no-tls" } == isServed)
        }
        try await server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.dnsmasq), "dnsmasq is missing"))
    func `clients without direct TLS can use a domain whose only server has direct TLS`() async throws {
        let folder = try TemporaryFolder()
        let authorities = folder.path(of: "ca")
        let made = try await XMPPTapBinary.run(["ca", "create", "--domain", "example.org", "--ca-dir", authorities])
        #expect(made.ending == .exited(0))
        let real = try await TestCertificate(domain: "example.org")
        let direct = try FreePort.next()
        let juliet = Account("juliet", domain: "example.org", password: "Capulet-1597")
        let server = try await ProsodyServer(encryption: .offered(real, direct: direct), accounts: [juliet])
        let names = try await NameServer([
            "srv-host=_xmpps-client._tcp.example.org,xmpp.example.org,\(direct),5,1",
            "host-record=xmpp.example.org,127.0.0.1",
        ])
        for (client, toServer, way) in [
            ("off", "direct", Way.clear), ("auto", "direct", .startTLS), ("off", "auto", .clear),
            ("off", "off", .clear),
        ] {
            let tap = try await Tap(
                listen: ["127.0.0.1:0"],
                arguments: [
                    "--tls", "intercept", "--ca-dir", authorities,
                    "--upstream-domain", "example.org", "--resolver", "127.0.0.1:\(names.port)", "--client-tls", client,
                    "--server-tls", toServer,
                ] + (toServer == "off" ? [] : ["--upstream-ca", real.certificate])
            )
            let heard = try ScriptedClient(
                .slixmpp,
                as: juliet,
                port: tap.port,
                startTLS: way != .clear,
                options: ["--ca", "\(authorities)/example.org/certificate.pem", "--timeout", "10"]
            )
            let isReady = (try? await heard.finish())?.contains { $0.event == "ready" } == true
            try await tap.stop()
            let log = Tap.read(tap.json)
            #expect(isReady == (toServer != "off"), "\(client) \(toServer)\n\(Tap.read(tap.text).suffix(4000))")
            #expect(log.contains("TLS is off on the server leg, this server uses direct TLS") != isReady)
            #expect(log.contains(#""code":"tls-opened""#) == isReady)
        }
        try await names.stop()
        try await server.stop()
    }
}

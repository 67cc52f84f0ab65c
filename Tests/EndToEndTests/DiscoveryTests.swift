import Glibc
import TapTestKit
import Testing

/// Tests of server discovery: the proxy finds the servers of domains with a real name server.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.dnsmasq), "dnsmasq is missing")
)
struct DiscoveryTests {
    private static func header(_ domain: String) -> String {
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' "
            + "xmlns:stream='http://etherx.jabber.org/streams' to='\(domain)' version='1.0'>"
    }

    /// A proxy, and the name server that it queries.
    private struct Site {
        let names: NameServer
        let tap: Tap

        init(
            _ records: [String],
            listen: [String] = ["127.0.0.1:0"],
            domains: [String] = ["example.org"]
        ) async throws {
            names = try await NameServer(records)
            let domains = domains.flatMap { ["--upstream-domain", $0] }
            tap = try await Tap(listen: listen, arguments: domains + ["--resolver", "127.0.0.1:\(names.port)"])
        }

        /// Connects a client that sends its stream header.
        func client(_ domain: String = "example.org", port: Int = 0) async throws -> RawConnection {
            let client = try RawConnection(port: tap.ports[port])
            try await client.write(header(domain))
            return client
        }

        /// Returns the reply to a client for which no server is found.
        func refusal(_ domain: String = "example.org") async throws -> String {
            let client = try await client(domain)
            return try await client.read(through: "</stream:stream>")
        }

        /// Stops the proxy and the name server, and returns the logged steps with their outcomes.
        func stop() async throws -> [String] {
            try await tap.stop()
            try await names.stop()
            return try steps()
        }

        func steps() throws -> [String] {
            try tap.records().filter { $0.code == "step" }.map {
                "\($0.details?.outcome ?? "?") \($0.message ?? "")"
            }
        }
    }

    private static func srv(_ domain: String, _ target: String, _ port: UInt16, _ priority: Int, tls: Bool = false)
        -> String
    {
        "srv-host=_xmpp\(tls ? "s" : "")-client._tcp.\(domain),\(target),\(port),\(priority),1"
    }

    // MARK: Servers

    @Test func `A client is connected to the first server that accepts, in the order of SRV priority`() async throws {
        let (server, later, closed) = (try RawListener(), try RawListener(), try FreePort.next())
        let site = try await Site([
            Self.srv("example.org", "xmpp.example.org", later.port, 30),
            Self.srv("example.org", "xmpp.example.org", server.port, 20),
            Self.srv("example.org", "xmpp.example.org", closed, 10),
            Self.srv("example.org", "tls.example.org", 5223, 5, tls: true),
            "host-record=xmpp.example.org,127.0.0.1", "host-record=tls.example.org,127.0.0.1",
        ])
        let client = try await site.client("EXAMPLE.org")
        let leg = try await server.accept()
        try await leg.read(through: Self.header("EXAMPLE.org"))
        try await leg.write("hello")
        client.close()
        leg.close()
        let steps = try await site.stop()
        #expect(
            steps.first { $0.contains("_xmpps") } == "ok srv _xmpps-client._tcp.example.org: tls.example.org:5223 (5 1)"
        )
        #expect(steps.count { $0.contains("srv _xmpp-client._tcp.example.org: xmpp.example.org:") } == 1)
        #expect(
            steps.filter { $0.contains(" tcp ") } == [
                "skipped tcp tls.example.org:5223: the client does not use direct TLS, this server does",
                "failed tcp 127.0.0.1:\(closed): connection refused (errno 111)",
                "ok tcp 127.0.0.1:\(server.port): connected",
            ]
        )
        try Documentation.check(.discovery, sessionsOf: Tap.read(site.tap.story))
        let records = try site.tap.records().filter { $0.code == "step" }
        #expect(records.allSatisfy { $0.message?.contains("direct TLS") == true || $0.roundTrip != nil })
    }

    @Test func `A server with only an IPv6 address is reached`() async throws {
        let server = try RawListener(host: "::1")
        let site = try await Site([
            Self.srv("example.org", "v6.example.org", server.port, 1), "host-record=v6.example.org,::1",
        ])
        let client = try await site.client()
        try await server.accept().read(through: Self.header("example.org"))
        client.close()
        #expect(try await site.stop().contains("ok tcp [::1]:\(server.port): connected"))
    }

    @Test func `Without SRV records, the proxy connects to port 5222 of the domain`() async throws {
        let server = try RawListener(host: "127.77.0.2", port: 5222)
        let site = try await Site(["host-record=example.org,127.77.0.2"])
        let client = try await site.client()
        try await server.accept().read(through: Self.header("example.org"))
        client.close()
        let steps = try await site.stop()
        #expect(steps.contains("none srv _xmpp-client._tcp.example.org: no such records"))
        #expect(steps.contains("ok tcp 127.77.0.2:5222: connected"))
    }

    @Test func `If SRV records exist, the domain's own address is not tried, even if they fail`() async throws {
        let own = try RawListener(host: "127.77.0.3", port: 5222)
        let closed = try FreePort.next()
        let site = try await Site(
            [
                "host-record=example.org,127.77.0.3", "host-record=gone.example,127.77.0.3",
                "host-record=lost.example,127.77.0.3", Self.srv("example.org", "xmpp.example.org", closed, 1),
                Self.srv("lost.example", "nowhere.example", 5222, 1), "host-record=xmpp.example.org,127.0.0.1",
                // A record without a target has the target `.`, which means that the service is not available.
                "srv-host=_xmpp-client._tcp.gone.example",
            ],
            domains: ["example.org", "gone.example", "lost.example"]
        )
        for domain in ["example.org", "gone.example", "lost.example"] {
            let told = try await site.refusal(domain)
            #expect(told.contains("<remote-connection-failed"), "\(domain): \(told)")
        }
        await #expect(throws: KitError.self) { try await own.accept(within: .milliseconds(200)) }
        let steps = try await site.stop()
        #expect(steps.contains("refused srv _xmpp-client._tcp.gone.example: the domain has no such service"))
        #expect(steps.contains("none address nowhere.example: no such name"))
        let errors = try site.tap.records().filter { $0.code == "server-unreachable" }.compactMap(\.message)
        #expect(
            errors.sorted() == [
                "no server of example.org can be reached: 127.0.0.1:\(closed): connection refused (errno 111)",
                "no server of gone.example can be reached: its SRV record says that it has no service for clients",
                "no server of lost.example can be reached: nowhere.example:5222: no such name",
            ]
        )
        let causes = try site.tap.records().filter { $0.code == "login-failed" }.compactMap(\.details?.cause)
        #expect(causes.sorted() == ["connection-refused", "name-not-found", "service-not-offered"])
    }

    @Test func `An unknown domain and a record that points to the proxy itself are refused`() async throws {
        let port = try FreePort.next()
        let site = try await Site(
            [Self.srv("loop.example", "here.example", port, 1), "host-record=here.example,127.0.0.1"],
            listen: ["127.0.0.1:\(port)=domain:loop.example,nowhere.example"],
            domains: []
        )
        for domain in ["nowhere.example", "loop.example"] {
            let told = try await site.refusal(domain)
            #expect(told.contains("<remote-connection-failed"))
        }
        let steps = try await site.stop()
        #expect(steps.contains("none address nowhere.example: no such name"))
        #expect(steps.contains("refused tcp 127.0.0.1:\(port): this proxy itself listens there"))
    }

    @Test func `A lookup times out if the name server is silent, and no server is guessed`() async throws {
        let silent = try SilentPort()
        let tap = try await Tap(
            listen: ["127.0.0.1:0=domain:example.org"],
            arguments: ["--resolver", "127.0.0.1:\(silent.port)"]
        )
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header("example.org"))
        try await client.read(through: "<remote-connection-failed")
        try await tap.stop()
        let error = try tap.records().first { $0.code == "server-unreachable" }?.message
        #expect(
            error
                == "no server of example.org can be reached: the DNS server 127.0.0.1:\(silent.port) does not answer"
        )
        #expect(!(try tap.records().contains { $0.message?.hasPrefix("tcp ") == true }))
        #expect(try tap.records().first { $0.code == "login-failed" }?.details?.cause == "lookup-failed")
    }

    @Test func `An incomplete stream header times out, and shutdown does not wait for name servers`() async throws {
        let silent = try SilentPort()
        let tap = try await Tap(
            listen: ["127.0.0.1:0=domain:example.org"],
            arguments: ["--resolver", "127.0.0.1:\(silent.port)", "--limit", "login=1"]
        )
        let mute = try RawConnection(port: tap.port)
        try await mute.write("<?xml version='1.0'?><stream:stream to='example.org' xmlns='jabber:client")
        let (_, end) = try await mute.read(within: .seconds(20)) { _ in false }
        #expect(end == .finished)
        let gone = try RawConnection(port: tap.port)
        try await gone.write("<str")
        gone.reset()
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header("example.org"))
        try await tap.wait(for: " info [3] net: ", in: tap.story)
        try await tap.stop()
        let records = try tap.records()
        #expect(records.count { $0.code == "session-began" } == 3)
        #expect(records.count { $0.code == "session-ended" } == 3)
        #expect(records.contains { $0.message == "No login within 1 s (limit login)." })
    }

    @Test func `doctor --domain reports the servers of a domain, or that there are none`() async throws {
        let names = try await NameServer([
            Self.srv("example.org", "xmpp.example.org", 5222, 5), "host-record=xmpp.example.org,192.0.2.1,2001:db8::1",
            "srv-host=_xmpp-client._tcp.gone.example",
        ])
        let run = try await XMPPTapBinary.run([
            "doctor", "--resolver", "127.0.0.1:\(names.port)", "--upstream-domain", "example.org",
            "--upstream-domain", "gone.example", "--port", "\(FreePort.next())",
        ])
        let lines = run.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(lines.contains("ok example.org _xmpp-client._tcp.example.org: xmpp.example.org:5222 (5 1)"))
        #expect(lines.contains("note example.org _xmpps-client._tcp.example.org: no such records"))
        #expect(lines.contains("ok example.org xmpp.example.org:5222: 2001:db8::1, 192.0.2.1"))
        #expect(
            lines.contains {
                $0.hasPrefix("stop gone.example its SRV record says that it has no service for clients: ")
            },
            "\(lines)"
        )
        #expect(run.ending == .exited(1))
        let alone = try await XMPPTapBinary.run(["doctor", "--resolver", "127.0.0.1:53"])
        #expect(alone.ending == .exited(2))
        try await names.stop()
    }

    // MARK: Domains

    @Test func `A domain that is not configured gets host-unknown, without a DNS query`() async throws {
        let server = try RawListener()
        let site = try await Site(
            [
                Self.srv("other.example", "xmpp.other.example", server.port, 1),
                "host-record=xmpp.other.example,127.0.0.1",
            ],
            domains: ["example.org", "second.example"]
        )
        for header in [
            Self.header("other.example"), Self.header("x@example.org"), Self.header(""),
            Self.header("").replacing(" to=''", with: ""),
        ] {
            let client = try RawConnection(port: site.tap.port)
            try await client.write(header)
            let told = try await client.read(through: "</stream:stream>")
            #expect(told.contains("<host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"), "\(header): \(told)")
        }
        await #expect(throws: KitError.self) { try await server.accept(within: .milliseconds(200)) }
        #expect(try await site.stop().isEmpty)
        let told = try site.tap.records().filter { $0.code == "host-unknown" }
        #expect(told.count == 4)
        #expect(told.first?.message == "This proxy does not serve other.example.")
        #expect(told.allSatisfy { $0.condition == "host-unknown" && $0.level == "error" })
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing"))
    func `The clients of two domains are connected to the server of their domain`() async throws {
        let accounts = [
            Account("juliet", domain: "capulet.example", password: "Capulet-1597"),
            Account("romeo", domain: "montague.example", password: "Montague-1597"),
        ]
        let servers = [
            try await ProsodyServer(accounts: [accounts[0]]), try await ProsodyServer(accounts: [accounts[1]]),
        ]
        let site = try await Site(
            zip(accounts, servers).flatMap { account, server in
                [
                    Self.srv(account.domain, "xmpp.\(account.domain)", server.port, 1),
                    "host-record=xmpp.\(account.domain),127.0.0.1",
                ]
            },
            domains: accounts.map(\.domain)
        )
        for account in accounts {
            let client = try ScriptedClient(.slixmpp, as: account, port: site.tap.port, .init(ping: true))
            let told = try await client.finish()
            #expect(told.contains { $0.event == "pong" })
        }
        let steps = try await site.stop()
        for server in servers {
            #expect(steps.contains("ok tcp 127.0.0.1:\(server.port): connected"))
            try await server.stop()
        }
    }

    // MARK: TLS

    @Test(.enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing"))
    func `A client with direct TLS is connected to a direct TLS server, or gets a TLS alert`() async throws {
        let (tls, clear) = (try RawListener(), try RawListener())
        let site = try await Site(
            [
                Self.srv("example.org", "xmpp.example.org", clear.port, 1),
                Self.srv("example.org", "xmpp.example.org", tls.port, 2, tls: true),
                Self.srv("clear.example", "xmpp.example.org", clear.port, 1),
                "host-record=xmpp.example.org,127.0.0.1",
            ],
            domains: ["example.org", "clear.example"]
        )
        func openssl(_ name: String) throws -> ToolProcess {
            try ToolProcess(
                TestProgram.openssl.rawValue,
                ["s_client", "-connect", "127.0.0.1:\(site.tap.port)", "-servername", name]
            )
        }
        let begun = try openssl("example.org")
        let leg = try await tls.accept()
        let (bytes, _) = try await leg.read { $0.count >= 3 }
        #expect(bytes.prefix(2) == [0x16, 3])
        leg.close()
        try await begun.ending()

        for (name, alert) in [("other.example", 112), ("clear.example", 80)] {
            let refused = try openssl(name)
            try await refused.ending()
            #expect(refused.text(of: .standardError).contains("alert number \(alert)"), "\(name)")
        }
        await #expect(throws: KitError.self) { try await clear.accept(within: .milliseconds(200)) }
        let steps = try await site.stop()
        #expect(
            steps.contains(
                "skipped tcp xmpp.example.org:\(clear.port): the client uses direct TLS, this server does not"
            )
        )
        #expect(try site.tap.records().contains { $0.code == "client-hello" && $0.message?.contains("other.") == true })
    }
}

/// A UDP port on 127.0.0.1 that accepts all datagrams and never answers.
private final class SilentPort {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        port = try FreePort.next()
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let outcome = LoopbackAddress.with(port) { bind(descriptor, $0, $1) }
        guard outcome == 0 else { throw KitError("cannot bind UDP port \(port): errno \(errno)") }
    }

    deinit { close(descriptor) }
}

import TapNetwork
import Testing
import XMPPCore

@testable import xmpptap

struct ProxyPlanTests {
    private let server = Endpoint(host: "example.org", port: 5222)

    @Test func `By default, the proxy listens on port 15222 for the built-in server`() throws {
        let plan = try ProxyPlan(listen: [], upstream: nil)
        #expect(plan.listeners == [ListenSpec(host: nil, port: 15222)])
        #expect(plan.needsServer)
        #expect(plan.warnings.isEmpty)
        #expect(plan.isServed(at: Endpoint(host: "127.0.0.1", port: 15222)))
    }

    @Test func `The built-in server serves listeners without an upstream`() throws {
        let mixed = try ProxyPlan(
            listen: [ListenSpec(port: 1, upstream: .endpoint(server)), ListenSpec(port: 0)],
            upstream: nil
        )
        #expect(mixed.needsServer)
        #expect(!mixed.isServed(at: Endpoint(host: "::1", port: 1)))
        #expect(mixed.isServed(at: Endpoint(host: "::1", port: 40000)))
        for plan in [
            try ProxyPlan(listen: [ListenSpec(port: 1, upstream: .endpoint(server))], upstream: nil),
            try ProxyPlan(listen: [ListenSpec(port: 1)], upstream: server),
        ] {
            #expect(!plan.needsServer)
            #expect(!plan.isServed(at: Endpoint(host: "::1", port: 1)))
        }
    }

    @Test func `Ports whose clients name their targets replace the default port, and need listed servers`() throws {
        let plan = try ProxyPlan(
            listen: [],
            socks: [ListenSpec(port: 1080)],
            transparent: [ListenSpec(port: 15223, upstream: .endpoint(server))],
            upstream: server
        )
        #expect(plan.listeners.map(\.entry) == [.request, .redirect])
        #expect(!plan.needsServer && plan.warnings.isEmpty)
        let both = try ProxyPlan(listen: [ListenSpec(port: 1)], socks: [ListenSpec(port: 2)], upstream: server)
        #expect(both.listeners.map(\.entry) == [.stream, .request])
        #expect(
            refusal { try ProxyPlan(listen: [ListenSpec(port: 1)], socks: [ListenSpec(port: 1080)], upstream: nil) }
                == "--socks 1080 needs the servers that clients may connect to; add --upstream, --upstream-domain or an account"
        )
        #expect(
            refusal { try ProxyPlan(listen: [], transparent: [ListenSpec(port: 7)], upstream: nil) }
                .hasPrefix("--transparent 7 needs the servers")
        )
        #expect(
            refusal {
                try ProxyPlan(
                    listen: [],
                    socks: [ListenSpec(port: 7)],
                    transparent: [ListenSpec(port: 7)],
                    upstream: server
                )
            } == "--transparent 7: same address as --socks 7; leave one out"
        )
    }

    @Test func `An upstream that no listener uses causes a warning`() throws {
        let plan = try ProxyPlan(listen: [ListenSpec(port: 1, upstream: .endpoint(server))], upstream: server)
        #expect(plan.warnings == ["--upstream has no effect: every --listen names its own server"])
        #expect(try ProxyPlan(listen: [ListenSpec(port: 1)], upstream: server).warnings.isEmpty)
    }

    @Test func `A built-in server that other machines can reach causes a warning`() throws {
        let served = try ProxyPlan(listen: [], upstream: nil, allowRemote: true)
        #expect(served.warnings.count == 1)
        #expect(
            served.warnings.first?.hasPrefix("--allow-remote: other machines can reach the built-in server") == true
        )
        #expect(try ProxyPlan(listen: [], upstream: server, allowRemote: true).warnings.isEmpty)
    }

    @Test func `--upstream-domain and --upstream contradict each other`() throws {
        let domains = [try Upstream.Domain("example.org"), try Upstream.Domain("example.net")]
        let plan = try ProxyPlan(listen: [], upstream: nil, domains: domains, resolver: server)
        #expect(plan.upstream == .domains(domains))
        #expect(!plan.needsServer)
        #expect(plan.warnings.isEmpty)
        #expect(
            refusal { try ProxyPlan(listen: [], upstream: server, domains: domains) }
                == "--upstream and --upstream-domain exclude each other; leave one out, or use a separate listener, as in "
                + "--listen PORT=domain:example.org"
        )
        let listener = ListenSpec(port: 1, upstream: .domains(domains))
        #expect(try ProxyPlan(listen: [listener], upstream: nil, resolver: server).warnings.isEmpty)
        #expect(
            try ProxyPlan(listen: [listener], upstream: nil, domains: domains).warnings
                == ["--upstream-domain has no effect: every --listen names its own server"]
        )
        #expect(
            try ProxyPlan(listen: [], upstream: server, resolver: server).warnings
                == ["--resolver has no effect: no server is looked up by domain"]
        )
        #expect(
            try ProxyPlan(listen: [], upstream: nil, resolver: server).warnings
                == ["--resolver has no effect: no server is looked up by domain"]
        )
    }

    @Test func `A duplicate listener is refused, but several free ports are not`() throws {
        let twice = [
            ListenSpec(host: "192.0.2.1", port: 5), ListenSpec(host: "127.0.0.1", port: 5),
            ListenSpec(port: 5, upstream: .endpoint(server)),
        ]
        #expect(
            refusal { try ProxyPlan(listen: twice, upstream: nil) }
                == "--listen 5=example.org:5222: same address as --listen 127.0.0.1:5; leave one out"
        )
        #expect(try ProxyPlan(listen: [ListenSpec(port: 0), ListenSpec(port: 0)], upstream: nil).listeners.count == 2)
    }

    @Test func `An account selects the domain, and --upstream selects its server`() throws {
        let account = try ProxyTarget("Juliet@Example.org/balcony")
        #expect("\(account.jid)" == "Juliet@Example.org" && account.domain.ascii == "example.org")
        #expect(try ProxyTarget("example.org").jid.local == nil)
        let found = try ProxyPlan(listen: [], target: account, upstream: nil, resolver: server)
        #expect(found.upstream == .domains([account.domain]) && found.upstream?.address == nil)
        #expect(!found.needsServer && found.warnings.isEmpty)
        let named = try ProxyPlan(listen: [], target: account, upstream: server, resolver: server)
        #expect(named.upstream?.endpoint == nil && named.upstream?.address == server)
        #expect(named.warnings == ["--resolver has no effect: no server is looked up by domain"])
        // A listener with its own server is beside it.
        let mixed = [ListenSpec(port: 1, upstream: .endpoint(server)), ListenSpec(port: 2)]
        let plan = try ProxyPlan(listen: mixed, target: account, upstream: nil)
        #expect(!plan.hasUsualServer(at: Endpoint(host: "::1", port: 1)))
        #expect(plan.hasUsualServer(at: Endpoint(host: "::1", port: 2)))
    }

    @Test func `An account with contradictory flags is refused, and a malformed account with advice`() throws {
        let account = try ProxyTarget("juliet@example.org")
        let other = try Upstream.Domain("example.net")
        #expect(
            refusal { try ProxyPlan(listen: [], target: account, upstream: nil, domains: [other]) }
                == "juliet@example.org names the domain; leave out --upstream-domain, or use a separate listener, as in "
                + "--listen PORT=domain:example.net"
        )
        let listener = ListenSpec(port: 1, upstream: .endpoint(server))
        #expect(
            refusal { try ProxyPlan(listen: [listener], target: account, upstream: nil) }
                == "juliet@example.org has no effect: every --listen names its own server; leave out one or the other"
        )
        for text in ["", "juliet@", "@example.org", "a b"] {
            let words = refusal { try ProxyTarget(text) }
            #expect(words.hasPrefix("\(text) is not an account or a domain (") && words.contains("juliet@example.org"))
        }
        #expect(refusal { try ProxyTarget("localhost:5222") }.hasSuffix("--upstream localhost:5222"))
    }
}

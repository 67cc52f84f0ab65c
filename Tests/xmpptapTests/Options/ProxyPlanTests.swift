import Testing

@testable import xmpptap

struct ProxyPlanTests {
    private let server = HostPort(host: "example.org", port: 5222)

    @Test func `Nothing said listens on the usual port before the built-in server`() throws {
        let plan = try ProxyPlan(ProxyRequest())
        #expect(plan.listeners == [ListenRequest(host: nil, port: 15222)])
        #expect(plan.needsServer)
        #expect(plan.warnings.isEmpty)
    }

    @Test func `A listener's own server beats the one for all`() throws {
        let other = HostPort(host: "example.com", port: 5222)
        let plan = try ProxyPlan(
            ProxyRequest(listen: [ListenRequest(port: 1, upstream: other), ListenRequest(port: 2)], upstream: server)
        )
        #expect(plan.listeners.map(\.upstream) == [other, server])
        #expect(!plan.needsServer)
    }

    @Test func `A server that no listener uses is a warning`() throws {
        let request = ProxyRequest(listen: [ListenRequest(port: 1, upstream: server)], upstream: server)
        #expect(
            try ProxyPlan(request).warnings == ["--upstream is not used: every --listen names a server of its own"]
        )
    }

    @Test func `Other machines come in only where that was allowed, and even then it is said what it means`() throws {
        let listen = [ListenRequest(host: "0.0.0.0", port: 15222)]
        #expect(
            refusal { try ProxyPlan(ProxyRequest(listen: listen, upstream: server)) }
                == "--listen 0.0.0.0:15222: other machines can connect to 0.0.0.0:15222, and whoever does goes on to the "
                + "server from here; add --allow-remote if that is meant"
        )
        let plan = try ProxyPlan(ProxyRequest(listen: listen, upstream: server, allowsRemote: true))
        #expect(
            plan.warnings == [
                "other machines can connect to 0.0.0.0:15222, and whoever does goes on to the server from here and into "
                    + "the logs"
            ]
        )
    }

    @Test(
        "A server that is one of our own listeners is refused",
        arguments: [
            (nil, "localhost"), (nil, "127.0.0.1"), (nil, "::1"), ("127.0.0.1", "127.0.0.1"),
            ("localhost", "127.0.0.1"),
        ] as [(String?, String)]
    )
    func loop(host: String?, upstream: String) {
        let request = ProxyRequest(
            listen: [ListenRequest(host: host, port: 15222)],
            upstream: HostPort(host: upstream, port: 15222)
        )
        let message = refusal { try ProxyPlan(request) }
        #expect(message.hasSuffix("takes clients in; name the server instead"))
        #expect(message.hasPrefix("--upstream \(HostPort(host: upstream, port: 15222)) is where --listen "))
    }

    @Test func `The same port of another machine is no loop`() throws {
        let request = ProxyRequest(upstream: HostPort(host: "example.org", port: 15222))
        #expect(try !ProxyPlan(request).needsServer)
    }

    @Test func `A listener said twice is refused, but any number of free ports are not`() throws {
        let twice = ProxyRequest(listen: [ListenRequest(port: 5), ListenRequest(port: 5)])
        #expect(refusal { try ProxyPlan(twice) } == "--listen 5 is said twice; leave one of them out")
        let free = ProxyRequest(listen: [ListenRequest(port: 0), ListenRequest(port: 0)])
        #expect(try ProxyPlan(free).listeners.count == 2)
    }
}

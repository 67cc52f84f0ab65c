import NIOCore
import NIOPosix
import Testing

@testable import TapNetwork

/// Uses names under `localhost`, which few hosts files contain, to show that names are not looked up.
@Suite(.timeLimit(.minutes(1)))
struct LocalNameTests {
    @Test(
        "A name is local if its last label is localhost",
        arguments: [
            ("localhost", true), ("LocalHost", true), ("localhost.", true), ("xmpp.localhost", true),
            ("localhost.example", false), ("mylocalhost", false), ("example", false), ("", false), (".", false),
        ]
    )
    func names(_ name: String, _ isLocal: Bool) { #expect((LocalName(name) != nil) == isLocal) }

    @Test(
        "Names under localhost are resolved to both loopback addresses without a lookup",
        arguments: ["localhost", "nobody.asks.for.localhost", "nobody.localhost."]
    )
    func addresses(_ name: String) async throws {
        let found = await SystemNames.lookUp(Endpoint(host: name, port: 5222))
        #expect(found.compactMap(\.endpoint?.description) == ["[::1]:5222", "127.0.0.1:5222"])
        let places = try await ListenerAddresses(ListenSpec(host: name, port: 15222))
        #expect(places.isPair)
        #expect(places.addresses.compactMap(\.endpoint?.description) == ["127.0.0.1:15222", "[::1]:15222"])
    }

    @Test func `A connection to a name under localhost falls back to IPv4 loopback`() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let dialer = Dialer(Endpoint(host: "nobody.asks.for.localhost", port: port), timeout: .seconds(10))
        let channel = try await dialer.connect(on: group.next()).get()
        #expect(channel.remoteAddress?.ipAddress == "127.0.0.1")
        try await channel.close()
        try await listener.close()
        await #expect(throws: NIOConnectionError.self) { try await dialer.connect(on: group.next()).get() }
    }
}

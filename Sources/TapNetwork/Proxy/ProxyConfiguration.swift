package import NIOCore
package import TapCore
package import TapSecurity

/// Configuration of a proxy: its listeners, its upstream, and how it relays.
package struct ProxyConfiguration: Sendable {
    /// The addresses to listen on; each may have its own server. Default: port 15222 on both loopback addresses.
    package var listeners: [ListenSpec]
    /// The addresses for WebSockets. Default: none.
    package var webListeners: [WebListenSpec] = []
    /// The server for clients of web listeners without one. Default: none.
    package var webServer: WebServer?
    /// How clients of web listeners are treated.
    package var web = WebOptions()
    /// Sockets inherited from a service manager, used by the listeners with their addresses. Default: none.
    package var inherited = InheritedSockets()
    /// The server for clients of listeners without an upstream.
    package var upstream: Upstream
    /// The DNS server for domains, by name or address. Default: those of the system.
    package var resolver: Endpoint?
    /// The peers that connect: clients, or servers of other domains. Default: clients.
    package var peers = ServerReference.Service.clients
    /// Use of the PROXY protocol. Default: none.
    package var proxyProtocol: ProxyProtocol
    /// How clients of listeners with ``ListenSpec/Entry/request`` name their targets, and which are reached.
    package var targets = TargetOptions()
    /// Further addresses on which this program listens, such as that of the page: no client is connected to them. Default:
    /// none.
    package var reserved: [SocketAddress] = []
    /// Options of the sessions; ``SessionOptions/level`` is the highest level that a sink needs.
    package var session: SessionOptions
    /// The rules. Default: none.
    package var rules: ProxyRules?
    /// How TLS is terminated. Default: nil, TLS is passed through.
    package var interception: Interception?
    /// TLS termination for clients of ``upstream`` only, if its CA differs from that of the listeners' servers.
    /// Default: nil, ``interception`` applies to all clients.
    package var upstreamInterception: Interception?
    /// Limits on the number of connections and authorities.
    package var limits: ProxyLimits
    /// Whether to listen on addresses that other machines can reach. Default: false.
    package var allowRemote: Bool
    /// Time that open sessions get at shutdown. Default: 10 s.
    package var grace: TimeAmount
    /// Time limit of each connection to a server. Default: 10 s.
    package var connectTimeout: TimeAmount

    /// Creates a configuration; each parameter has a default, except `upstream`.
    package init(
        listeners: [ListenSpec] = [ListenSpec()],
        upstream: Upstream,
        resolver: Endpoint? = nil,
        proxyProtocol: ProxyProtocol = ProxyProtocol(),
        session: SessionOptions = SessionOptions(),
        interception: Interception? = nil,
        limits: ProxyLimits = ProxyLimits(),
        allowRemote: Bool = false,
        grace: TimeAmount = .seconds(10),
        connectTimeout: TimeAmount = .seconds(10)
    ) {
        self.listeners = listeners
        self.upstream = upstream
        self.resolver = resolver
        self.proxyProtocol = proxyProtocol
        self.session = session
        self.interception = interception
        self.limits = limits
        self.allowRemote = allowRemote
        self.grace = grace
        self.connectTimeout = connectTimeout
    }
}

/// Options for listeners whose clients name the target of each connection.
package struct TargetOptions: Sendable {
    /// The users who may log in. Clients on other machines must log in, clients on this machine may. Default: none.
    package var users: ProxyUsers?
    /// Whether targets that do not belong to the listed servers are relayed without decoding, instead of being refused.
    /// Default: false.
    package var relaysOthers = false
    /// Time limit for a client's request. Default: 10 s.
    package var requestTimeout = TimeAmount.seconds(10)

    /// Creates options with default values.
    package init() {}
}

/// Limits of a proxy as a whole. Limits of a single session are in ``TapCore/SessionOptions``.
package struct ProxyLimits: Sendable, Hashable {
    /// Maximum number of connections at once; two file descriptors are needed for each. Default: nil, no limit.
    package var connections: Int?
    /// Maximum number of connections at once from one address. Default: nil, no limit.
    package var connectionsPerAddress: Int?
    /// Number of certificate authorities in the folder at which no more are created on demand. Default: 64.
    package var authorities = AuthorityProvider.usualLimit

    /// Creates limits; by default, connections are not limited.
    package init(connections: Int? = nil, connectionsPerAddress: Int? = nil) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
    }
}

package import NIOCore
package import TapCore
internal import TapSecurity

/// Configuration of a proxy: its listeners, its upstream, and the way it relays.
package struct ProxyConfiguration: Sendable {
    /// Where to listen; each may have its own server. Default: port 15222 on both loopback addresses.
    package var listeners: [ListenSpec]
    /// Sockets that are open already, used for the listeners of their addresses. Default: none.
    package var inherited = InheritedSockets()
    /// The server for clients of listeners that name none.
    package var upstream: Upstream
    /// The DNS server for domains, by name or address. Default: the system's.
    package var resolver: Endpoint?
    /// Use of the PROXY protocol. Default: none.
    package var proxyProtocol: ProxyProtocol
    /// How sessions are watched; ``SessionOptions/level`` is what the sinks want at most.
    package var session: SessionOptions
    /// The rules. Default: none.
    package var rules: ProxyRules?
    /// How TLS is ended here. Default: it is passed through.
    package var interception: Interception?
    /// The same for clients of ``upstream`` only, if its CA differs from that of the listeners' servers.
    /// Default: as for all others.
    package var upstreamInterception: Interception?
    /// How many clients are served.
    package var limits: ProxyLimits
    /// Listen on addresses that other machines reach. Default false.
    package var allowRemote: Bool
    /// Time that open sessions get at shutdown. Default 10 s.
    package var grace: TimeAmount
    /// How long connecting to a server may take. Default 10 s.
    package var connectTimeout: TimeAmount

    /// A configuration with the defaults of each.
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

/// How many clients a proxy serves. What concerns a session itself, and how long that may take, is in
/// ``TapCore/SessionOptions``.
package struct ProxyLimits: Sendable, Hashable {
    /// Connections at once. Default none; two descriptors are needed for each.
    package var connections: Int?
    /// Connections at once from one address. Default none.
    package var connectionsPerAddress: Int?
    /// Certificate authorities in the folder from which on none is made on demand. Default 64.
    package var authorities = AuthorityProvider.usualLimit

    /// Limits with the default of each.
    package init(connections: Int? = nil, connectionsPerAddress: Int? = nil) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
    }
}

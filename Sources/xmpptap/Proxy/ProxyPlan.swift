internal import TapNetwork

/// The listeners, and the servers to which they relay.
struct ProxyPlan: Equatable {
    /// The listeners; those without an upstream relay to ``upstream``.
    let listeners: [ListenSpec]
    /// The default server; nil if it is the built-in one, or if every listener has an upstream.
    let upstream: Upstream?
    /// Whether the built-in server serves at least one listener.
    let needsServer: Bool
    /// Warnings for the user, one line each.
    let warnings: [String]

    /// Resolves the flags.
    init(
        listen: [ListenSpec],
        socks: [ListenSpec] = [],
        transparent: [ListenSpec] = [],
        target: ProxyTarget? = nil,
        upstream endpoint: Endpoint?,
        domains: [Upstream.Domain] = [],
        resolver: Endpoint? = nil,
        proxyProtocol: ProxyProtocol = ProxyProtocol(),
        allowRemote: Bool = false,
        isOnlyWeb: Bool = false,
        isForServers: Bool = false
    ) throws(Failure) {
        let usual = ListenSpec(port: isForServers ? ListenSpec.defaultServerPort : ListenSpec.defaultPort)
        let named = socks.map { $0.with(.request) } + transparent.map { $0.with(.redirect) }
        listeners = (listen.isEmpty && named.isEmpty && !isOnlyWeb ? [usual] : listen) + named
        let isEveryServed = listeners.allSatisfy { $0.upstream != nil }
        if let target {
            if let domain = domains.first {
                throw .usage(
                    "\(target.jid) names the domain; leave out --upstream-domain, or use a separate listener, as in "
                        + "--listen PORT=domain:\(domain.name)"
                )
            }
            guard !isEveryServed else {
                throw .usage(
                    "\(target.jid) has no effect: every --listen names its own server; leave out one or the other"
                )
            }
        }
        if endpoint != nil, let domain = domains.first {
            throw .usage(
                "--upstream and --upstream-domain exclude each other; leave one out, or use a separate listener, as in "
                    + "--listen PORT=domain:\(domain.name)"
            )
        }
        let listed: Upstream? = endpoint.map { .endpoint($0) } ?? (domains.isEmpty ? nil : .domains(domains))
        let upstream = target?.upstream(at: endpoint) ?? listed
        self.upstream = upstream
        needsServer = upstream == nil && !isEveryServed
        if upstream == nil, let spec = named.first(where: { $0.upstream == nil }) {
            throw .usage(
                "\(Self.flag(spec)) \(spec) needs the servers that clients may connect to; add --upstream, --upstream-domain "
                    + "or an account"
            )
        }
        guard !needsServer || proxyProtocol.sends == nil else {
            throw .usage(
                "--proxy-protocol send: the built-in server does not support it; name a server that does with --upstream"
            )
        }
        var warnings: [String] = []
        if upstream != nil, isEveryServed {
            let flag = endpoint == nil ? "--upstream-domain" : "--upstream"
            warnings.append("\(flag) has no effect: every --listen names its own server")
        }
        let used = listeners.compactMap { $0.upstream ?? upstream }
        // The hosts of targets are looked up even if the server is given.
        if resolver != nil, named.isEmpty, !used.contains(where: { $0.address == nil }) {
            warnings.append("--resolver has no effect: no server is looked up by domain")
        }
        if allowRemote, proxyProtocol.accepts, proxyProtocol.senders.isEmpty {
            warnings.append(
                "--proxy-protocol accept: anyone who can connect can claim any client address; name the proxy in front with "
                    + "--proxy-protocol-from"
            )
        }
        if allowRemote, needsServer {
            warnings.append(
                "--allow-remote: other machines can reach the built-in server; anyone with one of its passwords can log "
                    + "in, and registration is disabled"
            )
        }
        self.warnings = warnings
        for (index, listener) in listeners.enumerated() {
            if let earlier = listeners[..<index].first(where: listener.overlaps) {
                throw .usage(
                    "\(Self.flag(listener)) \(listener): same address as \(Self.flag(earlier)) \(earlier); leave one out"
                )
            }
        }
    }

    /// The flag that opens a listener.
    private static func flag(_ listener: ListenSpec) -> String {
        switch listener.entry {
        case .stream: "--listen"
        case .request: "--socks"
        case .redirect: "--transparent"
        }
    }

    /// Returns whether the built-in server serves the clients of the listener at `endpoint`.
    func isServed(at endpoint: Endpoint) -> Bool {
        needsServer && hasUsualServer(at: endpoint)
    }

    /// Returns whether the listener at `endpoint` has no upstream, and therefore relays to the default server.
    func hasUsualServer(at endpoint: Endpoint) -> Bool { listener(at: endpoint)?.upstream == nil }

    /// Returns how connections to the listener at `endpoint` begin.
    func entry(at endpoint: Endpoint) -> ListenSpec.Entry { listener(at: endpoint)?.entry ?? .stream }

    private func listener(at endpoint: Endpoint) -> ListenSpec? {
        listeners.first { $0.port == endpoint.port } ?? listeners.first { $0.port == 0 }
    }
}

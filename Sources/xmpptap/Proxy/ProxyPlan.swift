internal import TapNetwork

/// Where clients come in, and who serves them.
struct ProxyPlan: Equatable {
    /// Where clients come in; those without a server of their own go to ``upstream``.
    let listeners: [ListenSpec]
    /// The server for all others; nil where that is the built-in one, or where there are no others.
    let upstream: Upstream?
    /// Some clients are served by the built-in server.
    let needsServer: Bool
    /// What the user should know, one line each.
    let warnings: [String]

    /// Resolves what was typed.
    init(
        listen: [ListenSpec],
        upstream endpoint: Endpoint?,
        domains: [Upstream.Domain] = [],
        resolver: Endpoint? = nil,
        proxyProtocol: ProxyProtocol = ProxyProtocol(),
        allowRemote: Bool = false
    ) throws(Failure) {
        listeners = listen.isEmpty ? [ListenSpec()] : listen
        if endpoint != nil, let domain = domains.first {
            throw .usage(
                "--upstream and --upstream-domain both say where clients are sent to; leave one out, or give the other a "
                    + "listener of its own, as in --listen PORT=domain:\(domain.name)"
            )
        }
        let upstream: Upstream? = endpoint.map { .endpoint($0) } ?? (domains.isEmpty ? nil : .domains(domains))
        self.upstream = upstream
        let isEveryServed = listeners.allSatisfy { $0.upstream != nil }
        needsServer = upstream == nil && !isEveryServed
        guard !needsServer || proxyProtocol.sends == nil else {
            throw .usage(
                "--proxy-protocol send: the built-in server does not take it; name a server that does with --upstream"
            )
        }
        var warnings: [String] = []
        if upstream != nil, isEveryServed {
            let flag = endpoint == nil ? "--upstream-domain" : "--upstream"
            warnings.append("\(flag) is not used: every --listen names a server of its own")
        }
        let used = listeners.compactMap { $0.upstream ?? upstream }
        if resolver != nil, !used.contains(where: { $0.endpoint == nil }) {
            warnings.append("--resolver is not used: no domain's server is looked up")
        }
        if allowRemote, proxyProtocol.accepts, proxyProtocol.senders.isEmpty {
            warnings.append(
                "--proxy-protocol accept: whoever reaches this program can claim any address; name the proxy in front with "
                    + "--proxy-protocol-from"
            )
        }
        if allowRemote, needsServer {
            warnings.append(
                "--allow-remote: the built-in server is open to other machines, so nobody can make an account on it; who "
                    + "has one of its passwords can log in"
            )
        }
        self.warnings = warnings
        for (index, listener) in listeners.enumerated() {
            if let earlier = listeners[..<index].first(where: listener.overlaps) {
                throw .usage("--listen \(listener): --listen \(earlier) listens there already; leave one out")
            }
        }
    }

    /// Whether clients that come in at `endpoint`, where one of the listeners has been opened, are served by the
    /// built-in server.
    func isServed(at endpoint: Endpoint) -> Bool {
        guard needsServer else { return false }
        return (listeners.first { $0.port == endpoint.port } ?? listeners.first { $0.port == 0 })?.upstream == nil
    }
}

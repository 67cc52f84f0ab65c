/// What was typed about listening.
struct ProxyRequest {
    /// `--listen`, each.
    var listen: [ListenRequest] = []
    /// `--upstream`.
    var upstream: HostPort?
    /// `--allow-remote`.
    var allowsRemote = false
}

/// What is meant by it: where clients come in, and where they are sent.
struct ProxyPlan: Equatable {
    /// Where clients come in.
    let listeners: [ListenRequest]
    /// Clients of some listener are sent to the built-in server.
    let needsServer: Bool
    /// What the user should know, one line each.
    let warnings: [String]

    /// Resolves a request: every listener gets its server, where one was named for it or for all.
    init(_ request: ProxyRequest) throws(Failure) {
        var listeners = request.listen.isEmpty ? [ListenRequest()] : request.listen
        var warnings: [String] = []
        for index in listeners.indices {
            listeners[index].upstream = listeners[index].upstream ?? request.upstream
            let listener = listeners[index]
            if !listener.isLocal {
                let meaning =
                    "other machines can connect to \(listener), and whoever does goes on to the server from here"
                guard request.allowsRemote else {
                    throw .usage("--listen \(listener): \(meaning); add --allow-remote if that is meant")
                }
                warnings.append("\(meaning) and into the logs")
            }
            if listener.port != 0,
                listeners[..<index].contains(where: { $0.port == listener.port && $0.host == listener.host })
            {
                throw .usage("--listen \(listener) is said twice; leave one of them out")
            }
        }
        let isUnused =
            request.upstream != nil && !request.listen.isEmpty && request.listen.allSatisfy { $0.upstream != nil }
        if isUnused { warnings.append("--upstream is not used: every --listen names a server of its own") }
        for listener in listeners {
            guard let upstream = listener.upstream, let own = Self.listener(upstream, of: listeners) else { continue }
            throw .usage("--upstream \(upstream) is where --listen \(own) takes clients in; name the server instead")
        }
        self.listeners = listeners
        self.warnings = warnings
        needsServer = listeners.contains { $0.upstream == nil }
    }

    /// The listener that `upstream` would lead back to, as far as that can be seen without asking for names.
    private static func listener(_ upstream: HostPort, of listeners: [ListenRequest]) -> ListenRequest? {
        listeners.first { listener in
            guard listener.port == upstream.port else { return false }
            let isLocal = ListenRequest(host: upstream.host).isLocal
            return listener.host.map { $0 == upstream.host || $0 == "localhost" && isLocal } ?? isLocal
        }
    }
}

internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import TapControl
internal import TapCore
internal import TapNetwork
internal import TapSecurity

/// The flags for listeners and servers.
struct ProxyOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Account or domain: finds its server, and checks it first.",
            discussion: """
                The server is looked up by DNS, unless --upstream says where it is. A certificate that cannot be verified is \
                shown; on a terminal xmpptap asks whether to trust it, otherwise it ends. A certificate authority for the \
                domain is created if there is none, and what to set in the client is printed. A resource is ignored.
                """,
            valueName: "account"
        ),
        transform: ProxyTarget.init
    )
    var target: ProxyTarget?

    @Option(
        help: ArgumentHelp(
            "Address to listen on; repeatable (default: 15222).",
            discussion: """
                Without a host: both loopback addresses. Port 0: any free port. "=HOST[:PORT]" sets the server of this \
                listener, instead of --upstream and --upstream-domain. "=domain:NAME" looks up that domain's server.
                """,
            valueName: "[host:]port[=host[:port]|=domain:name]"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var listen: [ListenSpec] = []

    @Flag(
        name: .customLong("s2s"),
        help: ArgumentHelp(
            "Relay streams between servers.",
            discussion: """
                The usual ports are 15269 and 5269, and --upstream-domain looks up the server for other servers. With \
                --tls intercept, xmpptap requests the certificate of the initiating server, verifies it as --upstream-ca \
                says, and only if it is valid shows the receiving server a certificate for the same names. See \
                'xmpptap help federation'.
                """
        )
    )
    var s2s = false

    @Option(
        help: ArgumentHelp(
            "Address to listen on for WebSocket; repeatable.",
            discussion: """
                As --listen; with a path, WebSockets are accepted there only. "=URL" sets the server of this listener, \
                instead of --upstream. Other requests (pages, uploads) are relayed to the same server; BOSH is also \
                decoded. With --tls intercept, TLS and, from this machine, clear text are accepted.
                """,
            valueName: "[host:]port[/path][=url]"
        ),
        transform: { text throws(EndpointError) in try WebListenSpec(text) }
    )
    var listenWs: [WebListenSpec] = []

    @OptionGroup var pages: PageOptions

    @Flag(help: "Answer host-meta requests with the address of --listen-ws (XEP-0156).")
    var hostMeta = false

    @Option(
        help: ArgumentHelp(
            "Port for SOCKS5 and HTTP CONNECT; repeatable.",
            discussion: """
                The client names the target of each connection, which must belong to the servers of --upstream, \
                --upstream-domain or the account: other targets are refused. Without --listen, no other port is opened. \
                "=HOST[:PORT]" and "=domain:NAME" list the servers of this port instead.
                """,
            valueName: "[host:]port[=host[:port]|=domain:name]"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var socks: [ListenSpec] = []

    @Option(
        help: ArgumentHelp(
            "File with the users of --socks, as lines user:password.",
            discussion: """
                Clients on other machines must log in, clients on this machine may. Other users must not be able to read \
                the file.
                """,
            valueName: "path"
        ),
        completion: .file()
    )
    var socksUsers: String?

    @Option(
        help: ArgumentHelp(
            "Port for connections that nftables redirects; repeatable.",
            discussion: """
                Each is relayed to its original destination, which must belong to the servers as with --socks. The rules \
                are in 'xmpptap help transparent'. IPv4 and IPv6 need an address each: 0.0.0.0 and [::].
                """,
            valueName: "[host:]port[=host[:port]|=domain:name]"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var transparent: [ListenSpec] = []

    @Flag(
        help: ArgumentHelp(
            "Relay targets that belong to no listed server.",
            discussion: """
                With --socks and --transparent. They are relayed without decoding: the log has a record for the beginning \
                and one for the end of such a connection, with its target and its number of bytes.
                """
        )
    )
    var relayOthers = false

    @Option(
        name: .customLong("upstream"),
        help: ArgumentHelp(
            "Server to connect clients to, port 5222 unless given (default: a built-in server).",
            discussion: """
                For --listen-ws, the URL of a WebSocket: ws://host[:port][/path], or wss:// with TLS; or an https:// URL, \
                to find the WebSocket by the host-meta file there.
                """,
            valueName: "host[:port]|url"
        ),
        transform: { text throws(Failure) in
            do throws(EndpointError) {
                if text.lowercased().hasPrefix("https://") { return .hostMeta(try HTTPSAddress(text)) }
                if text.contains("://") { return .web(try WebServer(text)) }
                return .server(try Endpoint.server(text, usualPort: 0))
            } catch {
                throw .usage("\(error)\(AdviceTable.advice(for: error.code).map { "; \($0)" } ?? "")")
            }
        }
    )
    var typedUpstream: TypedUpstream?

    /// The server for --listen.
    var upstream: Endpoint? {
        guard case .server(var endpoint) = typedUpstream else { return nil }
        if endpoint.port == 0 { endpoint.port = Endpoint.usualPort(for: peers) }
        return endpoint
    }

    /// The peers that connect.
    var peers: ServerReference.Service { s2s ? .servers : .clients }

    /// The server for --listen-ws.
    var webServer: WebServer? { if case .web(let server) = typedUpstream { server } else { nil } }

    @Option(
        help: ArgumentHelp(
            "Domain whose server is looked up by DNS; repeatable.",
            discussion: """
                The lookup is that of a client: SRV records, otherwise the domain's address and port 5222. Clients of any \
                other domain get the stream error host-unknown. For --listen-ws, the domain's WebSocket is found by \
                host-meta (XEP-0156).
                """,
            valueName: "domain"
        ),
        transform: { text throws(EndpointError) in try Upstream.Domain(text) }
    )
    var upstreamDomain: [Upstream.Domain] = []

    @Option(
        help: ArgumentHelp(
            "DNS server to query (default: the system's).",
            valueName: "host:port"
        ),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @Option(
        help: ArgumentHelp(
            "Pass client addresses with the PROXY protocol; repeatable.",
            discussion: """
                accept: read a PROXY header (version 1 or 2) from the proxy in front; connections without one are \
                closed. send: send a version 2 header to the server, which must expect it; send-v1: version 1. Several \
                are separated by commas.
                """,
            valueName: "accept|send|send-v1"
        ),
        completion: .list(["accept", "send", "send-v1"]),
        transform: ProxyProtocolFlag.init
    )
    var proxyProtocol: [ProxyProtocolFlag] = []

    @Option(
        help: ArgumentHelp(
            "Networks allowed to send PROXY headers; repeatable (default: all).",
            valueName: "address[/bits]"
        ),
        transform: { text throws(Failure) in
            guard let range = AddressRange(text) else {
                throw .usage("write an IP address or a network, as in 192.0.2.0/24")
            }
            return range
        }
    )
    var proxyProtocolFrom: [AddressRange] = []

    @Option(
        help: ArgumentHelp(
            "What to do with a malformed stream (default: relay).",
            discussion: """
                relay: relay the rest without parsing it. close: close the session with a stream error; the default with \
                --log-required.
                """,
            valueName: "relay|close"
        ),
        completion: .choices(UnparsablePolicy.self),
        transform: UnparsablePolicy.typed
    )
    var onUnparsable: UnparsablePolicy?

    @Option(
        help: ArgumentHelp(
            "What to do with a stanza over --limit item (default: relay).",
            discussion: """
                relay: relay it as it arrives, with a warning if there are rules: they are not evaluated for it. refuse: \
                close the session with policy-violation; stanzas are then relayed when they are complete. \
                --on-unparsable close implies refuse.
                """,
            valueName: "relay|refuse"
        ),
        completion: .choices(OversizePolicy.self),
        transform: OversizePolicy.typed
    )
    var onOversize: OversizePolicy?

    @Option(
        help: ArgumentHelp(
            "Set a resource limit; repeatable.",
            discussion: """
                Sizes: item=1MiB (a stanza), login-item=64KiB (any item before the session is open), tag=64KiB, name=1KiB, \
                waiting=256KiB (data after <starttls/>, buffered until the answer). Numbers: depth=256, attributes=256, \
                namespaces=256, connections (half of the file descriptors), connections-per-address=0, authorities=64 \
                (CAs in --ca-dir; at this number none is created on demand). Seconds: login=60, idle=0. For connections, \
                connections-per-address, login and idle, 0 disables the limit.
                """,
            valueName: "name=value"
        ),
        transform: LimitFlag.init
    )
    var limit: [LimitFlag] = []

    @Option(
        help: ArgumentHelp(
            "Ping a client that sends no stanza for this time.",
            discussion: """
                A client that does not answer is reported with a warning, and stays connected. A client that is \
                inactive (XEP-0352) is not pinged. The server never gets the answers; with stream management the counts \
                of both ends stay right.
                """,
            valueName: "time"
        ),
        transform: { text throws(Failure) in try TimeSpan.parse(text) }
    )
    var ping: Int64?

    @Option(
        help: ArgumentHelp("Time a client has to answer --ping (default: 10s).", valueName: "time"),
        transform: { text throws(Failure) in try TimeSpan.parse(text) }
    )
    var pingTimeout: Int64?

    @Option(
        help: ArgumentHelp(
            "What --ping sends (default: iq).",
            discussion: """
                iq: a ping (XEP-0199). sm: a request for an acknowledgement (XEP-0198), or a ping where stream management \
                is off. whitespace: one space, which has no answer.
                """,
            valueName: "iq|sm|whitespace"
        ),
        completion: .list(["iq", "sm", "whitespace"]),
        transform: { text throws(Failure) in
            guard let method = PingOptions.Method(rawValue: text) else { throw .usage("write iq, sm or whitespace") }
            return method
        }
    )
    var by: PingOptions.Method?

    /// Options for pinging clients; nil if pings are off.
    func pingOptions() throws(Failure) -> PingOptions? {
        guard let ping else {
            guard pingTimeout == nil, by == nil else { throw .usage("--ping-timeout and --by need --ping") }
            return nil
        }
        var options = PingOptions(interval: ping)
        if let pingTimeout { options.timeout = pingTimeout }
        if let by { options.method = by }
        return options
    }

    @Option(
        help: ArgumentHelp(
            "Socket to control the running proxy by (default: one per process).",
            discussion: """
                A Unix socket that only you can open, with HTTP and JSON; by default control-PID.sock in \
                $XDG_RUNTIME_DIR/xmpptap. none: no control socket.
                """,
            valueName: "path|none"
        ),
        completion: .file(),
        transform: ControlFlag.init
    )
    var control = ControlFlag.usual

    @Option(
        name: .customLong("web"),
        help: ArgumentHelp(
            "Show sessions and records in the browser, on this port.",
            discussion: """
                Prints the address of the page, which contains a secret. While it is open, the newest 100,000 records are \
                kept for it, in at most 64 MiB. Only addresses of this machine; from another one, use ssh -L PORT:127.0.0.1:PORT. Port 0: any \
                free port.
                """,
            valueName: "[host:]port"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var page: ListenSpec?

    @Flag(
        help: ArgumentHelp(
            "Let the page of --web act on sessions.",
            discussion: """
                The page has one more view, in which stanzas are injected, held, edited and dropped, rules are switched and \
                reloaded, and levels are changed. Held stanzas pass when the last page is closed. Who has the address of the \
                page can do all of this.
                """
        )
    )
    var webAct = false

    @Flag(
        help: ArgumentHelp(
            "Show sessions and records in this terminal.",
            discussion: """
                The inspector owns the terminal: standard output has no log, and messages are shown in it (key m). ? lists \
                the keys; q ends the proxy, as SIGTERM does. Keeps records as --web does, and works together with it.
                """
        )
    )
    var tui = false

    @Option(
        help: ArgumentHelp(
            "Serve metrics in Prometheus format on a TCP port.",
            discussion: """
                Without a host: 127.0.0.1. Port 0: any free port. Other addresses need --allow-remote. The control socket \
                has the same at /metrics.
                """,
            valueName: "[host:]port"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var metrics: ListenSpec?

    /// Returns the listening port for metrics; nil if they are disabled.
    func metricsPort() throws(Failure) -> TCPPort? {
        guard let metrics else { return nil }
        guard metrics.upstream == nil else { throw .usage("--metrics has no server; leave out what follows =") }
        let host = metrics.host == nil || metrics.host == "localhost" ? "127.0.0.1" : metrics.host ?? ""
        guard allowRemote || Endpoint(host: host, port: metrics.port).isLoopback else {
            throw .usage("--metrics \(metrics): other machines can read it; add --allow-remote to allow this")
        }
        do throws(ControlError) {
            return try TCPPort(host: host, port: metrics.port)
        } catch {
            let advice = AdviceTable.advice(for: error.code).map { "; \($0)" } ?? ""
            throw .network("--metrics: \(error)\(advice)")
        }
    }

    @Flag(help: "Allow listeners that other machines can reach.")
    var allowRemote = false

    @Option(
        help: ArgumentHelp(
            "Time open sessions get at shutdown, in seconds (default: 10).",
            valueName: "seconds"
        ),
        transform: { try Number.parse($0, in: 0...3600) }
    )
    var grace = 10
}

/// The value of --upstream.
enum TypedUpstream: Hashable {
    case server(Endpoint)
    case web(WebServer)
    /// The place of host-meta files, which name the server.
    case hostMeta(HTTPSAddress)
}

extension ProxyOptions {
    /// The domain whose host-meta names the WebSocket of listeners without a server, and the address of the file; nil if
    /// none is needed.
    func hostMetaPlace() throws(Failure) -> (domain: String, base: HTTPSAddress?)? {
        guard listenWs.contains(where: { $0.server == nil }), webServer == nil else { return nil }
        if case .hostMeta(let base) = typedUpstream { return (base.host, base) }
        guard let domain = upstreamDomain.first else { return nil }
        guard upstreamDomain.count == 1 else {
            throw .usage(
                "--listen-ws with several domains: name the server of each, as in --listen-ws 15280=wss://HOST/PATH"
            )
        }
        return (domain.ascii, nil)
    }

    /// Finds the server of listeners without one by host-meta.
    ///
    /// - Parameter trust: How certificates are verified.
    mutating func findWebServer(_ place: (domain: String, base: HTTPSAddress?), trust: ServerLegTLS) async throws {
        let name = place.base.map(\.description) ?? place.domain
        let report: HostMetaReport
        do {
            report = try await HostMetaSearch.report(
                place.domain,
                at: place.base,
                tls: trust,
                timeout: .seconds(10),
                on: MultiThreadedEventLoopGroup.singleton.next()
            )
        } catch let error as TLSContextError {
            throw Failure.file("--upstream-ca: \(error)")
        }
        for warning in report.warnings { Console.printDiagnostic("warning: \(Console.escaped(warning))") }
        guard let server = report.servers.first else {
            let lines = report.lines.map(Console.escaped).joined(separator: "; ")
            throw Failure.network(
                "\(name) names no WebSocket with TLS: \(lines); name it with --upstream wss://HOST/PATH"
            )
        }
        Console.printStandardError("host-meta of \(name) names \(Console.escaped(server.description))")
        for index in listenWs.indices where listenWs[index].server == nil { listenWs[index].server = server }
        // Without other listeners, the domain was named for these.
        if listen.isEmpty, socks.isEmpty, transparent.isEmpty { upstreamDomain = [] }
    }

    /// Checks the options of web listeners.
    func checkWeb(_ tls: InterceptOptions) throws(Failure) {
        let isPassed = tls.tls == .passthrough
        if listenWs.isEmpty, typedUpstream != nil, upstream == nil {
            throw .usage("--upstream with a URL is for WebSockets; add --listen-ws, as in --listen-ws 15280")
        }
        let isFound = try hostMetaPlace() != nil
        if let lacking = listenWs.first(where: { $0.server == nil }), webServer == nil, !isFound {
            throw .usage(
                "--listen-ws \(lacking) has no server; add --upstream ws://HOST:PORT/PATH, or --upstream-domain DOMAIN"
            )
        }
        if !listenWs.isEmpty, try ProxyProtocolFlag.join(proxyProtocol).sends != nil {
            throw .usage("--proxy-protocol send has no effect on --listen-ws; leave one out")
        }
        let servers = listenWs.compactMap { $0.server ?? webServer }
        if isPassed, let server = servers.first(where: \.isSecure)?.description ?? (isFound ? "wss://" : nil) {
            throw .usage("\(server) needs --tls intercept: a WebSocket is found inside TLS")
        }
        if !listenWs.isEmpty, tls.clientTls != .auto {
            throw .usage("--client-tls \(tls.clientTls.rawValue) has no effect on --listen-ws; leave one out")
        }
        if let server = servers.first(where: { !$0.isSecure }), let flag = tls.flagRequiringServerTLS {
            throw .usage("\(flag): \(server) has no TLS; write wss:// or leave \(flag) out")
        }
        if webAct, page == nil { throw .usage("--web-act needs --web; add it, as in --web 8080") }
        if listenWs.isEmpty, hostMeta { throw .usage("--host-meta needs --listen-ws") }
        try pages.check(isUsed: !listenWs.isEmpty)
    }

    /// Checks the options of streams between servers.
    func checkServers() throws(Failure) {
        guard s2s else { return }
        if let target { throw .usage("--s2s relays servers: \(target.jid) has no effect; leave one out") }
        guard upstream != nil || !upstreamDomain.isEmpty || !listen.isEmpty && listen.allSatisfy({ $0.upstream != nil })
        else { throw .usage("--s2s needs the server; add --upstream HOST:PORT or --upstream-domain DOMAIN") }
        let others = [
            ("--listen-ws", !listenWs.isEmpty), ("--socks", !socks.isEmpty), ("--ping", ping != nil),
        ]
        if let flag = others.first(where: { $0.1 })?.0 {
            throw .usage("\(flag) is for clients: leave out --s2s or \(flag)")
        }
    }

    /// Whether all listeners are for WebSockets.
    var isOnlyWeb: Bool {
        !listenWs.isEmpty && listen.isEmpty && upstream == nil && target == nil && upstreamDomain.isEmpty
    }

    /// How clients of web listeners are treated.
    var web: WebOptions {
        var options = pages.web
        options.answersHostMeta = hostMeta
        return options
    }
}

internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix

/// One listening socket.
struct Listener: Sendable {
    let channel: any Channel
    let address: SocketAddress
    /// The specification of a web listener; nil for others.
    var web: WebListenSpec?

    var endpoint: Endpoint { address.endpoint ?? Endpoint(host: "?", port: 0) }
}

/// Opens the listeners of a proxy: either all of them, or none if there is an error.
struct Listeners {
    /// Maximum number of attempts if the port that the system chose for IPv4 is in use for IPv6.
    private static let attempts = 16

    let group: any EventLoopGroup
    let metrics: ProxyMetrics
    let logger: Logger
    let allowRemote: Bool
    /// Further addresses on which this program listens.
    let reserved: [SocketAddress]
    private var inherited: InheritedSockets
    private(set) var open: [Listener] = []

    init(
        group: any EventLoopGroup,
        metrics: ProxyMetrics,
        logger: Logger,
        allowRemote: Bool,
        reserved: [SocketAddress] = [],
        inherited: InheritedSockets
    ) {
        self.group = group
        self.metrics = metrics
        self.logger = logger
        self.allowRemote = allowRemote
        self.reserved = reserved
        self.inherited = inherited
    }

    /// Opens the listeners of one specification. Each accepted channel is passed to `accept` on its own event loop.
    ///
    /// - Parameter upstream: The server, if it is the same for all clients; nil otherwise.
    mutating func open(
        _ spec: ListenSpec,
        web: WebListenSpec? = nil,
        upstream: Endpoint?,
        accept: @escaping @Sendable (any Channel) throws -> Void
    ) async throws(ProxyError) {
        let places = try await ListenerAddresses(spec)
        for address in places.addresses where !address.isLoopback {
            let text = "\(address.endpoint ?? Endpoint(host: "?", port: spec.port))"
            guard allowRemote else { throw ProxyError(code: .remoteNotAllowed, address: text) }
            logger.warning(
                """
                listening on \(text): other machines can connect and log in through this proxy, and their traffic is \
                recorded
                """
            )
        }
        var targets: [SocketAddress] = []
        if let upstream { targets = await SystemNames.lookUp(upstream) }
        try refuseLoop(places.addresses + reserved, targets, upstream)
        let bootstrap = bootstrap(accept, separatesIPv6: spec.entry == .redirect)
        let earlier = open.count
        if places.isPair {
            try await openPair(places.addresses, bootstrap)
        } else {
            for address in places.addresses { open.append(try await bind(address, bootstrap)) }
        }
        for index in open.indices.dropFirst(earlier) { open[index].web = web }
        try refuseLoop(open.map(\.address), targets, upstream)
    }

    /// Warns of sockets inherited from the service manager that no listener uses; connections to them are never
    /// accepted.
    func warnOfUnusedSockets() {
        for address in inherited.addresses {
            let text = address.endpoint?.description ?? "?"
            logger.warning("the service manager's socket at \(text) is unused: no listener has that address and port")
        }
    }

    /// Closes all listeners.
    func close() async {
        for listener in open { try? await listener.channel.close() }
    }

    private func refuseLoop(
        _ addresses: [SocketAddress],
        _ targets: [SocketAddress],
        _ upstream: Endpoint?
    ) throws(ProxyError) {
        for address in addresses where targets.contains(where: address.accepts) {
            throw ProxyError(
                code: .relaysToItself(upstream: upstream?.description ?? ""),
                address: address.endpoint?.description ?? "?"
            )
        }
    }

    // MARK: Binding

    /// Listens on both loopback addresses with the same port; an address that this machine lacks is skipped.
    private mutating func openPair(_ addresses: [SocketAddress], _ bootstrap: ServerBootstrap) async throws(ProxyError)
    {
        for attempt in 1... {
            do throws(ProxyError) {
                open += try await bindPair(addresses, bootstrap)
                return
            } catch {
                // The port that the system chose for the first address is in use for the second: let it choose another.
                guard error.code == .portInUse, addresses.allSatisfy({ $0.port == 0 }), attempt < Self.attempts else {
                    throw error
                }
            }
        }
    }

    private mutating func bindPair(
        _ addresses: [SocketAddress],
        _ bootstrap: ServerBootstrap
    ) async throws(ProxyError) -> [Listener] {
        var bound: [Listener] = []
        var missing: [String] = []
        for address in addresses {
            let port = bound.first?.address.port ?? address.port ?? 0
            do throws(ProxyError) {
                bound.append(try await bind(address.with(port: port), bootstrap))
            } catch {
                guard error.code == .noLoopback else {
                    for listener in bound { try? await listener.channel.close() }
                    throw error
                }
                missing.append(address.ipAddress ?? "?")
            }
        }
        guard !bound.isEmpty else {
            let port = addresses.first?.port ?? 0
            throw ProxyError(code: .noLoopback, address: Endpoint(host: "localhost", port: port).description)
        }
        for address in missing { logger.notice("not listening on \(address): this machine does not have that address") }
        return bound
    }

    private mutating func bind(
        _ address: SocketAddress,
        _ bootstrap: ServerBootstrap
    ) async throws(ProxyError) -> Listener {
        let socket = inherited.take(address)
        do {
            let opening = socket.map { bootstrap.withBoundSocket($0) } ?? bootstrap.bind(to: address)
            let channel = try await opening.get()
            return Listener(channel: channel, address: channel.localAddress ?? address)
        } catch {
            throw ProxyError(
                code: Self.code(error, isLoopback: address.isLoopback),
                address: address.endpoint?.description ?? "?"
            )
        }
    }

    /// Returns the error code for a failed attempt to listen.
    static func code(_ error: any Error, isLoopback: Bool) -> ProxyError.Code {
        guard let error = error as? IOError else { return .cannotListen("\(error)") }
        switch error.errnoCode {
        case EADDRINUSE: return .portInUse
        case EACCES: return .portNotAllowed
        case EADDRNOTAVAIL where isLoopback, EAFNOSUPPORT where isLoopback: return .noLoopback
        default: return .cannotListen(error.message)
        }
    }

    /// - Parameter separatesIPv6: Whether `::` does not include IPv4. The system does not return the original destination
    ///   of an IPv4 connection to an IPv6 socket.
    private func bootstrap(
        _ accept: @escaping @Sendable (any Channel) throws -> Void,
        separatesIPv6: Bool
    ) -> ServerBootstrap {
        let (metrics, logger) = (metrics, logger)
        return ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.socketOption(.so_keepalive), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause(metrics: metrics, logger: logger))
                    // Only an IPv6 socket has this option.
                    if separatesIPv6 { channel.separateIPv6() }
                }
            }
            .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try accept(channel) } }
    }
}

/// Pauses a listener that cannot accept a connection for lack of file descriptors or memory. Otherwise it would be
/// closed, or retry continuously.
private final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let pause = TimeAmount.milliseconds(500)

    private let metrics: ProxyMetrics
    private let logger: Logger
    private var isPaused = false

    init(metrics: ProxyMetrics, logger: Logger) {
        self.metrics = metrics
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isPaused, let error = error as? IOError else { return context.fireErrorCaught(error) }
        isPaused = true
        metrics.acceptPaused()
        let hint = error.errnoCode == EMFILE ? "; raise the limit of open files (ulimit -n)" : ""
        logger.error("cannot accept a connection: \(error.message)\(hint)")
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        let channel = context.channel
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { [self] in
            isPaused = false
            try? channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }
}

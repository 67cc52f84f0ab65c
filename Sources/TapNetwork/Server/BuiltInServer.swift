package import NIOCore
internal import NIOPosix
package import TapCore
package import TapSecurity

/// The built-in XMPP server: small, but complete enough for real clients.
///
/// It is used by `demo`, by a proxy without an upstream, and by tests, on loopback addresses only. `serve` uses it with
/// a ``ServerResponder``. All its connections and its ``ServerDirectory`` are used on one event loop, so that it needs
/// no locks.
package final class BuiltInServer: Sendable {
    /// Maximum number of bytes buffered for a client that does not read; above it, the stream is closed. 8 MiB.
    ///
    /// Reading from a client stops long before its own answers reach this limit. Only stanzas from other clients can.
    package static let pendingLimit = 8 << 20

    private let loop: any EventLoop
    private let state: NIOLoopBound<ServerState>
    private let listeners: [any Channel]

    private init(loop: any EventLoop, state: NIOLoopBound<ServerState>, listeners: [any Channel]) {
        self.loop = loop
        self.state = state
        self.listeners = listeners
    }

    /// Listens on a loopback address and serves clients until ``stop()``.
    ///
    /// - Parameters:
    ///   - host: `127.0.0.1` or `::1`; other addresses are refused.
    ///   - port: The port; 0 lets the system choose one, which ``address`` returns.
    ///   - settings: Domain, accounts and limits.
    ///   - identity: The certificate shown to clients that use STARTTLS; if nil, the default, STARTTLS is not offered.
    ///   - cryptography: Digests and random bytes.
    ///   - group: The event loops; one of them is used.
    /// - Throws: `IOError` if the port is not available; ``BuiltInServerError`` if the address is not a loopback
    ///   address; ``JIDError`` if an account's name is not a valid local part; ``TLSContextError`` if OpenSSL cannot be
    ///   set up for TLS.
    package static func start(
        host: String = "127.0.0.1",
        port: Int,
        settings: ServerSettings,
        identity: TLSIdentity? = nil,
        cryptography: any Cryptography,
        group: any EventLoopGroup
    ) async throws -> BuiltInServer {
        guard try SocketAddress(ipAddress: host, port: port).isLoopback else {
            throw BuiltInServerError(host: host)
        }
        var settings = settings
        settings.offersStartTLS = identity != nil
        do {
            return try await start(
                at: [Place(endpoint: Endpoint(host: host, port: port))],
                settings: settings,
                identity: identity,
                cryptography: cryptography,
                group: group
            ) { _ in nil }
        } catch let error as ListenError {
            throw error.reason
        }
    }

    /// An address to listen on.
    struct Place {
        /// An IP address and a port; port 0 lets the system choose one.
        var endpoint: Endpoint
        /// The checks of requests for WebSockets; nil if clients begin with a stream.
        var access: WebAccess?
    }

    /// A listener failed.
    struct ListenError: Error {
        let place: Place
        let reason: IOError
    }

    /// Listens on any addresses, with a responder that may answer the clients instead of the accounts.
    ///
    /// - Throws: ``ListenError`` if a port is not available.
    static func start(
        at places: [Place],
        settings: ServerSettings,
        identity: TLSIdentity?,
        cryptography: any Cryptography,
        group: any EventLoopGroup,
        responder: @escaping @Sendable (any EventLoop) -> (any ServerResponder)?
    ) async throws -> BuiltInServer {
        let tls = try identity.map { ServerTLS(context: try TLSContext(ClientLegTLS()), identity: $0) }
        let loop = group.next()
        let state = try await loop.submit { [settings] in
            let responder = responder(loop)
            let core = try ServerCore(settings: settings, cryptography: cryptography, responder: responder)
            let state = ServerState(core, tls)
            responder?.attach(to: core.directory, state)
            return NIOLoopBound(state, eventLoop: loop)
        }.get()
        var listeners: [any Channel] = []
        do {
            for place in places { listeners.append(try await listen(place, state, on: loop)) }
        } catch {
            for listener in listeners { try? await listener.close() }
            throw error
        }
        return BuiltInServer(loop: loop, state: state, listeners: listeners)
    }

    private static func listen(
        _ place: Place,
        _ state: NIOLoopBound<ServerState>,
        on loop: any EventLoop
    ) async throws -> any Channel {
        let access = place.access
        let bootstrap = ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 4096, maximum: 65536)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let access {
                        let listener = ServerWebListener(state.value, access)
                        try pipeline.addHandler(WebEntry(listener, AcceptedConnection(channel)))
                    } else {
                        try pipeline.addHandler(ServerConnectionHandler(state.value))
                    }
                }
            }
        do {
            return try await bootstrap.bind(host: place.endpoint.host, port: place.endpoint.port).get()
        } catch let error as IOError {
            throw ListenError(place: place, reason: error)
        }
    }

    /// The address on which the server listens: the first, if there are several.
    package var address: SocketAddress? { listeners.first?.localAddress }

    /// The addresses on which the server listens, in the order of the places.
    var addresses: [SocketAddress?] { listeners.map(\.localAddress) }

    /// Stops listening and closes every stream with `<system-shutdown/>`; returns when the connections are closed, at
    /// the latest after two seconds. Further calls have no effect.
    package func stop() async throws {
        for listener in listeners {
            do { try await listener.close() } catch ChannelError.alreadyClosed {}
        }
        try await loop.flatSubmit { self.state.value.shutDown(on: self.loop) }.get()
    }
}

/// The built-in server must not listen on an address that other machines can reach.
package struct BuiltInServerError: Error, Sendable, CustomStringConvertible {
    /// The address that was refused.
    package let host: String

    /// The problem, in one line.
    package var description: String { "the built-in server listens on loopback addresses only; \(host) is not one" }
}

internal import Glibc
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// Serves HTTP/1.1 on a listening socket, on a separate thread so that its clients do not delay relayed sessions.
struct HTTPListener: Sendable {
    /// Maximum number of connections; further ones are answered with status 503.
    static let maximumConnections = 64
    /// Idle time after which a connection is closed.
    private static let idleTimeout = TimeAmount.seconds(60)

    /// Default of ``headTime``; it keeps incomplete requests from using up the connections.
    static let usualHeadTime = TimeAmount.seconds(10)

    /// The listening socket, which the listener closes at the end.
    let descriptor: Int32
    /// Whether only processes of this user and of root are served, for Unix sockets.
    let checksUser: Bool
    let routes: [Route]
    let logger: Logger
    /// Throws a ``Problem`` if a request must not be answered.
    var admit: @Sendable (HTTPRequest) throws -> Void = { _ in }
    /// Fields of every response.
    var headers: HTTPFields = [:]
    /// Time limit from the connection, or from the last response, to the end of a request's head.
    var headTime = usualHeadTime

    /// The connections whose clients have closed their side: a browser closes the connection of a request that its page cancels.
    private final class ClosedInputs: Sendable {
        private let connections = Mutex<Set<ObjectIdentifier>>([])

        func insert(_ channel: any Channel) { connections.withLock { _ = $0.insert(ObjectIdentifier(channel)) } }
        func remove(_ channel: any Channel) { connections.withLock { _ = $0.remove(ObjectIdentifier(channel)) } }
        func contains(_ channel: any Channel) -> Bool {
            connections.withLock { $0.contains(ObjectIdentifier(channel)) }
        }
    }

    /// Closes a connection on which no request arrives in time, and notes that the client has closed its side.
    ///
    /// It sees requests on the event loop. A request that has arrived is never closed because the tasks that answer
    /// requests have to wait for a thread.
    private final class HeadDeadline: ChannelDuplexHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias InboundOut = HTTPServerRequestPart
        typealias OutboundIn = HTTPServerResponsePart
        typealias OutboundOut = HTTPServerResponsePart

        private let time: TimeAmount
        private let closed: ClosedInputs
        private var scheduled: Scheduled<Void>?
        /// Number of requests without a complete response.
        private var pending = 0

        init(_ time: TimeAmount, _ closed: ClosedInputs) { (self.time, self.closed) = (time, closed) }

        func channelActive(context: ChannelHandlerContext) {
            begin(context.channel)
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .head = unwrapInboundIn(data) {
                pending += 1
                end()
            }
            context.fireChannelRead(data)
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if case .end = unwrapOutboundIn(data) {
                // Connections that are refused get a response without a request.
                pending = max(0, pending - 1)
                if pending == 0 { begin(context.channel) }
            }
            context.write(data, promise: promise)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event as? ChannelEvent == .inputClosed { closed.insert(context.channel) }
            context.fireUserInboundEventTriggered(event)
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            closed.remove(context.channel)
            end()
        }

        private func begin(_ channel: any Channel) {
            end()
            scheduled = channel.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
        }

        private func end() {
            scheduled?.cancel()
            scheduled = nil
        }
    }

    private final class OpenConnections: Sendable {
        let count = Atomic(0)
    }

    private typealias Connection = HTTP1Channel.Value

    /// Accepted connections until they are handled.
    ///
    /// When the task is cancelled, NIO drops the connections that it has not handed over yet. A `NIOAsyncChannel` that is
    /// dropped without being finished traps. So NIO gets only the channels, and the connections stay here.
    private final class PendingConnections: Sendable {
        private let connections = Mutex<[ObjectIdentifier: Connection]>([:])

        func add(_ connection: Connection) {
            connections.withLock { $0[ObjectIdentifier(connection.channel)] = connection }
        }

        func take(_ channel: any Channel) -> Connection? {
            connections.withLock { $0.removeValue(forKey: ObjectIdentifier(channel)) }
        }

        /// Closes the connections that were dropped. Call it after the listening socket was closed.
        func close() async {
            let dropped = connections.withLock { connections in
                defer { connections = [:] }
                return connections
            }
            for connection in dropped.values { try? await connection.executeThenClose { _, _ in } }
        }
    }

    /// Serves until the task is cancelled, then closes all connections. When it returns, no task waits for an event loop, which can
    /// therefore be ended: a task that awaits a future of an event loop that has ended never continues.
    func run(on group: any EventLoopGroup) async throws {
        let pending = PendingConnections()
        let result: Result<Void, any Error>
        do {
            result = .success(try await accept(on: group, pending))
        } catch {
            result = .failure(error)
        }
        // NIO sets a connection up one turn of its event loop after accepting it, which can be after the listening socket
        // was closed.
        for loop in group.makeIterator() { try? await loop.submit {}.get() }
        await pending.close()
        try result.get()
    }

    private func accept(on group: any EventLoopGroup, _ pending: PendingConnections) async throws {
        let closed = ClosedInputs()
        let http = HTTP1Channel(
            responder: { request, writer, channel in
                var response = await Problem.answering {
                    try admit(request.head)
                    return try await Route.respond(to: request, by: routes) {
                        !channel.isActive || closed.contains(channel)
                    }
                }
                response.headers.append(contentsOf: headers)
                try await writer.write(response: response.head, body: response.body)
            },
            configuration: HTTP1Channel.Configuration(
                idleTimeout: Self.idleTimeout,
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 8 << 10,
                    maxHeaderListSize: 32 << 10,
                    maxHeaderFieldCount: 64
                )
            )
        )
        let listener = try await ServerBootstrap(group: group)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(descriptor) { channel in
                http.setup(channel: channel, logger: logger).flatMapThrowing { connection in
                    pending.add(connection)
                    let pipeline = channel.pipeline.syncOperations
                    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                    try pipeline.addHandler(HeadDeadline(headTime, closed), position: .after(decoder))
                    return channel
                }
            }
        let open = OpenConnections()
        try await withThrowingDiscardingTaskGroup { tasks in
            try await listener.executeThenClose { connections in
                for try await channel in connections {
                    guard let connection = pending.take(channel) else { continue }
                    let isAdmitted = open.count.add(1, ordering: .relaxed).newValue <= Self.maximumConnections
                    tasks.addTask {
                        await withTaskCancellationHandler {
                            if checksUser, await !Self.isOfUser(connection.channel) {
                                try? await connection.executeThenClose { _, _ in }
                            } else if isAdmitted {
                                await http.handle(value: connection, logger: logger)
                            } else {
                                await Self.refuse(connection)
                            }
                        } onCancel: {
                            // Closes at once: a client that does not read would delay the shutdown.
                            connection.channel.close(promise: nil)
                        }
                        open.count.subtract(1, ordering: .relaxed)
                    }
                }
            }
        }
    }

    private static func refuse(_ connection: Connection) async {
        let response = Problem.tooManyConnections.response
        try? await connection.executeThenClose { _, outbound in
            var head = response.head
            head.headerFields[.connection] = "close"
            try await ResponseWriter(outbound: outbound).write(response: head, body: response.body)
        }
    }

    /// `struct ucred`, which the Glibc module does not export.
    private struct Credentials {
        var process: Int32 = 0
        var user: UInt32 = 0
        var group: UInt32 = 0
    }

    /// Returns whether the peer process belongs to this user or root (SO_PEERCRED, unix(7)).
    private static func isOfUser(_ channel: any Channel) async -> Bool {
        guard let options = channel as? any SocketOptionProvider else { return false }
        let peer: EventLoopFuture<Credentials> = options.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
        )
        guard let user = try? await peer.get().user else { return false }
        return user == 0 || user == geteuid()
    }
}

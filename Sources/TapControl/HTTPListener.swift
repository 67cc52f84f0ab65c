internal import Glibc
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
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

    /// Closes connections on which no request arrives in time.
    private final class HeadDeadlines: Sendable {
        private let scheduled = Mutex<[ObjectIdentifier: Scheduled<Void>]>([:])
        private let time: TimeAmount

        init(_ time: TimeAmount) { self.time = time }

        func begin(_ channel: any Channel) {
            let task = channel.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
            scheduled.withLock { $0.updateValue(task, forKey: ObjectIdentifier(channel)) }?.cancel()
        }

        func end(_ channel: any Channel) {
            scheduled.withLock { $0.removeValue(forKey: ObjectIdentifier(channel)) }?.cancel()
        }
    }

    private final class OpenConnections: Sendable {
        let count = Atomic(0)
    }

    private typealias Connection = HTTP1Channel.Value

    /// An accepted connection until it is handled.
    ///
    /// When the task is cancelled, NIO drops pending connections. A `NIOAsyncChannel` that is dropped without being
    /// finished traps, so the deinitialiser finishes it.
    private final class Accepted: Sendable {
        private let connection: Mutex<Connection?>

        init(_ connection: Connection) { self.connection = Mutex(connection) }

        deinit {
            guard let connection = take() else { return }
            Task { try? await connection.executeThenClose { _, _ in } }
        }

        func take() -> Connection? {
            connection.withLock { connection in
                defer { connection = nil }
                return connection
            }
        }
    }

    /// Serves until the task is cancelled, then closes all connections.
    func run(on group: any EventLoopGroup) async throws {
        let deadlines = HeadDeadlines(headTime)
        let http = HTTP1Channel(
            responder: { request, writer, channel in
                deadlines.end(channel)
                defer { deadlines.begin(channel) }
                var response = await Problem.answering {
                    try admit(request.head)
                    return try await Route.respond(to: request, by: routes)
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
                http.setup(channel: channel, logger: logger).map { Accepted($0) }
            }
        let open = OpenConnections()
        try await withThrowingDiscardingTaskGroup { tasks in
            try await listener.executeThenClose { connections in
                for try await accepted in connections {
                    guard let connection = accepted.take() else { continue }
                    let isAdmitted = open.count.add(1, ordering: .relaxed).newValue <= Self.maximumConnections
                    tasks.addTask {
                        await withTaskCancellationHandler {
                            if checksUser, await !Self.isOfUser(connection.channel) {
                                try? await connection.executeThenClose { _, _ in }
                            } else if isAdmitted {
                                deadlines.begin(connection.channel)
                                defer { deadlines.end(connection.channel) }
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

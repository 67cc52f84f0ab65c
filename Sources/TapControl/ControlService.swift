internal import HTTPTypes
package import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// Serves the control API of a running proxy: HTTP/1.1 with JSON over a Unix socket, and the metrics on a TCP port.
///
/// It is the last service to stop, so that sessions can be inspected while they end. It never stops the program: if it
/// fails, it logs a warning.
package final class ControlService: Service {
    /// Time that clients get at the end to read pending records.
    private static let grace = Duration.milliseconds(200)

    private let socket: ControlSocket?
    private let port: TCPPort?
    private let context: ControlContext
    private let logger: Logger

    /// Creates a service on a listening socket and a listening port; either may be nil.
    package init(_ socket: ControlSocket?, metrics port: TCPPort?, _ context: ControlContext, logger: Logger) {
        self.socket = socket
        self.port = port
        self.context = context
        self.logger = logger
    }

    /// Serves until graceful shutdown or cancellation, then removes the socket.
    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let streams = EventStreams(context.dispatcher)
        let metrics = Metrics(context)
        await withTaskGroup { tasks in
            if let socket {
                let routes = Route.all(context, streams, metrics)
                tasks.addTask { [self] in
                    await serve(routes, on: socket.descriptor, checksUser: true, socket.path, group)
                }
            }
            if let port {
                tasks.addTask { [self] in
                    await serve([metrics.route], on: port.descriptor, checksUser: false, port.address, group) { head in
                        guard port.answers(host: head.authority) else { throw Problem.wrongHost }
                    }
                }
            }
            try? await gracefulShutdown()
            socket?.remove()
            streams.finish()
            if !streams.isEmpty { try? await Task.sleep(for: Self.grace) }
            tasks.cancelAll()
        }
        try? await group.shutdownGracefully()
    }

    private func serve(
        _ routes: [Route],
        on descriptor: Int32,
        checksUser: Bool,
        _ place: String,
        _ group: any EventLoopGroup,
        admit: @escaping @Sendable (HTTPRequest) throws -> Void = { _ in }
    ) async {
        var quiet = logger
        quiet.logLevel = .critical
        let listener = HTTPListener(
            descriptor: descriptor,
            checksUser: checksUser,
            routes: routes,
            logger: quiet,
            admit: admit
        )
        do {
            try await listener.run(on: group)
        } catch is CancellationError {
        } catch {
            logger.warning("listening on \(place) failed: \(error); the proxy continues without it")
        }
    }
}

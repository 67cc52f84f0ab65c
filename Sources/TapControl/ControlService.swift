public import Logging
internal import NIOCore
internal import NIOPosix
public import ServiceLifecycle

/// Serves the control API of a running proxy: HTTP/1.1 with JSON over a Unix socket.
///
/// It runs until the program stops, and does so last, so that open sessions can be looked at while they end. It never ends
/// the program: where it fails, a warning says so.
public final class ControlService: Service {
    private let socket: ControlSocket
    private let context: ControlContext
    private let logger: Logger

    /// A service on a socket that listens.
    public init(_ socket: ControlSocket, _ context: ControlContext, logger: Logger) {
        self.socket = socket
        self.context = context
        self.logger = logger
    }

    /// Serves until graceful shutdown or cancellation; then the socket is gone.
    public func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { socket.remove() }
        var quiet = logger
        quiet.logLevel = .critical
        let listener = HTTPListener(
            descriptor: socket.descriptor,
            checksUser: true,
            responder: Route.responder(Route.all(context)),
            logger: quiet
        )
        do {
            try await cancelWhenGracefulShutdown {
                try await withTaskCancellationHandler {
                    try await listener.run(on: group)
                } onCancel: { [socket] in
                    socket.remove()
                }
            }
        } catch is CancellationError {
        } catch {
            logger.warning("the control socket \(socket.path) failed: \(error); the proxy goes on without it")
            try? await gracefulShutdown()
        }
        try? await group.shutdownGracefully()
    }
}

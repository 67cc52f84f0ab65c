package import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
package import TapCapture

/// Serves the page on a TCP port of this machine, on separate threads. It never stops the program: if it fails, it logs a
/// warning.
package final class PageService: Service {
    /// How often the service checks whether a page is still open.
    private static let pulse = Duration.seconds(5)
    /// Number of threads that make answers: one search does not delay everything else.
    private static let threads = 2

    private let port: TCPPort
    private let inspection: Inspection
    private let token: String
    private let logger: Logger
    private let actions: PageActions?

    /// Creates a service on a listening port.
    ///
    /// - Parameters:
    ///   - token: The secret of the run, which requests for data contain.
    ///   - context: The proxy on which the page can act; nil for a page that only shows.
    package init(
        _ port: TCPPort,
        _ inspection: Inspection,
        token: String,
        logger: Logger,
        acting context: ControlContext? = nil
    ) {
        self.port = port
        self.inspection = inspection
        self.token = token
        self.logger = logger
        actions = context.map { PageActions($0) }
    }

    /// The address of the page. The token is in the fragment, which browsers do not send.
    package var url: String { "http://\(port.address)/#token=\(token)" }

    /// Serves until graceful shutdown or cancellation.
    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let pool = NIOThreadPool(numberOfThreads: Self.threads)
        pool.start()
        let access = PageAccess(
            address: port.address,
            token: token,
            publicPaths: Set(PageAssets.paths.keys)
        )
        var quiet = logger
        quiet.logLevel = .critical
        let listener = HTTPListener(
            descriptor: port.descriptor,
            checksUser: false,
            routes: Route.page(PageAnswers(inspection, on: pool, acts: actions != nil))
                + (actions.map { Route.actions($0) } ?? []),
            logger: quiet,
            admit: { try access.check($0) },
            headers: PageAccess.headers
        )
        await withTaskGroup { tasks in
            tasks.addTask { [logger, port] in
                do {
                    try await listener.run(on: group)
                } catch is CancellationError {
                } catch {
                    logger.warning("listening on \(port.address) failed: \(error); the page cannot be opened")
                }
            }
            tasks.addTask { [inspection, actions] in
                while (try? await Task.sleep(for: Self.pulse)) != nil {
                    inspection.expire()
                    await actions?.expire()
                }
            }
            try? await gracefulShutdown()
            tasks.cancelAll()
        }
        try? await group.shutdownGracefully()
        try? await pool.shutdownGracefully()
    }
}

import Logging
import NIOCore
import NIOPosix
import TapTestKit
import Testing

@testable import TapControl

/// What becomes of connections when the listener ends.
struct HTTPListenerTests {
    @Test func `connections that nobody has taken yet do not stop the program`() async throws {
        let folder = try TemporaryFolder()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        for round in 0..<100 {
            let path = folder.path(of: "\(round).sock")
            let socket = try ControlSocket(path, isOwnFolder: false)
            // They wait before the first is accepted, so that accepting and ending meet.
            var clients: [any Channel] = []
            for _ in 0..<8 {
                clients.append(try await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get())
            }
            let listener = HTTPListener(
                descriptor: socket.descriptor,
                checksUser: round % 2 == 0,
                routes: [],
                logger: Logger(label: "test")
            )
            let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let run = Task { try await listener.run(on: service) }
            if round % 4 > 1 { await Task.yield() }
            run.cancel()
            _ = await run.result
            // Every connection ends with the group, taken or not.
            try await service.shutdownGracefully()
            for client in clients { try await client.closeFuture.get() }
            socket.remove()
        }
        try await group.shutdownGracefully()
    }
}

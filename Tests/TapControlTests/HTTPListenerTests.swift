import Logging
import NIOCore
import NIOPosix
import Synchronization
import TapTestKit
import Testing

@testable import TapControl

/// Connections that exist before the listener starts, or when it stops.
@Suite(.timeLimit(.minutes(5))) struct HTTPListenerTests {
    private final class Answer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let text = Mutex("")

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let part = String(buffer: unwrapInboundIn(data))
            text.withLock { $0 += part }
        }
    }

    private func listener(on socket: ControlSocket, checksUser: Bool) -> HTTPListener {
        HTTPListener(
            descriptor: socket.descriptor,
            checksUser: checksUser,
            routes: [],
            logger: Logger(label: "test")
        )
    }

    @Test func `a request is answered even if its client closed its output before it was accepted`() async throws {
        let folder = try TemporaryFolder()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        var clients: [(channel: any Channel, answer: Answer)] = []
        for _ in 0..<8 {
            let answer = Answer()
            let client = try await ClientBootstrap(group: group)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .channelInitializer { $0.pipeline.addHandler(answer) }
                .connect(unixDomainSocketPath: path).get()
            try await client.writeAndFlush(
                ByteBuffer(string: "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            )
            try await client.close(mode: .output)
            clients.append((client, answer))
        }
        let listener = self.listener(on: socket, checksUser: true)
        let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let run = Task { try await listener.run(on: service) }
        for client in clients {
            while !client.answer.text.withLock({ $0.contains("\r\n\r\n") }) {
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(client.answer.text.withLock { $0.hasPrefix("HTTP/1.1 404") })
        }
        run.cancel()
        _ = await run.result
        try await service.shutdownGracefully()
        try await group.shutdownGracefully()
        socket.remove()
    }

    @Test func `the listener can be cancelled while connections are pending`() async throws {
        let folder = try TemporaryFolder()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        for round in 0..<40 {
            let path = folder.path(of: "\(round).sock")
            let socket = try ControlSocket(path, isOwnFolder: false)
            // They connect before the first is accepted, so that accepting and cancelling overlap.
            var clients: [any Channel] = []
            for _ in 0..<8 {
                clients.append(try await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get())
            }
            let listener = self.listener(on: socket, checksUser: round % 2 == 0)
            let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let run = Task { try await listener.run(on: service) }
            if round % 4 > 1 { await Task.yield() }
            run.cancel()
            _ = await run.result
            // Every connection ends with the event loop group, handled or not.
            try await service.shutdownGracefully()
            for client in clients { try await client.closeFuture.get() }
            socket.remove()
        }
        try await group.shutdownGracefully()
    }

    @Test func `clients with incomplete request heads do not block others`() async throws {
        let folder = try TemporaryFolder()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        var listener = self.listener(on: socket, checksUser: true)
        listener.headTime = .milliseconds(500)
        let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let run = Task { [listener] in try await listener.run(on: service) }
        func connect(_ text: String) async throws -> (channel: any Channel, answer: Answer) {
            let answer = Answer()
            let client = try await ClientBootstrap(group: group)
                .channelInitializer { $0.pipeline.addHandler(answer) }
                .connect(unixDomainSocketPath: path).get()
            try await client.writeAndFlush(ByteBuffer(string: text))
            return (client, answer)
        }
        // Half of them received a response before.
        let begun = "GET /nowhere HTTP/1.1\r\nHost: x\r\n"
        var silent: [any Channel] = []
        for number in 0..<HTTPListener.maximumConnections {
            silent.append(try await connect(number.isMultiple(of: 2) ? begun : "\(begun)\r\n\(begun)").channel)
        }
        for channel in silent { try await channel.closeFuture.get() }
        let last = try await connect("\(begun)\r\n")
        while !last.answer.text.withLock({ $0.contains("\r\n\r\n") }) {
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(last.answer.text.withLock { $0.hasPrefix("HTTP/1.1 404") })
        run.cancel()
        _ = await run.result
        try await service.shutdownGracefully()
        try await group.shutdownGracefully()
        socket.remove()
    }
}

import Dispatch
import Logging
import NIOCore
import NIOPosix
import TapTestKit
import Testing

@testable import TapControl

/// Connections that exist before the listener starts, or when it stops, and the time limit of requests.
@Suite(.timeLimit(.minutes(10))) struct HTTPListenerTests {
    /// Other tests use the threads, too, so that an answer can take long; this limit only ends a test that hangs.
    private static let limit = Duration.seconds(280)
    private static let request = "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"

    private func listener(on socket: ControlSocket, checksUser: Bool) -> HTTPListener {
        HTTPListener(
            descriptor: socket.descriptor,
            checksUser: checksUser,
            routes: [],
            logger: Logger(label: "test")
        )
    }

    /// Ends a listener, and then its event loop.
    private func end(_ run: Task<Void, any Error>, _ service: MultiThreadedEventLoopGroup) async throws {
        run.cancel()
        #expect(try await run.ends(), "the listener does not end")
        #expect(try await Task { try await service.shutdownGracefully() }.ends(), "the event loop does not end")
    }

    @Test func `a request is answered even if its client closed its output before it was accepted`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        let clients = try (0..<8).map { _ in try RawConnection(path: path) }
        for client in clients {
            try await client.write("GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            client.finish()
        }
        let listener = self.listener(on: socket, checksUser: true)
        let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let run = Task { try await listener.run(on: service) }
        for client in clients {
            let answer = try await client.read(through: "\r\n\r\n", within: Self.limit)
            #expect(answer.hasPrefix("HTTP/1.1 404"))
        }
        try await end(run, service)
        socket.remove()
    }

    @Test func `a listener that is cancelled while connections are pending ends after these are closed`() async throws {
        let folder = try TemporaryFolder()
        for round in 0..<40 {
            let path = folder.path(of: "\(round).sock")
            let socket = try ControlSocket(path, isOwnFolder: false)
            // They connect before the first is accepted, so that accepting and cancelling overlap.
            let clients = try (0..<8).map { _ in try RawConnection(path: path) }
            let listener = self.listener(on: socket, checksUser: round % 2 == 0)
            let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let run = Task { try await listener.run(on: service) }
            if round % 4 > 1 { await Task.yield() }
            run.cancel()
            try #require(try await run.ends(), "the listener does not end")
            // The event loop can end now, so nothing must be left to do on it.
            for client in clients {
                let (bytes, end) = try await client.read(within: .zero) { _ in false }
                #expect(bytes.isEmpty && (end == .finished || end == .reset), "round \(round): \(end)")
            }
            try await end(run, service)
            socket.remove()
        }
    }

    @Test func `clients with incomplete request heads do not block others`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        var listener = self.listener(on: socket, checksUser: true)
        listener.headTime = .milliseconds(500)
        let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let run = Task { [listener] in try await listener.run(on: service) }
        // Half of them receive a response before.
        let begun = "GET /nowhere HTTP/1.1\r\nHost: x\r\n"
        var silent: [RawConnection] = []
        for number in 0..<HTTPListener.maximumConnections {
            let client = try RawConnection(path: path)
            try await client.write(number.isMultiple(of: 2) ? begun : "\(begun)\r\n\(begun)")
            silent.append(client)
        }
        for client in silent {
            let (_, end) = try await client.read(within: Self.limit) { _ in false }
            #expect(end == .finished || end == .reset)
        }
        let last = try RawConnection(path: path)
        try await last.write(Self.request)
        let answer = try await last.read(through: "\r\n\r\n", within: Self.limit)
        #expect(answer.hasPrefix("HTTP/1.1 404"))
        try await end(run, service)
        socket.remove()
    }

    /// Runs tasks in order on a thread that can be stopped, as if other tasks used all threads.
    private final class StoppableExecutor: TaskExecutor {
        private let queue = DispatchQueue(label: "stoppable")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }

        func stop() { queue.suspend() }
        func resume() { queue.resume() }
    }

    @Test func `a request that arrives in time is answered, however long the tasks wait for a thread`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "c.sock")
        let socket = try ControlSocket(path, isOwnFolder: false)
        var listener = self.listener(on: socket, checksUser: true)
        listener.headTime = .seconds(4)
        let service = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let executor = StoppableExecutor()
        let run = Task(executorPreference: executor) { [listener] in try await listener.run(on: service) }
        defer { run.cancel() }
        var isChecked = false
        while !isChecked {
            let client = try RawConnection(path: path)
            // The time limit begins later, with the response.
            let began = ContinuousClock.now
            try await client.write(Self.request)
            try await client.read(through: "no-such-resource", within: Self.limit)
            var end: RawConnection.End?
            do {
                executor.stop()
                defer { executor.resume() }
                _ = try? await client.write(Self.request)
                // Other tests can delay this one for longer than the time limit. Then the connection may be closed.
                isChecked = ContinuousClock.now - began < .seconds(2)
                if isChecked { end = try await client.read(within: .seconds(6)) { _ in false }.end }
            }
            guard isChecked else { continue }
            #expect(end == .silent)
            let (bytes, _) = try await client.read(within: Self.limit) { $0.count > 12 }
            #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 404"))
        }
        try await end(run, service)
        socket.remove()
    }
}

import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TapCore
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

@Suite("The proxy service", .timeLimit(.minutes(2)))
struct ProxyServiceTests {
    private func service(
        _ listeners: [ListenSpec],
        upstream: Endpoint = Endpoint(host: "127.0.0.1", port: 1),
        listening: ListeningPorts = ListeningPorts(),
        allowRemote: Bool = false,
        grace: TimeAmount = .seconds(10),
        sink: MemorySink = MemorySink()
    ) -> ProxyService {
        ProxyService(
            ProxyConfiguration(
                listeners: listeners,
                upstream: .endpoint(upstream),
                session: SessionOptions(level: sink.level),
                allowRemote: allowRemote,
                grace: grace
            ),
            run: Run(),
            clock: RunClock(),
            dispatcher: RecordDispatcher([sink]),
            logger: LoggedLines().logger,
            onListening: { endpoint, _ in listening.add(endpoint) }
        )
    }

    private func refusal(_ service: ProxyService) async -> ProxyError? {
        do {
            try await service.run()
            return nil
        } catch {
            return error as? ProxyError
        }
    }

    // MARK: Listeners

    @Test("A local listener has one port on both loopback addresses, even if the system chooses it")
    func bothFamilies() async throws {
        let listening = ListeningPorts()
        let service = service([ListenSpec(port: 0), ListenSpec(host: "localhost", port: 0)], listening: listening)
        let task = Task { try await service.run() }
        let hasIPv6 = (try? System.enumerateDevices())?.contains { $0.address?.ipAddress == "::1" } ?? false
        try await eventually("the proxy does not listen") { listening.all.count == (hasIPv6 ? 4 : 2) }
        for pair in [listening.all.prefix(hasIPv6 ? 2 : 1), listening.all.suffix(hasIPv6 ? 2 : 1)] {
            #expect(pair.first?.host == "127.0.0.1")
            #expect(pair.last?.host == (hasIPv6 ? "::1" : "127.0.0.1"))
            #expect(pair.first?.port == pair.last?.port)
            #expect(pair.first?.port != 0)
        }
        task.cancel()
        try await task.value
    }

    @Test("A port in use is reported as such")
    func portInUse() async throws {
        let other = try await TestServer()
        let error = await refusal(service([ListenSpec(host: "127.0.0.1", port: other.port)]))
        #expect(error?.code == .portInUse)
        #expect(error?.blame == .network)
        #expect(
            error?.description.hasPrefix("cannot listen on 127.0.0.1:\(other.port): the port is already in use")
                == true
        )
        // With both address families, it is sufficient that one port is in use; the other one is released again.
        #expect(await refusal(service([ListenSpec(port: other.port)]))?.code == .portInUse)
        await other.close()
    }

    @Test("If one listener cannot be opened, the others are closed")
    func allOrNone() async throws {
        let other = try await TestServer()
        // The system never chooses such a low port on its own, so it is free.
        let free = 15998
        let specs = [ListenSpec(host: "127.0.0.1", port: free), ListenSpec(host: "127.0.0.1", port: other.port)]
        #expect(await refusal(service(specs))?.code == .portInUse)
        await #expect(throws: (any Error).self) { try await Peer.connect(to: free) }
        await other.close()
    }

    @Test(
        "An upstream that is a listener of the proxy itself is refused",
        arguments: [
            ("localhost:15999", "15999"), ("127.0.0.1:15999", "15999"), ("[::1]:15999", "15999"),
            ("127.0.0.1:15999", "localhost:15999"), ("0.0.0.0:15999", "127.0.0.1:15999"),
        ]
    )
    func relayToItself(_ upstream: String, _ listen: String) async throws {
        let error = await refusal(service([try ListenSpec(listen)], upstream: try Endpoint(upstream)))
        #expect(error?.code == .relaysToItself(upstream: upstream))
        #expect(error?.blame == .usage)
        let own = await refusal(service([try ListenSpec("\(listen)=\(upstream)")]))
        #expect(own?.code == .relaysToItself(upstream: upstream))
    }

    @Test("Addresses that other machines reach are refused unless allowed", arguments: ["0.0.0.0:0", "[::]:0"])
    func remote(_ listen: String) async throws {
        let spec = try ListenSpec(listen)
        let error = await refusal(service([spec]))
        #expect(error?.code == .remoteNotAllowed)
        #expect(error?.blame == .usage)

        let listening = ListeningPorts()
        let allowed = service([spec], listening: listening, allowRemote: true)
        let task = Task { try await allowed.run() }
        try await eventually("the proxy does not listen") { listening.first != nil }
        task.cancel()
        try await task.value
    }

    @Test("An address of another machine is refused with the system's error")
    func foreignAddress() async {
        let error = await refusal(service([ListenSpec(host: "192.0.2.1", port: 0)], allowRemote: true))
        #expect(error?.description.contains("cannot listen on 192.0.2.1:0: cannot assign requested address") == true)
        let unknown = await refusal(service([ListenSpec(host: "nowhere.invalid", port: 1)], allowRemote: true))
        #expect(unknown?.description.contains(#"cannot resolve "nowhere.invalid""#) == true)
    }

    @Test("Each listener relays to its own server")
    func ownUpstream() async throws {
        let (one, two) = (try await TestServer(), try await TestServer())
        let listening = ListeningPorts()
        let service = service(
            [
                ListenSpec(host: "127.0.0.1", port: 0),
                ListenSpec(
                    host: "127.0.0.1",
                    port: 0,
                    upstream: .endpoint(Endpoint(host: "localhost", port: two.port))
                ),
            ],
            upstream: Endpoint(host: "127.0.0.1", port: one.port),
            listening: listening
        )
        let task = Task { try await service.run() }
        try await eventually("the proxy does not listen") { listening.all.count == 2 }
        for (server, port) in zip([one, two], listening.all.map(\.port)) {
            _ = try await server.accept()
            let client = try await Peer.connect(to: port)
            try await client.send(Conversations.login[0].text)
            try await server.accept().expect(Conversations.login[0].text)
        }
        task.cancel()
        try await task.value
    }

    // MARK: Shutdown

    /// The proxy in a service group, as in the program.
    private struct Running {
        let group: ServiceGroup
        let task: Task<Void, any Error>
        let service: ProxyService
        let port: Int
        let server: TestServer
        let sink: MemorySink

        func pair() async throws -> (Peer, Peer) {
            let client = try await Peer.connect(to: port)
            let server = try await server.accept()
            try await say(Conversations.login, client, server)
            return (client, server)
        }

        /// Makes the server send more data than all buffers hold, to a client that does not read, until the proxy has
        /// data that the client's system does not accept.
        func stopReading(_ client: Peer, _ server: Peer) async throws {
            try await client.setReading(false)
            server.push([UInt8](repeating: 0x20, count: 40 << 20))
            let (own, other) = (UInt16(port), UInt16(client.channel.localAddress?.port ?? 0))
            try await eventually("the client's system takes everything") {
                let unsent = try? Loopback.queues(of: own, towards: other).unsent
                return service.metrics.bytesReceived > 100_000 && unsent ?? 0 > 0
            }
        }
    }

    private func run(grace: TimeAmount) async throws -> Running {
        let server = try await TestServer()
        let (listening, sink) = (ListeningPorts(), MemorySink(level: .info))
        let service = service(
            [ListenSpec(host: "127.0.0.1", port: 0)],
            upstream: Endpoint(host: "127.0.0.1", port: server.port),
            listening: listening,
            grace: grace,
            sink: sink
        )
        let group = ServiceGroup(
            configuration: .init(
                services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
                logger: LoggedLines().logger
            )
        )
        let task = Task { try await group.run() }
        try await eventually("the proxy does not listen") { listening.first != nil }
        _ = try await server.accept()
        return Running(
            group: group,
            task: task,
            service: service,
            port: listening.first?.port ?? 0,
            server: server,
            sink: sink
        )
    }

    @Test("Graceful shutdown refuses connections, forwards all data read, and completes the records")
    func graceful() async throws {
        let running = try await run(grace: .seconds(20))
        let (client, server) = try await running.pair()
        let (idle, idleServer) = try await running.pair()
        let before = client.now.count
        try await client.setReading(false)
        for _ in 0..<1000 { server.push(Array("<presence from='a@b'/>".utf8)) }
        try await eventually("nothing was read") {
            running.service.metrics.bytesReceived >= UInt64(2 * before + 22_000)
        }
        await running.group.triggerGracefulShutdown()
        try await idle.wait("its end") { $0.isFinished }
        try await idleServer.wait("its end") { $0.isFinished }
        #expect(!idle.now.text.hasSuffix("</stream:stream>"))
        await #expect(throws: (any Error).self) { try await Peer.connect(to: running.port) }
        try await client.setReading(true)
        try await client.wait("all of it") { $0.isFinished }
        #expect(client.now.count == before + 22_000)
        for peer in [client, server, idle, idleServer] { await peer.close() }
        try await running.task.value
        let ended = running.sink.records(code: "session-ended")
        #expect(ended.map(\.record.messageText) == Array(repeating: "closed because xmpptap stopped", count: 2))
        #expect(running.service.metrics.sessionsOpen == 0)
    }

    @Test("Sessions that do not end within the grace period are closed")
    func graceRunsOut() async throws {
        let running = try await run(grace: .milliseconds(300))
        let (client, server) = try await running.pair()
        try await running.stopReading(client, server)
        let clock = ContinuousClock.now
        await running.group.triggerGracefulShutdown()
        try await running.task.value
        // Without the grace period, the session would be given up only after this time.
        #expect(ContinuousClock.now - clock < .seconds(LegHandler.drainSilence))
        #expect(running.sink.records(code: "session-ended").count == 1)
        await client.close()
        await server.close()
    }

    @Test("Cancelling a graceful shutdown ends everything at once")
    func secondSignal() async throws {
        let running = try await run(grace: .minutes(10))
        let (client, server) = try await running.pair()
        try await running.stopReading(client, server)
        await running.group.triggerGracefulShutdown()
        // The connection is reset if the server has sent more than the limit for ended sessions.
        try await server.wait("the end of what the proxy writes") { $0.isFinished || $0.isReset }
        #expect(running.service.metrics.sessionsOpen == 1)
        let clock = ContinuousClock.now
        running.task.cancel()
        _ = await running.task.result
        #expect(ContinuousClock.now - clock < .seconds(LegHandler.drainSilence))
        #expect(running.service.metrics.sessionsOpen == 0)
        #expect(running.sink.records(code: "session-ended").count == 1)
        await client.close()
        await server.close()
    }

    @Test("An ended session is deallocated")
    func released() async throws {
        let server = try await TestServer()
        let drivers = WeakDrivers()
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        let context = RelayContext(
            run: Run(),
            clock: RunClock(),
            options: SessionOptions(),
            interception: nil,
            admission: Admission(ProxyLimits(), ProxyMetrics()),
            dispatcher: RecordDispatcher([]),
            metrics: ProxyMetrics(),
            sessions: SessionDirectory(),
            journal: nil
        )
        let loop = try await eventLoop.submit {
            NIOLoopBound(RelayLoop(eventLoop: eventLoop, context: context), eventLoop: eventLoop)
        }.get()
        let route = Route.endpoint(Dialer(Endpoint(host: "127.0.0.1", port: server.port), timeout: .seconds(5)))
        let listener = try await ServerBootstrap(group: eventLoop)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let driver = SessionDriver(loop: loop.value, route: route, accepted: AcceptedConnection(channel))
                    drivers.add(driver)
                    try driver.accept(channel)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        for round in 0..<8 {
            let client = try await Peer.connect(to: listener.localAddress?.port ?? 0)
            let peer = try await server.accept()
            try await say(Conversations.login, client, peer)
            switch round % 4 {
            case 0: try await client.reset()
            case 1: try await peer.reset()
            case 2:
                try await client.finish()
                try await peer.wait("the end") { $0.isFinished }
                try await peer.finish()
            default:
                try await peer.finish()
                try await client.wait("the end") { $0.isFinished }
                try await client.finish()
            }
        }
        await server.close()
        // The server is gone.
        let refused = try await Peer.connect(to: listener.localAddress?.port ?? 0)
        try await refused.send(Conversations.login[0].text)
        try await refused.wait("the stream error") { $0.isFinished }
        await refused.close()

        #expect(drivers.added == 9)
        try await eventually("drivers live: \(drivers.alive)") { drivers.alive == 0 }
        #expect(try await eventLoop.submit { loop.value.count }.get() == 0)
        try await listener.close()
    }
}

/// Counts the drivers that have been created, and those that have not been released.
private final class WeakDrivers: Sendable {
    private struct Box: @unchecked Sendable {
        // The reference is only compared with nil.
        weak var driver: SessionDriver?
    }

    private let boxes = Mutex<[Box]>([])

    func add(_ driver: SessionDriver) {
        let box = Box(driver: driver)
        boxes.withLock { $0.append(box) }
    }

    var added: Int { boxes.withLock { $0.count } }
    var alive: Int { boxes.withLock { $0.count { $0.driver != nil } } }
}

import Logging
import NIOCore
import NIOPosix
import Synchronization
import TapCore
import TapRecord
import TapTestKit
import XMPPCore

@testable import TapNetwork

/// A running proxy between the clients and the server of a test, on ports chosen by the system.
final class ProxyFixture: Sendable {
    let service: ProxyService
    let server: TestServer
    let sink: MemorySink
    let dispatcher: RecordDispatcher
    let port: Int
    let logged: LoggedLines
    private let task: Task<Void, any Error>

    init(
        upstream: Endpoint? = nil,
        level: Level = .trace,
        keeps: Bool = true,
        sink: MemorySink? = nil,
        run: Run = Run(),
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        configure: (inout ProxyConfiguration) -> Void = { _ in }
    ) async throws {
        let server = try await TestServer(keeps: keeps)
        let sink = sink ?? MemorySink(level: level)
        let dispatcher = RecordDispatcher([sink])
        var session = SessionOptions()
        session.recordLevel = dispatcher.level
        var configuration = ProxyConfiguration(
            listeners: [ListenSpec(host: "127.0.0.1", port: 0)],
            upstream: .endpoint(upstream ?? Endpoint(host: "127.0.0.1", port: server.port)),
            session: session
        )
        configure(&configuration)
        let listening = ListeningPorts()
        let logged = LoggedLines()
        let service = ProxyService(
            configuration,
            run: run,
            clock: RunClock(),
            dispatcher: dispatcher,
            eventLoopGroup: group,
            logger: logged.logger,
            onListening: { endpoint, _ in listening.add(endpoint) }
        )
        let task = Task { try await service.run() }
        try await eventually("the proxy does not listen") { listening.first != nil }
        self.service = service
        self.server = server
        self.sink = sink
        self.dispatcher = dispatcher
        self.logged = logged
        self.task = task
        port = listening.first?.port ?? 0
        // At its start, the proxy connects once to check the server.
        if upstream == nil { _ = try await server.accept() }
    }

    /// Connects a client; returns it, and the connection that the proxy opens to the server for it.
    func pair() async throws -> (client: Peer, server: Peer) {
        let client = try await Peer.connect(to: port, keeps: true)
        return (client, try await server.accept())
    }

    /// Connects a client and performs a complete login.
    func openPair() async throws -> (client: Peer, server: Peer) {
        let (client, server) = try await pair()
        try await say(Conversations.login, client, server)
        return (client, server)
    }

    /// Waits until all sessions have ended; the proxy keeps running.
    func settle() async throws {
        try await eventually("sessions stay open: \(service.metrics.sessionsOpen)") {
            service.metrics.sessionsOpen == 0
        }
    }

    /// Stops the proxy at once.
    func stop() async throws {
        task.cancel()
        try await task.value
        await server.close()
    }
}

/// Exchanges the turns of a conversation; each turn is sent after the previous one has arrived completely.
func say(_ turns: [Conversations.Turn], _ client: Peer, _ server: Peer) async throws {
    var (toServer, toClient) = (server.now.bytes.count, client.now.bytes.count)
    for turn in turns {
        switch turn.direction {
        case .send:
            try await client.send(turn.text)
            try await server.expect(turn.text, after: toServer)
            toServer += turn.text.utf8.count
        case .recv:
            try await server.send(turn.text)
            try await client.expect(turn.text, after: toClient)
            toClient += turn.text.utf8.count
        }
    }
}

extension Conversations {
    /// A login, up to the bound session.
    static let login = Array(plainLogin.prefix(10))
}

/// A sink that stores all records with their content; it can be set to be congested.
final class MemorySink: Sink {
    struct Told {
        var record: Record
        var content: [UInt8]

        var xml: String? { record.xml.map { content.span.slice($0).string() } }
    }

    let level: Level
    private let told = Mutex<[Told]>([])
    private let congested = Atomic(false)
    private let asked = Atomic(0)

    init(level: Level = .trace) { self.level = level }

    var isCongested: Bool {
        asked.add(1, ordering: .relaxed)
        return congested.load(ordering: .relaxed)
    }

    /// Number of times that callers asked whether the sink is congested.
    var timesAsked: Int { asked.load(ordering: .relaxed) }

    func setCongested(_ isCongested: Bool) { congested.store(isCongested, ordering: .relaxed) }

    func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        var bytes: [UInt8] = []
        bytes.append(content)
        let copy = Told(record: redacted.record, content: bytes)
        told.withLock { $0.append(copy) }
    }

    var records: [Told] { told.withLock { $0 } }

    func records(code: String) -> [Told] { records.filter { $0.record.code == code } }
}

/// The messages that the program logs about itself.
final class LoggedLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

    private struct Handler: LogHandler {
        let lines: LoggedLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.lines.withLock { $0.append("\(event.level) \(event.message)") } }
    }
}

final class ListeningPorts: Sendable {
    private let endpoints = Mutex<[Endpoint]>([])

    var first: Endpoint? { all.first }
    var all: [Endpoint] { endpoints.withLock { $0 } }
    func add(_ endpoint: Endpoint) { endpoints.withLock { $0.append(endpoint) } }
}

import Glibc
import NIOCore
import NIOPosix
import Synchronization
import TapCore
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests the journal of sessions that cannot be resumed after a restart, while another process has locked its file.
@Suite(.timeLimit(.minutes(2)))
struct JournalQueueTests {
    private static let namespace = "xmlns='urn:xmpp:sm:3'"
    private static let resume = "<resume \(namespace) h='0' previd='i1'/>"

    /// A file that is locked, as if by another process, until ``release()``.
    private final class LockedFile: Sendable {
        let path: String
        private let folder: TemporaryFolder
        private let descriptor: Int32

        init(_ folder: TemporaryFolder) throws {
            self.folder = folder
            path = try folder.write("", to: "resumption")
            descriptor = open(path, O_RDWR | O_CLOEXEC)
            #expect(flock(descriptor, LOCK_EX) == 0)
        }

        func release() { close(descriptor) }

        /// A journal that waits for the lock during the whole test.
        var journal: ResumptionFile {
            ResumptionFile(path: path, lockTime: .seconds(600)) { Issue.record("\($0)") }
        }
    }

    /// Logs in a client and enables stream management.
    private func enable(_ proxy: ProxyFixture) async throws -> (client: Peer, server: Peer) {
        let (client, server) = try await proxy.openPair()
        let enabling: [Conversations.Turn] = [
            (.send, "<enable \(Self.namespace) resume='true'/>"),
            (.recv, "<enabled \(Self.namespace) resume='true' id='i1' max='60'/>"),
        ]
        try await say(enabling, client, server)
        return (client, server)
    }

    @Test func `a request to resume waits for the file, and other sessions on its event loop do not`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let file = try LockedFile(TemporaryFolder())
        let proxy = try await ProxyFixture(run: Run(journal: file.journal), group: group)
        let (client, server) = try await proxy.pair()
        try await say(Array(Conversations.login.prefix(8)), client, server)
        let before = server.now.text
        try await client.send(Self.resume + "<r \(Self.namespace)/>")
        for _ in 0..<3 {
            let other = try await proxy.openPair()
            try await other.client.send("<presence/>")
            try await other.server.wait("the presence") { $0.text.hasSuffix("<presence/>") }
        }
        // Later bytes of the client must keep their order.
        try await client.send("<r \(Self.namespace)/>")
        #expect(server.now.text == before)
        file.release()
        try await server.expect(
            Self.resume + "<r \(Self.namespace)/><r \(Self.namespace)/>",
            after: before.utf8.count
        )
        try await proxy.stop()
        try await group.shutdownGracefully()
    }

    @Test func `data that makes a resumption impossible is forwarded after its entry is in the file`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let file = try LockedFile(TemporaryFolder())
        let proxy = try await ProxyFixture(run: Run(journal: file.journal), group: group)
        let (client, server) = try await enable(proxy)
        let (toClient, toServer) = (client.now.text, server.now.text)
        let injected = "<message id='a'/>"
        _ = try await proxy.service.sessions.inject(into: 1) { _, number in
            Injection(Array(injected.utf8), to: .client, number: number)
        }
        try await client.send("<presence/>")
        let other = try await proxy.openPair()
        try await other.client.send("<presence/>")
        try await other.server.wait("the presence") { $0.text.hasSuffix("<presence/>") }
        #expect(client.now.text == toClient && server.now.text == toServer)
        file.release()
        try await client.expect(injected, after: toClient.utf8.count)
        try await server.expect("<presence/>", after: toServer.utf8.count)
        // After a restart, the proxy knows that the session cannot be resumed.
        let next = try await ProxyFixture(run: Run(journal: file.journal))
        let again = try await next.pair()
        try await say(Array(Conversations.login.prefix(8)), again.client, again.server)
        try await again.client.send(Self.resume)
        try await again.client.wait("the refusal") { $0.text.contains("item-not-found") }
        for proxy in [proxy, next] { try await proxy.stop() }
        try await group.shutdownGracefully()
    }

    @Test func `a session can end while its entry is being written`() async throws {
        let file = try LockedFile(TemporaryFolder())
        let proxy = try await ProxyFixture(run: Run(journal: file.journal))
        let (client, server) = try await enable(proxy)
        _ = try await proxy.service.sessions.inject(into: 1) { _, number in
            Injection(Array("<message id='a'/>".utf8), to: .client, number: number)
        }
        try await client.reset()
        try await server.reset()
        file.release()
        try await proxy.settle()
        #expect(proxy.sink.records(code: "session-ended").count == 1)
        try await proxy.stop()
    }

    /// A journal in memory.
    private final class Memory: ResumptionJournal {
        let marks = Mutex<Set<[UInt8]>>([])

        func mark(of session: [UInt8]) -> [UInt8]? { session }
        func add(_ marks: [[UInt8]]) { self.marks.withLock { $0.formUnion(marks) } }
        func found(of marks: [[UInt8]]) -> Set<[UInt8]> { self.marks.withLock { $0.intersection(marks) } }
    }

    @Test(arguments: [true, false])
    func `requests are answered in order, even if the thread pool has stopped`(isRunning: Bool) async throws {
        let pool = NIOThreadPool(numberOfThreads: 2)
        pool.start()
        if !isRunning { try await pool.shutdownGracefully() }
        let queue = JournalQueue(Memory(), on: pool)
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        for number in 0..<100 as Range<UInt8> {
            let early = queue.search([[number]], on: eventLoop)
            #expect(try await !early.get())
            let (added, found) = (queue.add([number], on: eventLoop), queue.search([[200], [number]], on: eventLoop))
            #expect(try await found.get())
            try await added.get()
        }
        if isRunning { try await pool.shutdownGracefully() }
    }
}

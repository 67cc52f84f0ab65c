import NIOCore
import Synchronization
import TapRecord
import TapRules
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests slow and sliced links over real connections.
@Suite("Traffic shaping", .timeLimit(.minutes(2)))
struct ShapeTests {
    /// Starts a proxy with these rules.
    private static func proxy(_ rules: String) async throws -> ProxyFixture {
        let set = try RuleSet([RuleSource(name: "test.pfw", text: rules)])
        return try await ProxyFixture(level: .info) {
            $0.rules = ProxyRules(set, files: ["test.pfw"], localTime: { _ in RuleLocalTime() }) {
                () throws(RuleSet.LoadError) in set
            }
        }
    }

    private static let body = String(repeating: "x", count: 1000)
    private static func stanza(_ number: Int) -> String {
        "<message to='a@b' id='\(number)'><body>\(body)</body></message>"
    }

    @Test(
        "Throttled data arrives late, complete and in order",
        arguments: Direction.allCases
    )
    func throttled(_ direction: Direction) async throws {
        let proxy = try await Self.proxy("::\(direction == .send ? "send" : "recv")\n\nKIND: message\nTHROTTLE=20kB\n")
        let (client, server) = try await proxy.openPair()
        let (writer, reader) = direction == .send ? (client, server) : (server, client)
        let before = reader.now.count
        let began = ContinuousClock.now
        let texts = (1...20).map(Self.stanza)
        for text in texts { try await writer.send(text) }
        let all = texts.joined()
        try await reader.expect(all, after: before)
        #expect(ContinuousClock.now - began > .milliseconds(900))
        #expect(String(decoding: reader.now.bytes.dropFirst(before), as: UTF8.self) == all)
        try await proxy.stop()
    }

    @Test("The pieces of a sliced stanza are delayed, and later data arrives after them")
    func sliced() async throws {
        let proxy = try await Self.proxy("::recv\n\nINSPECT: @id=2\nSLICE=10 (every 5ms)\n")
        let (client, server) = try await proxy.openPair()
        let before = client.now.count
        let began = ContinuousClock.now
        let texts = (1...3).map(Self.stanza)
        try await server.send(texts.joined())
        try await client.expect(texts.joined(), after: before)
        #expect(String(decoding: client.now.bytes.dropFirst(before), as: UTF8.self) == texts.joined())
        #expect(ContinuousClock.now - began > .milliseconds(400))
        try await proxy.stop()
    }

    @Test("The end of a stream is forwarded after delayed data")
    func ending() async throws {
        let proxy = try await Self.proxy("::send\n\nKIND: message\nTHROTTLE=10kB\n")
        let (client, server) = try await proxy.openPair()
        let before = server.now.count
        let texts = (1...5).map(Self.stanza)
        try await client.send(texts.joined())
        try await client.finish()
        let seen = try await server.wait("the end") { $0.isFinished }
        #expect(String(decoding: seen.bytes.dropFirst(before), as: UTF8.self) == texts.joined())
        try await server.finish()
        try await proxy.settle()
        try await proxy.stop()
    }

    @Test("Reloaded rules apply to open sessions, and faulty ones are not applied")
    func reloading() async throws {
        let drop = try RuleSet([RuleSource(name: "a", text: "KIND: message\nDROP.\n")])
        let pass = try RuleSet([RuleSource(name: "b", text: "KIND: message\nPASS.\n")])
        let next = Next(drop)
        let proxy = try await ProxyFixture(level: .info) {
            $0.rules = ProxyRules(pass, files: ["a"], localTime: { _ in RuleLocalTime() }) {
                () throws(RuleSet.LoadError) in
                guard let rules = next.rules.withLock({ $0 }) else { throw RuleSet.LoadError(faults: []) }
                return rules
            }
        }
        let (client, server) = try await proxy.openPair()
        let before = server.now.count
        let texts = (1...4).map(Self.stanza)
        try await client.send(texts[0])
        try await server.expect(texts[0], after: before)
        try proxy.service.reloadRules()
        // After this time, all event loops have the new rules, which apply to later items.
        try await Task.sleep(for: .milliseconds(50))
        try await client.send(texts[1])
        try await eventually("the message is not dropped") { drop.hits(of: 0) == 1 }
        next.rules.withLock { $0 = nil }
        #expect(throws: RuleSet.LoadError.self) { try proxy.service.reloadRules() }
        try await client.send(texts[2])
        try await eventually("the old rules do not stay") { drop.hits(of: 0) == 2 }
        next.rules.withLock { $0 = pass }
        try proxy.service.reloadRules()
        try await Task.sleep(for: .milliseconds(50))
        try await client.send(texts[3])
        try await server.expect(texts[0] + texts[3], after: before)
        try await proxy.stop()
    }

    private final class Next: Sendable {
        let rules: Mutex<RuleSet?>
        init(_ rules: RuleSet) { self.rules = Mutex(rules) }
    }
}

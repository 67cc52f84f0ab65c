import Foundation
import Glibc
import TapCore
import TapTestKit
import Testing

/// Many sessions at once at the built proxy: none is lost, and afterwards it is as it was.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    .enabled(if: BuildMode.isRelease, "release builds only")
)
struct LoadLongTests {
    /// Sessions at once, where the system allows each of the two processes as many descriptors.
    private static let atOnce = 9500
    private static let inAll = 10_000
    /// What may be kept per session that is over, in bytes, and in all, in KiB: what an allocator does not give back.
    private static let keptInAll = 48 << 10

    private struct Pair {
        let client: RawConnection
        let server: RawConnection
    }

    @Test func `Ten thousand connections, nearly all of them at once, and none is lost`() async throws {
        let descriptors = Self.raiseDescriptorLimit()
        let atOnce = min(Self.atOnce, (descriptors - 500) / 2)
        try #require(atOnce > 1000, "this process may have \(descriptors) descriptors")
        let scripted = try RawListener()
        let tap = try await Tap(upstream: scripted.port)
        // The proxy looks whether its server is up; that connection is no session's.
        _ = try await scripted.accept().drain()
        try await Self.leave(try await Self.open(tap, scripted, number: 0))
        try await Self.settle(tap, to: nil)
        let (before, memory) = (Self.descriptors(of: tap), try tap.memory("VmRSS"))

        var pairs: [Pair] = []
        for number in 0..<atOnce { pairs.append(try await Self.open(tap, scripted, number: number)) }
        #expect(Self.descriptors(of: tap) >= before + 2 * atOnce)
        let full = try tap.memory("VmRSS")
        // Each still reaches its own server, and nobody else's.
        for (number, pair) in pairs.enumerated() { try await Self.exchange(pair, number: number) }
        for pair in pairs { try await Self.leave(pair) }
        pairs.removeAll()
        for number in atOnce..<Self.inAll { try await Self.leave(try await Self.open(tap, scripted, number: number)) }

        try await Self.settle(tap, to: before)
        let after = try tap.memory("VmRSS")
        #expect(after < memory + Self.keptInAll, "\(memory) KiB before, \(full) at \(atOnce) sessions, \(after) after")
        try await tap.stop()
        #expect(try await tap.count(code: "session-began") == Self.inAll + 1)
        #expect(try await tap.count(code: "session-ended") == Self.inAll + 1)
        #expect(try await tap.count(code: "session-ready") == Self.inAll + 1)
    }

    /// A client and its server after a login.
    private static func open(_ tap: Tap, _ scripted: RawListener, number: Int) async throws -> Pair {
        let pair = Pair(client: try RawConnection(port: tap.port), server: try await scripted.accept())
        for turn in Conversations.plainLogin.prefix(10) {
            let (from, to) = turn.direction == .send ? (pair.client, pair.server) : (pair.server, pair.client)
            try await from.write(turn.text)
            let count = turn.text.utf8.count
            let (got, _) = try await to.read { $0.count >= count }
            try #require(got == Array(turn.text.utf8), "session \(number)")
        }
        return pair
    }

    private static func exchange(_ pair: Pair, number: Int) async throws {
        let message = "<message id='m\(number)' to='romeo@example.net'><body>\(number)</body></message>"
        try await pair.client.write(message)
        let (got, _) = try await pair.server.read { $0.count >= message.utf8.count }
        try #require(String(decoding: got, as: UTF8.self) == message)
    }

    private static func leave(_ pair: Pair) async throws {
        let end = "</stream:stream>"
        try await pair.client.write(end)
        pair.client.finish()
        _ = try await pair.server.read(through: end)
        try await pair.server.write(end)
        pair.server.finish()
        let (_, outcome) = try await pair.client.read { _ in false }
        try #require(outcome == .finished)
    }

    /// Waits until the proxy holds no more descriptors than `count`, or for a moment.
    private static func settle(_ tap: Tap, to count: Int?) async throws {
        guard let count else { return try await Task.sleep(for: .milliseconds(500)) }
        let deadline = ContinuousClock.now + .seconds(30)
        while descriptors(of: tap) > count {
            guard ContinuousClock.now < deadline else {
                throw tap.binary.process.failure("\(descriptors(of: tap)) descriptors are open, \(count) before")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private static func descriptors(of tap: Tap) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(tap.binary.process.identifier)/fd").count) ?? 0
    }

    /// Lets this process, and what it starts, have as many descriptors as the system gives; tells how many.
    private static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}

import TapTestKit
import Testing

/// Why sessions on a real server ended, as the log says it.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
)
struct EndingsTests {
    private func endings(_ tap: Tap) throws -> [String] {
        try tap.records().filter { $0.code == "session-ended" }.compactMap(\.message)
    }

    @Test func `Another login with the same resource, and a server that shuts down`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let first = try PlainClient(.juliet, tap, resource: "balcony")
        let second = try PlainClient(.juliet, tap, resource: "balcony")
        try first.socket.read(until: "conflict")
        try first.socket.read()
        try await server.stop()
        try? second.socket.read()
        try await tap.stop()
        let told = try endings(tap)
        #expect(
            told.contains(
                "ended by a stream error of the server: conflict; another login has taken the resource balcony"
            ),
            "\(told)"
        )
        // A server that stops does not always come to say so; what the client was told is what the log tells.
        let words =
            second.socket.received.contains("<system-shutdown")
            ? "ended by a stream error of the server: system-shutdown" : "the server's connection "
        #expect(told.contains { $0.hasPrefix(words) }, "\(told)")
    }

    @Test func `A client that is gone without a word, and an account that comes back again and again`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        for _ in 0..<5 { _ = try PlainClient(.romeo, tap) }
        try await tap.wait(for: "logged in 5 times", in: tap.story)
        try await tap.stop()
        try await server.stop()
        #expect(try endings(tap).contains { $0.hasPrefix("the client's connection ") })
    }
}

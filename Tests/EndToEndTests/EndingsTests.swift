import TapTestKit
import Testing

/// Tests of the reason that the log gives for the end of sessions with a real server.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
)
struct EndingsTests {
    private func endings(_ tap: Tap) throws -> [String] {
        try tap.records().filter { $0.code == "session-ended" }.compactMap(\.message)
    }

    @Test func `The log names a resource conflict or a server's shutdown as the reason of an end`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let first = try await PlainClient(.juliet, tap, resource: "balcony")
        let second = try await PlainClient(.juliet, tap, resource: "balcony")
        try await first.socket.read(until: "conflict")
        try await first.socket.read()
        try await server.stop()
        try? await second.socket.read()
        try await tap.stop()
        let told = try endings(tap)
        #expect(
            told.contains(
                "stream error from the server: conflict; another login uses the same resource balcony: Replaced by new connection"
            ),
            "\(told)"
        )
        // A stopping server does not always send a stream error first; the log must agree with the data that the client
        // received.
        let words =
            second.socket.received.contains("<system-shutdown")
            ? "stream error from the server: system-shutdown" : "the server's connection "
        #expect(told.contains { $0.hasPrefix(words) }, "\(told)")
    }

    /// The client receives the server's end of the stream and then the end of the connection, as through a relay that
    /// does not know XMPP.
    @Test func `A logout is orderly in both TLS modes, even if the client still sends after it`() async throws {
        let server = try await ProsodyServer()
        let own = try await InterceptAuthority()
        for mode in [["--tls", "passthrough"], own.arguments] {
            let tap = try await Tap(upstream: server.port, arguments: mode)
            for round in 0..<20 {
                let client = try await PlainClient(.juliet, tap)
                try await client.socket.write("<enable xmlns='urn:xmpp:sm:3'/>")
                try await client.socket.read(until: "<enabled")
                try await client.socket.write("</stream:stream>")
                if round % 2 == 0 { try await client.socket.read(until: "</stream:stream>") }
                // Data that a client sends at logout. An error here means that the connection was reset, which
                // terminates clients that do not handle it.
                for _ in 0..<3 {
                    try await client.socket.write("<a xmlns='urn:xmpp:sm:3' h='1'/><presence type='unavailable'/>")
                    try await Task.sleep(for: .milliseconds(round % 4))
                }
                try await client.socket.read()
                #expect(client.socket.received.hasSuffix("</stream:stream>"))
            }
            try await tap.stop()
            let records = try tap.records()
            #expect(try endings(tap) == Array(repeating: "closed by the client", count: 20))
            let loud = records.filter {
                ["error", "warn"].contains($0.level) && $0.session != nil && $0.code != "no-tls"
            }
            #expect(loud.isEmpty, "\(loud.compactMap(\.message))")
            #expect(records.contains { $0.code == "after-stream-end" && $0.level == "verbose" })
        }
        try await server.stop()
    }

    @Test func `Lost connections and a reconnect loop are reported`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        for _ in 0..<5 { _ = try await PlainClient(.romeo, tap) }
        try await tap.wait(for: "reconnect loop: 5 sessions of this client", in: tap.story)
        try await tap.stop()
        try await server.stop()
        #expect(try endings(tap).contains { $0.hasPrefix("the client's connection ") })
    }
}

import Foundation
import TapTestKit
import Testing

/// Tests of the output of `explain` for sessions with a real server: the steps until the session is ready, or the
/// failure.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
)
struct LoginTimelineTests {
    /// - Parameter isReady: Whether a session became ready, which determines the expected exit code.
    private func explain(
        _ arguments: String...,
        isReady: Bool = true
    ) async throws -> (lines: [String], error: String) {
        let binary = try await XMPPTapBinary.run(["explain"] + arguments)
        #expect(binary.ending == .exited(isReady ? 0 : 1), "\(binary.error)")
        return (binary.output.split(separator: "\n").map(String.init), binary.error)
    }

    /// Returns the names and outcomes of the steps in a table, in order.
    private func steps(_ lines: [String]) -> [String] {
        lines.compactMap { line in
            let cells = line.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, cells[0] != "step" else { return nil }
            return "\(cells[0]) \(cells[3].prefix { $0 != "(" })".trimmingCharacters(in: .whitespaces)
        }
    }

    @Test func `explain shows a successful login and one with a wrong password`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        try await PlainClient(.juliet, tap, resource: "balcony").leave()
        let stranger = try PlainSocket(port: tap.port)
        try await stranger.openStream()
        try await stranger.write(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAB3cm9uZw==</auth>"
        )
        try await stranger.read(until: "</failure>")
        try await stranger.write("</stream:stream>")
        try await stranger.read()
        try await tap.stop()
        try await server.stop()

        let (lines, _) = try await explain(tap.capture)
        let second = try #require(lines.firstIndex { $0.hasPrefix("session 2, ") })
        #expect(lines.first == "session 1, juliet@localhost/balcony")
        #expect(
            steps(Array(lines[..<second])) == [
                "connect ok", "stream-open ok", "features ok", "mechanism ok", "sasl ok", "stream-open ok",
                "features ok", "bind ok", "ready ok",
            ],
            "\(lines)"
        )
        let told = lines.joined(separator: "\n")
        let ready = try #require(lines.first { $0.contains("  ready ") }?.split(separator: " ").dropFirst())
        #expect(ready.first != "0", "\(ready)")
        #expect(told.contains("(address 127.0.0.1:\(server.port))"), "\(told)")
        #expect(told.contains("mechanism PLAIN; offered "), "\(told)")
        // The outcome is printed before the steps.
        #expect(lines[1].hasPrefix("  ready after "), "\(told)")
        #expect(lines[2].hasSuffix(": closed by the client (closed)"), "\(told)")
        let failure = lines[(second + 1)...].prefix(4).map { $0.split { $0 == " " || $0 == ":" }.first ?? "" }
        #expect(failure == ["failed", "cause", "try", "began"], "\(told)")
        #expect(steps(Array(lines[second...])).last?.hasPrefix("sasl failed, not-authorized") == true, "\(told)")

        let (one, _) = try await explain(tap.capture, "--session", "2", isReady: false)
        #expect(one == Array(lines[second...]))
        let (none, remark) = try await explain(tap.capture, "--session", "7", isReady: false)
        #expect(none.isEmpty)
        #expect(remark.contains("there is no such session"))

        // The story at info contains the failure and the diagnosis, but not the steps.
        let story = Tap.read(tap.story)
        #expect(!story.contains("mechanism: ok"))
        #expect(story.split(separator: "\n").count { $0.contains(" error ") } == 2, "\(story)")
        #expect(told.contains("failed at sasl: "), "\(told)")
        #expect(told.contains("cause: client, not xmpptap"), "\(told)")
        #expect(told.contains("  try: check user name, domain and password"), "\(told)")
    }

    @Test func `explain shows a server that cannot be reached`() async throws {
        let tap = try await Tap(upstream: try FreePort.next())
        let socket = try PlainSocket(port: tap.port)
        try await socket.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='x'>"
        )
        try await socket.read(until: "remote-connection-failed")
        try await socket.read()
        try await tap.stop()
        let (lines, _) = try await explain(tap.capture, isReady: false)
        #expect(steps(lines).count == 1)
        #expect(steps(lines).first?.hasPrefix("connect failed, ") == true, "\(lines)")
        #expect(lines.contains { $0.contains("closed by xmpptap: remote-connection-failed (tap)") }, "\(lines)")
    }

    @Test func `explain says that a log at info has no login steps`() async throws {
        let folder = try TemporaryFolder()
        let log = folder.path(of: "demo.json")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--log-to", "\(log),format=json"])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let (lines, _) = try await explain(log)
        #expect(lines.count == 4 && lines[1] == "  ready", "\(lines)")
        #expect(lines.contains { $0.contains("no login steps recorded") }, "\(lines)")
    }
}

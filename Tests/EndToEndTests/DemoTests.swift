import Foundation
import TapTestKit
import Testing

@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct DemoTests {
    @Test func `The demo shows a whole session with SEND and RECV, sums it up, and exits 0`() async throws {
        let run = try await XMPPTapBinary.run(["demo"])
        #expect(run.ending == .exited(0), "\(run.error)")
        let lines = run.output.split(separator: "\n").map(String.init)
        for part in [
            "SEND: <stream:stream ", "RECV: <stream:features>", "SEND: <auth ", "RECV: <success",
            "<resource>demo</resource>", "RECV: <iq type='result' id='roster'", "SEND: <presence/>",
            "<ping xmlns='urn:xmpp:ping'/>", "🌹</body></message>", "RECV: </stream:stream>",
        ] {
            #expect(lines.contains { $0.contains(part) }, "nothing shows \(part)")
        }
        let summary = lines.drop { !$0.hasPrefix("Steps of the client") }.dropFirst().dropLast()
        let steps = summary.compactMap { $0.split(separator: "  ", omittingEmptySubsequences: true).dropFirst().first }
            .map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(steps == ["tls", "stream", "login", "bind", "roster", "presence", "ping", "message", "close"])
        #expect(lines.last?.hasPrefix("A complete session through xmpptap in ") == true)
    }

    @Test func `The demo hides who talks as the manual shows it`() async throws {
        let run = try await XMPPTapBinary.run([
            "demo", "--redact", "metadata", "--log", "info,send,recv", "--format", "text",
        ])
        #expect(run.ending == .exited(0), "\(run.error)")
        try Documentation.check(.pseudonyms, run.output.split(separator: "\n").map(String.init))
    }

    @Test func `The demo's logs are what was asked for`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "demo.xtap")
        let run = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", capture])
        #expect(run.ending == .exited(0), "\(run.error)")
        #expect(!run.output.contains("SEND"))
        let records = folder.read("demo.xtap").split(separator: "\n")
        #expect(records.first?.contains(#""complete":true"#) == true)
        #expect(records.last?.contains(#""kind":"session""#) == true)
        #expect(records.contains { $0.contains("🌹") })
    }
}

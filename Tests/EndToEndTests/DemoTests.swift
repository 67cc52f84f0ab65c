import Foundation
import TapTestKit
import Testing

@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct DemoTests {
    @Test func `demo shows a whole session with SEND and RECV, summarises it, and exits with 0`() async throws {
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
        let end = try #require(lines.firstIndex { $0.hasPrefix("A complete session through xmpptap in ") })
        let summary = lines[..<end].drop { !$0.hasPrefix("Steps of the client") }.dropFirst()
        let steps = summary.compactMap { $0.split(separator: "  ", omittingEmptySubsequences: true).dropFirst().first }
            .map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(steps == ["tls", "stream", "login", "bind", "roster", "presence", "ping", "message", "close"])
        let next = lines[end...]
        #expect(next.contains("  xmpptap proxy USER@DOMAIN"))
        for client in ["slixmpp", "go-sendxmpp", "profanity"] {
            #expect(next.contains { $0.hasPrefix("  \(client) ") && $0.contains("tap.pem") }, "\(client)")
        }
        #expect(next.allSatisfy { $0.count <= 80 }, "it fits a terminal of 80 columns")
    }

    @Test func `demo --redact metadata prints pseudonyms as the manual shows`() async throws {
        let run = try await XMPPTapBinary.run([
            "demo", "--redact", "metadata", "--log", "info,send,recv", "--format", "text",
        ])
        #expect(run.ending == .exited(0), "\(run.error)")
        try Documentation.check(.pseudonyms, run.output.split(separator: "\n").map(String.init))
    }

    @Test func `demo writes the requested logs and captures`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "demo.xtap")
        let run = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", capture])
        #expect(run.ending == .exited(0), "\(run.error)")
        #expect(!run.output.contains("SEND"))
        let closing = try #require(run.error.split(separator: "\n").last)
        #expect(closing.hasPrefix("capture \(capture), ") && closing.hasSuffix(" records: xmpptap explain \(capture)"))
        let records = folder.read("demo.xtap").split(separator: "\n")
        #expect(records.first?.contains(#""complete":true"#) == true)
        #expect(records.last?.contains(#""kind":"session""#) == true)
        #expect(records.contains { $0.contains("🌹") })
    }

    @Test func `--bodies shows message bodies on standard output only, unless --redact hides them`() async throws {
        let folder = try TemporaryFolder()
        let words = "\"Wherefore art thou?"
        for (policy, isShown) in [("secrets", true), ("bodies", false)] {
            let capture = folder.path(of: "\(policy).xtap")
            let log = folder.path(of: "\(policy).log")
            let demo = try await XMPPTapBinary.run(
                ["demo", "--log", "info", "--capture", capture, "--log-to", log, "--redact", policy]
                    + (isShown ? ["--bodies"] : [])
            )
            #expect(demo.ending == .exited(0), "\(demo.error)")
            let lines = demo.output.split(separator: "\n").filter { $0.contains(" info ") }
            #expect(lines.contains { $0.contains(words) } == isShown, "\(demo.output)")
            #expect(
                folder.read("\(policy).log").contains("message chat") && !folder.read("\(policy).log").contains(words)
            )
            for form in ["text", "compact"] {
                let read = try await XMPPTapBinary.run(["read", capture, "--bodies", "--log", "info", "--format", form])
                #expect(read.ending == .exited(0) && read.output.contains(words) == isShown, "\(read.output)")
                let plain = try await XMPPTapBinary.run(["read", capture, "--log", "info", "--format", form])
                #expect(plain.output.contains("body ") && !plain.output.contains(words), "\(plain.output)")
            }
        }
        let both = try await XMPPTapBinary.run(["demo", "--bodies", "--redact", "metadata"])
        #expect(
            both.ending == .exited(2) && both.error.contains("--bodies and --redact metadata contradict"),
            "\(both)"
        )
    }
}

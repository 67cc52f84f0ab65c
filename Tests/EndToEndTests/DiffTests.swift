import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap diff` on the command line.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct DiffTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Creates a capture of the built-in demonstration session; `changed` edits its text.
    private func capture(_ name: String, changed: (String) -> String = { $0 }) async throws -> String {
        let path = folder.path(of: name)
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", path])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        try changed(Tap.read(path)).write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    private func diff(
        _ arguments: String...
    ) async throws -> (output: String, error: String, ending: ToolProcess.Ending) {
        let run = try await XMPPTapBinary.run(["diff"] + arguments)
        return (run.output, run.error, run.ending)
    }

    @Test func `Two recordings of the same conversation have no differences`() async throws {
        let run = try await diff(capture("a.xtap"), capture("b.xtap"))
        #expect(run.ending == .exited(0), "\(run.output)\(run.error)")
        #expect(run.output.contains("no differences"))
    }

    @Test func `A changed stanza is reported as text, JSON, JUnit and HTML, with exit code 1`() async throws {
        let one = try await capture("a.xtap")
        let other = try await capture("b.xtap") { $0.replacing("<body>", with: "<body>not ") }
        let text = try await diff(one, other)
        #expect(text.ending == .exited(1))
        #expect(text.output.contains("message/body/text(): "))
        let json = try await diff(one, other, "--json")
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(object?["failed"] as? Bool == true)
        let (junit, page) = (folder.path(of: "j.xml"), folder.path(of: "r.html"))
        #expect(try await diff(one, other, "--junit", junit, "--report", page).ending == .exited(1))
        #expect(Tap.read(junit).contains("<failure type=\"changed\""))
        #expect(Tap.read(page).contains("message/body/text()"))
        let printed = try await diff(one, other, "--format", "html")
        #expect(printed.ending == .exited(1))
        #expect(printed.output == Tap.read(page), "--format html is another page than --report")
        #expect(try await diff(one, other, "--format", "json").output == json.output)
        #expect(try await diff(one, other, "--format", "html", "--json").ending == .exited(2))
        #expect(try await diff(one, other, "--fail-on", "timing").ending == .exited(0))
    }

    @Test func `A difference between two servers' rosters is reported as the manual shows`() async throws {
        let one = try await capture("a.xtap")
        let text = try await diff(
            one,
            capture("b.xtap") { $0.replacing("'juliet' subscription='both'", with: "'juliet' subscription='to'") }
        )
        #expect(text.ending == .exited(1), "\(text.output)\(text.error)")
        try Documentation.check(.diff, text.output.split(separator: "\n").map(String.init))
    }

    @Test func `--learn writes a noise file beside the capture, and then the recordings are equal`() async throws {
        let one = try await capture("a.xtap")
        let other = try await capture("b.xtap") { $0.replacing("<body>", with: "<body>not ") }
        let learned = try await diff("--learn", one, other)
        #expect(learned.ending == .exited(0), "\(learned.output)\(learned.error)")
        #expect(Tap.read(folder.path(of: "a.noise")).contains("message/body/text() present\n"))
        #expect(try await diff(one, other).ending == .exited(0))
    }

    @Test func `diff reads a recording from standard input or from several files`() async throws {
        let one = try await capture("a.xtap")
        let other = try await capture("b.xtap")
        let piped = try await XMPPTapBinary.run(["diff", one, "-"], input: Tap.read(other))
        #expect(piped.ending == .exited(0), "\(piped.output)\(piped.error)")
        #expect(piped.output.contains("no differences"))
        let changed = Tap.read(other).replacing("<body>", with: "<body>not ")
        let different = try await XMPPTapBinary.run(["diff", "-", one], input: changed)
        #expect(different.ending == .exited(1), "\(different.output)\(different.error)")
        // The second file of a run begins with the header again.
        let lines = Tap.read(other).split(separator: "\n").map { "\($0)\n" }
        let header = try #require(lines.first)
        let (first, second) = (folder.path(of: "b.xtap.1"), folder.path(of: "c.xtap"))
        try lines[..<10].joined().write(toFile: first, atomically: true, encoding: .utf8)
        let rest = header + lines[10...].joined()
        try rest.write(toFile: second, atomically: true, encoding: .utf8)
        let parts = try await diff(one, "--against", second, first)
        #expect(parts.ending == .exited(0), "\(parts.output)\(parts.error)")
        #expect(try await diff(second, first, "--against", one).ending == .exited(0))
        #expect(try await diff(one, one, one).ending == .exited(2))
        #expect(try await diff("-", "--against", "-").ending == .exited(2))
    }

    @Test func `diff applies the rules of a noise file`() async throws {
        func talk(_ name: String, code: Int, load: String, ticket: String, trace: String) async throws -> String {
            let extra =
                "<load xmlns='urn:example:load' value='\(load)'/><ticket xmlns='urn:example:ticket' id='\(ticket)'/>\(trace)"
            return try await capture(name) { text in
                text.replacing("</body>", with: " Your code is \(code)</body>\(extra)")
            }
        }
        let one = try await talk("a.xtap", code: 123_456, load: "1.0", ticket: "x", trace: "")
        let trace = "<trace xmlns='urn:example:trace'/>"
        let other = try await talk("b.xtap", code: 654_321, load: "1.4", ticket: "y", trace: trace)
        let rules = [
            "message/body/text() regex Your code is [0-9]{6}$", "message/{urn:example:load}load/@value number ± 0.5",
            "message/{urn:example:ticket}ticket/@id present", "message/{urn:example:trace}trace ignore",
        ]
        let noise = folder.path(of: "all.noise")
        for left in rules {
            let lines = rules.filter { $0 != left }.joined(separator: "\n")
            try "# Ours.\n\(lines)\n".write(toFile: noise, atomically: true, encoding: .utf8)
            let run = try await diff(one, other, "--noise", noise)
            #expect(run.ending == .exited(1), "\(left): \(run.output)")
        }
        try rules.joined(separator: "\n").write(toFile: noise, atomically: true, encoding: .utf8)
        let run = try await diff(one, other, "--noise", noise)
        #expect(run.ending == .exited(0), "\(run.output)\(run.error)")
        try rules.joined(separator: "\n").replacing("0.5", with: "0.1")
            .write(toFile: noise, atomically: true, encoding: .utf8)
        #expect(try await diff(one, other, "--noise", noise).ending == .exited(1))
    }

    @Test func `--learn keeps the user's lines in the noise file`() async throws {
        let one = try await capture("a.xtap")
        let other = try await capture("b.xtap") { $0.replacing("<body>", with: "<body>not ") }
        let mine = "# Mine.\n\niq/{urn:mine}a ignore   # why\n"
        let noise = folder.path(of: "a.noise")
        try mine.write(toFile: noise, atomically: true, encoding: .utf8)
        let third = try await capture("c.xtap")
        #expect(try await diff("--learn", one, other, third).ending == .exited(0))
        #expect(Tap.read(noise) == mine + "message/body/text() present\n")
        // Rules that the noise file already contains are not added again.
        #expect(try await diff("--learn", one, other, third).ending == .exited(0))
        #expect(Tap.read(noise) == mine + "message/body/text() present\n")
    }

    @Test func `Sessions that have only stanzas are compared`() async throws {
        func stanzas(_ text: String) -> String {
            text.split(separator: "\n").filter { $0.contains("\"kind\":\"stanza\"") || !$0.contains("\"sequence\":") }
                .joined(separator: "\n") + "\n"
        }
        let one = try await capture("a.xtap", changed: stanzas)
        let other = try await capture("b.xtap") { stanzas($0).replacing("<body>", with: "<body>not ") }
        let run = try await diff(one, other)
        #expect(run.ending == .exited(1), "\(run.output)\(run.error)")
        #expect(run.output.contains("message/body/text(): "))
        let timing = try await diff(one, other, "--most", "1", "--fail-on", "timing")
        #expect(timing.ending == .exited(0), "\(timing.output)\(timing.error)")
        let junit = folder.path(of: "j.xml")
        #expect(try await diff(one, other, "--most", "1", "--junit", junit).ending == .exited(1))
        #expect(Tap.read(junit).contains("name=\"not shown\""))
    }

    @Test func `diff exits with 2 for usage mistakes, and with 3 for unreadable files`() async throws {
        let one = try await capture("a.xtap")
        #expect(try await diff(one).ending == .exited(2))
        #expect(try await diff(one, one, "--session", "99").ending == .exited(2))
        #expect(try await diff(one, one, "--fail-on", "everything").ending == .exited(2))
        #expect(try await diff(one, one, "--write", "x").ending == .exited(2))
        #expect(try await diff(one, folder.path(of: "none.xtap")).ending == .exited(3))
        let noise = folder.path(of: "bad.noise")
        try "iq/@id perhaps\n".write(toFile: noise, atomically: true, encoding: .utf8)
        let run = try await diff(one, one, "--noise", noise)
        #expect(run.ending == .exited(2))
        #expect(run.error.contains("bad.noise:1:8: expected ignore"))
    }
}

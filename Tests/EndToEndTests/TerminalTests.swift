import Foundation
import TapTestKit
import Testing

/// Tests of the compact format in terminals of several widths.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/tmux"), "tmux is missing")
)
struct TerminalTests {
    private let folder = try? TemporaryFolder()

    /// Runs a command in a terminal with the given width, and returns the lines on the screen, and the same lines with
    /// wrapped ones joined.
    private func screen(
        _ columns: Int,
        _ command: String,
        environment: [String: String]
    ) async throws -> (lines: [String], whole: [String]) {
        // Uses a separate tmux server, because a shared one that is exiting could receive the command.
        let folder = try TemporaryFolder()
        let (socket, done) = (folder.path(of: "tmux"), folder.path(of: "done"))
        func tmux(_ arguments: String...) async throws -> String {
            let process = try ToolProcess("/usr/bin/tmux", ["-u", "-f", "/dev/null", "-S", socket] + arguments)
            #expect(try await process.ending() == .exited(0), "\(process.text(of: .standardError))")
            return process.text(of: .standardOutput)
        }
        let variables = environment.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        _ = try await tmux(
            "new-session",
            "-d",
            "-x",
            "\(columns)",
            "-y",
            "200",
            "env -u LC_ALL \(variables) \(command) 2>&1; echo end >'\(done)'; read line"
        )
        while folder.read("done") != "end\n" { try await Task.sleep(for: .milliseconds(20)) }
        let lines = try await tmux("capture-pane", "-p")
        let whole = try await tmux("capture-pane", "-p", "-J")
        _ = try await tmux("kill-server")
        func rows(_ text: String) -> [String] {
            text.split(separator: "\n").map { String($0.reversed().drop { $0 == " " }.reversed()) }
        }
        return (rows(lines), rows(whole))
    }

    @Test func `Rows fit the terminal's width, whatever characters they have`() async throws {
        let folder = try #require(folder)
        let program = try #require(XMPPTapBinary.path)
        let plain = folder.path(of: "plain.xtap")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", plain])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        // Wide, combining, right-to-left, joined and malicious characters in place of the body and the names.
        let strange =
            "\u{5E9}\u{5DC}\u{5D5}\u{5DD} 漢字 e\u{301} \u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467} \u{202E}x\u{200B}"
        let text = folder.read("plain.xtap").replacing("juliet", with: "漢字").replacing("nurse", with: strange)
        let file = folder.path(of: "strange.xtap")
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let utf8 = ["LC_ALL": "C.UTF-8", "NO_COLOR": "1"]
        for columns in [60, 80, 120, 200] {
            for path in [plain, file] {
                let screen = try await screen(columns, "'\(program)' read '\(path)' --log info", environment: utf8)
                #expect(screen.lines.count > 5)
                #expect(screen.lines == screen.whole, "a row is broken at \(columns) columns")
                #expect(screen.lines.contains { $0.contains("✓  login") }, "\(screen.lines)")
            }
        }
        let ascii = try await screen(80, "'\(program)' read '\(file)' --log info", environment: ["LC_ALL": "C"])
        #expect(ascii.lines == ascii.whole && ascii.lines.contains { $0.contains("+  login") })
        #expect(ascii.lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
    }

    @Test func `The output of other commands fits the width, and a login's outcome comes first`() async throws {
        let folder = try #require(folder)
        let program = try #require(XMPPTapBinary.path)
        let capture = folder.path(of: "failed.xtap")
        let scene = try await ControlScene(["--log", "off", "--capture", capture])
        var stranger: PlainSocket? = try PlainSocket(port: scene.port)
        try await stranger?.openStream()
        try await stranger?.write(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAB3cm9uZw==</auth>"
        )
        try await stranger?.read(until: "</failure>")
        try await stranger?.write("</stream:stream>")
        try await stranger?.read()
        // The session ends when the connection is closed.
        stranger = nil
        while !folder.read("failed.xtap").contains("session-ended") { try await Task.sleep(for: .milliseconds(20)) }
        let authorities = "--ca-dir '\(folder.path(of: "ca"))'"
        let created = try await XMPPTapBinary.run([
            "ca", "create", "--domain", "example.org", "--ca-dir", folder.path(of: "ca"),
        ])
        #expect(created.ending == .exited(0), "\(created.error)")
        let sessions = [
            "'\(program)' sessions --control '\(scene.path)'", "'\(program)' sessions 1 --control '\(scene.path)'",
        ]
        let commands = [
            "'\(program)' doctor --port \(try FreePort.next())", "'\(program)' ca show \(authorities)",
            "'\(program)' probe juliet@localhost --timeout 5 --via 127.0.0.1:\(try FreePort.next())",
            "'\(program)' explain '\(capture)'", "'\(program)' read '\(capture)' --sessions",
        ]
        // The commands that the output suggests for copying are longer than 60 columns.
        let demo = "'\(program)' demo --log off"
        let environment = ["LC_ALL": "C.UTF-8", "NO_COLOR": "1"]
        for columns in [60, 80, 200] {
            // A table of sessions needs 72 columns.
            for command in commands + (columns >= 80 ? sessions + [demo] : []) {
                let screen = try await screen(columns, command, environment: environment)
                #expect(
                    !screen.lines.isEmpty && screen.lines == screen.whole,
                    "\(command) at \(columns): \(screen.lines)"
                )
                if command.contains("--sessions") {
                    let rule = String(repeating: "─", count: columns - 18)
                    #expect(screen.lines.first?.hasSuffix("UTC \(rule)") == true, "\(screen.lines)")
                    #expect(screen.lines[1].contains("SLOWEST IQ") == (columns == 200), "\(screen.lines)")
                    #expect(screen.lines[1].contains("SENT  RECV  ERRORS") == (columns >= 80), "\(screen.lines)")
                    let isCut = screen.lines.last?.hasPrefix("not shown here: ") == true
                    #expect(isCut == (columns < 200), "\(screen.lines)")
                }
                guard command.contains(" explain ") else { continue }
                let second = try #require(screen.lines.firstIndex { $0.hasPrefix("── 2 · juliet at ") })
                #expect(screen.lines[second + 1].hasPrefix("✗  failed at sasl: "), "\(screen.lines)")
                #expect(screen.lines.contains { $0.hasPrefix("✓  connect ") }, "\(screen.lines)")
            }
        }
        let ascii = try await screen(60, commands[3], environment: ["LC_ALL": "C", "NO_COLOR": "1"])
        #expect(ascii.lines.contains { $0.hasPrefix("!  failed at sasl: ") })
        #expect(ascii.lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }, "\(ascii.lines)")
        #expect(try await scene.binary.process.terminate() == .exited(0))
    }

    @Test func `Help is shown by a pager only on a terminal`() async throws {
        let folder = try #require(folder)
        let program = try #require(XMPPTapBinary.path)
        let pager = try folder.write("#!/bin/sh\nsed 's/^/> /'; echo \"options $LESS\"\n", to: "pager")
        let hasty = try folder.write("#!/bin/sh\nhead -n 3\n", to: "hasty")
        for file in [pager, hasty] {
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
        }
        for words in ["help tls", "help", "help proxy", "manual tls"] {
            let paged = try await screen(80, "'\(program)' \(words)", environment: ["PAGER": pager, "TERM": "xterm"])
            #expect(paged.lines.last == "options FRX" && paged.lines.contains { $0.hasPrefix("> ") }, "\(paged)")
            let plain = try await XMPPTapBinary.run(
                words.split(separator: " ").map(String.init),
                environment: ["PAGER": pager]
            )
            #expect(plain.ending == .exited(0) && !plain.output.contains("options FRX"))
        }
        let inert = try folder.write("#!/bin/sh\n", to: "inert")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: inert)
        for (variable, value) in [
            ("PAGER", "cat"), ("TERM", "dumb"), ("PAGER", "/nowhere"), ("PAGER", inert), ("PAGER", hasty),
        ] {
            let environment = ["PAGER": pager, "NO_COLOR": "1"].merging([variable: value]) { $1 }
            let command = "sh -c \"'\(program)' help performance; echo status \\$?\""
            let shown = try await screen(80, command, environment: environment)
            #expect(shown.lines.last == "status 0" && !shown.lines.contains { $0.hasPrefix("> ") }, "\(shown.lines)")
            #expect(shown.lines.count > 20 || value == hasty, "\(shown.lines)")
        }
    }

    /// Starts a proxy with the built-in server in a terminal.
    private static func proxy(_ columns: Int, _ rows: Int, environment: String = "") async throws -> TerminalPane {
        try await TerminalPane.proxy(["--control", "none"], columns, rows, environment: environment)
    }

    /// Returns whether the status line is the last line, and no part of it is on any other line.
    private static func hasStatus(_ lines: [String], _ words: String) -> Bool {
        lines.last?.hasPrefix(words) == true
            && !lines.dropLast().contains { line in
                ["session · ", "sessions · ", "stanzas/s", "slowest iq"].contains { line.contains($0) }
            }
    }

    private static func ping(_ client: PlainClient) async throws {
        let id = UUID().uuidString
        try await client.socket.write("<iq type='get' id='\(id)' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await client.socket.read(until: id)
    }

    @Test func `The status line stays last while it fits the terminal, and is erased at the end`() async throws {
        let pane = try await Self.proxy(120, 24)
        try await pane.wait("status") { Self.hasStatus($0, "0 sessions · 0 stanzas/s") }
        var client: PlainClient? = try await pane.client()
        try await pane.wait("session") { lines in
            Self.hasStatus(lines, "1 session · ") && lines.contains { $0.contains("✓  ready") }
                && lines.last?.contains(" · slowest iq ") == true
        }
        for (columns, rows) in [(40, 24), (30, 6), (120, 24), (60, 10)] {
            try await pane.resize(columns, rows)
            try await Self.ping(#require(client))
            try await pane.wait("status at \(columns) columns") {
                Self.hasStatus($0, "1 session · ") && $0.last.map { $0.count < columns } == true
            }
        }
        // The status line does not fit and is left out, and the rows continue.
        for (columns, rows) in [(20, 10), (60, 2)] {
            try await pane.resize(columns, rows)
            try await Self.ping(#require(client))
            try await pane.wait("rows at \(columns) columns") { !$0.contains { $0.contains("session · ") } }
        }
        try await pane.resize(120, 24)
        try await Self.ping(#require(client))
        try await pane.wait("status again") { Self.hasStatus($0, "1 session · ") }
        try await client?.leave()
        // The session ends when the connection is closed.
        client = nil
        try await pane.wait("end") { Self.hasStatus($0, "0 sessions · ") }
        try await pane.resize(26, 24)
        try await pane.tmux("send-keys", "C-c")
        let lines = try await pane.wait("summary") { $0.contains { $0.hasPrefix("sessions ") } && pane.hasEnded }
        #expect(!lines.contains { $0.contains("stanzas/s") }, "\(lines)")
        // The summary at the end fits the terminal too, so every line begins with a different name.
        let summary = lines.drop { !$0.hasPrefix("sessions ") }
        let names = ["sessions ", "items ", "round trips ", "unanswered ", "failed logins ", "Pane is dead"]
        #expect(summary.contains { $0.hasPrefix("round trips p50 ") && $0.hasSuffix(" …") }, "\(lines)")
        #expect(summary.allSatisfy { line in names.contains(where: line.hasPrefix) }, "\(lines)")
        try await pane.tmux("kill-server")
    }

    @Test func `A dumb terminal gets no status line`() async throws {
        let pane = try await Self.proxy(120, 24, environment: "TERM=dumb")
        let client = try await pane.client()
        try await pane.wait("session") { $0.contains { $0.contains("✓  ready") } }
        try await Self.ping(client)
        let lines = try await pane.wait("ping") { $0.contains { $0.contains("ping") } }
        #expect(!lines.contains { $0.contains("stanzas/s") }, "\(lines)")
        try await pane.tmux("kill-server")
    }

    @Test func `A closed terminal ends neither the proxy nor its sessions`() async throws {
        let pane = try await Self.proxy(120, 24)
        let client = try await pane.client()
        try await pane.wait("session") { Self.hasStatus($0, "1 session · ") }
        // At a width of one column, the beginning of the status line scrolls off the screen before the proxy learns the
        // new size.
        try await pane.resize(1, 1)
        try await Self.ping(client)
        try await pane.resize(120, 24)
        try await Self.ping(client)
        try await pane.wait("status") { $0.last?.hasPrefix("1 session · ") == true }
        try await pane.tmux("kill-server")
        for _ in 0..<20 {
            try await Self.ping(client)
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(!pane.hasEnded)
        kill(pane.pid, SIGTERM)
        try await client.socket.read()
        while !pane.hasEnded { try await Task.sleep(for: .milliseconds(20)) }
    }
}

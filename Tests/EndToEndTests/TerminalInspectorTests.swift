import Foundation
import TapTestKit
import Testing

/// The inspector in a terminal: `view --tui` and `proxy --tui`.
@Suite(
    .timeLimit(.minutes(4)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/tmux"), "tmux is missing")
)
struct TerminalInspectorTests {
    /// A shell in a terminal, and a capture of a login and some messages.
    private struct Scene {
        let folder: TemporaryFolder
        let pane: TerminalPane
        let program: String
        let capture: String

        init(_ columns: Int, _ rows: Int) async throws {
            folder = try TemporaryFolder()
            program = try #require(XMPPTapBinary.path)
            capture = folder.path(of: "talk.xtap")
            let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", capture])
            #expect(demo.ending == .exited(0), "\(demo.error)")
            pane = try await TerminalPane("exec env -u LC_ALL LC_ALL=C.UTF-8 PS1='$ ' sh", columns, rows)
            try await pane.wait("prompt") { $0.last?.hasPrefix("$") == true }
        }

        /// Starts the inspector, and returns its process.
        func view() async throws -> Int32 {
            try? FileManager.default.removeItem(atPath: folder.path(of: "pid"))
            let pid = folder.path(of: "pid")
            let before = folder.path(of: "before")
            let command = "sh -c 'echo $$ >\(pid); exec \(program) view \(capture) --tui'"
            try await pane.type("clear; stty -a >\(before); \(command); echo status $?; stty -a >\(before).after")
            try await pane.press("Enter")
            try await pane.wait(for: "[1 Sessions]")
            return try #require(Int32(folder.read("pid").filter(\.isNumber)))
        }

        /// Expects that the terminal is as it was before.
        func expectRestored(_ status: String) async throws {
            try await pane.wait("status") { $0.contains { $0.hasPrefix("status \(status)") } }
            while folder.read("before.after").isEmpty { try await Task.sleep(for: .milliseconds(20)) }
            #expect(folder.read("before.after") == folder.read("before"))
            #expect(try await pane.value("alternate_on") == "0")
            #expect(try await pane.value("cursor_flag") == "1")
            #expect(try await pane.value("wrap_flag") == "1")
            try FileManager.default.removeItem(atPath: folder.path(of: "before.after"))
        }
    }

    @Test func `a capture is read by keys, and the terminal is restored`() async throws {
        let scene = try await Scene(100, 30)
        let pane = scene.pane
        _ = try await scene.view()
        let sessions = try await pane.wait("session") { $0.contains { $0.hasPrefix(">") } }
        #expect(sessions.contains { $0.contains("talk.xtap · read-only") }, "\(sessions)")
        #expect(sessions.last?.hasSuffix("? keys  q quit") == true, "\(sessions)")

        try await pane.press("j", "k", "Enter")
        try await pane.wait(for: "[2 Records]")
        try await pane.press("/")
        try await pane.type("message")
        let filtered = try await pane.wait("filter") { $0.contains { $0.hasPrefix("/ ") && $0.hasSuffix("message") } }
        #expect(filtered.contains { $0.contains(" of ") && $0.contains("records") }, "\(filtered)")
        try await pane.press("C-u")
        try await pane.type("iq and wiht:romeo")
        let wrong = try await pane.wait(for: "column 8")
        #expect(wrong.last?.contains("^") == true, "\(wrong)")
        #expect(wrong.contains { $0.contains("iq ") && $0.hasPrefix(">") }, "the last good result stays: \(wrong)")
        try await pane.press("Escape")
        try await pane.wait(for: "filter: iq")

        try await pane.press("Enter")
        let detail = try await pane.wait(for: "Esc back")
        #expect(detail.contains { $0.contains("<iq") }, "\(detail)")
        try await pane.press("d")
        let diagram = try await pane.wait(for: "[3 Diagram]")
        #expect(
            diagram.contains { $0.contains("client") && $0.contains("xmpptap") && $0.contains("server") },
            "\(diagram)"
        )
        #expect(diagram.contains { $0.contains("─→│") && $0.contains("│") }, "\(diagram)")

        for (columns, rows) in [(60, 24), (60, 10), (200, 50)] {
            try await pane.resize(columns, rows)
            let lines = try await pane.wait("diagram at \(columns) columns") {
                $0.first.map { $0.count > columns - 4 && $0.contains("[3 Diagram]") } == true
            }
            #expect(lines.count <= rows && lines.allSatisfy { $0.count <= columns }, "\(lines)")
        }
        try await pane.resize(40, 8)
        try await pane.wait(for: "too small")
        try await pane.resize(100, 30)
        try await pane.wait(for: "[3 Diagram]")
        try await pane.press("?")
        try await pane.wait(for: "draw the screen again")
        try await pane.press("q")
        try await scene.expectRestored("0")
        try await pane.tmux("kill-server")
    }

    @Test func `the terminal is restored after signals, a stop and a failure`() async throws {
        let scene = try await Scene(80, 24)
        let pane = scene.pane
        for number in [SIGTERM, SIGINT, SIGHUP] {
            kill(try await scene.view(), number)
            try await scene.expectRestored("0")
        }
        _ = try await scene.view()
        try await pane.press("C-c")
        try await scene.expectRestored("0")
        for number in [SIGSEGV, SIGTRAP] {
            kill(try await scene.view(), number)
            try await scene.expectRestored("\(128 + number)")
        }
        // Stopped by a key and by a signal, and continued.
        let pid = try await scene.view()
        try await pane.press("C-z")
        try await pane.wait("prompt") { $0.last?.hasPrefix("$") == true }
        #expect(try await pane.value("alternate_on") == "0")
        for _ in 0..<2 {
            try await pane.type("fg")
            try await pane.press("Enter")
            try await pane.wait(for: "[1 Sessions]")
            kill(pid, SIGTSTP)
            try await pane.wait("prompt") { $0.last?.hasPrefix("$") == true }
            #expect(try await pane.value("alternate_on") == "0")
        }
        try await pane.type("fg")
        try await pane.press("Enter")
        try await pane.wait(for: "[1 Sessions]")
        try await pane.press("2")
        try await pane.wait(for: "[2 Records]")
        try await pane.press("q")
        try await pane.wait("prompt") { $0.last?.hasPrefix("$") == true }
        #expect(try await pane.value("alternate_on") == "0")
        try await pane.tmux("kill-server")
    }

    @Test func `a proxy shows its sessions live, and a held stanza is edited`() async throws {
        let folder = try TemporaryFolder()
        let editor = try folder.write("#!/bin/sh\nsed -i 's/hello/goodbye/' \"$1\"\n", to: "editor")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: editor)
        let pane = try await TerminalPane.proxy(
            ["--control", "none", "--tui"],
            120,
            30,
            environment: "VISUAL= EDITOR='\(editor)'"
        )
        try await pane.wait(for: "No client has connected yet.")
        let client = try await pane.client()
        try await pane.wait(for: "juliet@localhost/balcony")
        try await pane.press("Enter")
        let records = try await pane.wait(for: "roster")
        #expect(records.contains { $0.contains("following") }, "\(records)")
        try await client.socket.write("<iq type='get' id='p1' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await pane.wait("ping") { lines in
            lines.contains { $0.contains("←") && $0.contains("iq result") && $0.contains("ping") }
        }

        try await pane.press("k", "H")
        try await pane.wait(for: "the next stanza is held for you")
        try await client.socket.write(
            "<message type='chat' id='m1' to='juliet@localhost/balcony'><body>hello</body></message>"
        )
        try await pane.wait(for: "1 stanza held")
        try await pane.press("e")
        try await client.socket.read(until: "goodbye")
        try await pane.wait(for: "edited and passed")
        try await pane.press("H")
        try await pane.wait("hold") { $0.contains { $0.hasPrefix(" session 1: the next stanza is held") } }
        try await client.socket.write("<presence id='x1'/><iq type='get' id='p2'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await pane.wait(for: "1 stanza held")
        try await pane.press("D")
        try await pane.wait(for: "held stanza 2: dropped")
        try await client.socket.read(until: "p2")

        // Messages of xmpptap do not disturb the screen.
        try await pane.press("m")
        try await pane.wait(for: "Messages of xmpptap")
        try await pane.press("q")
        try await client.socket.read()
        let lines = try await pane.wait("end") { _ in pane.hasEnded }
        #expect(lines.contains { $0.contains("listening on ") }, "\(lines)")
        #expect(try await pane.value("alternate_on") == "0")
        try await pane.tmux("kill-server")
    }

    @Test func `a closed terminal ends neither the proxy nor its sessions`() async throws {
        let pane = try await TerminalPane.proxy(["--control", "none", "--tui"], 100, 24)
        let client = try await pane.client()
        try await pane.wait(for: "juliet@localhost/balcony")
        try await pane.tmux("kill-server")
        for number in 0..<20 {
            try await client.socket.write("<iq type='get' id='p\(number)'><ping xmlns='urn:xmpp:ping'/></iq>")
            try await client.socket.read(until: "'p\(number)'")
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(!pane.hasEnded)
        kill(pane.pid, SIGTERM)
        try await client.socket.read()
        while !pane.hasEnded { try await Task.sleep(for: .milliseconds(20)) }
    }

    @Test func `a proxy shows its sessions in the terminal and in the browser`() async throws {
        let pane = try await TerminalPane.proxy(["--control", "none", "--tui", "--web", "0"], 120, 24)
        let lines = try await pane.wait(for: "listening on")
        #expect(lines.contains { $0.contains("[1 Sessions]") })
        #expect(lines.contains { $0.contains("open http://127.0.0.1:") }, "\(lines)")
        kill(pane.pid, SIGTERM)
        try await pane.wait("end") { _ in pane.hasEnded }
        try await pane.tmux("kill-server")
    }

    @Test func `without a terminal, or with a log on it, it is refused`() async throws {
        let folder = try TemporaryFolder()
        for command in [["view", folder.path(of: "x.xtap"), "--tui"], ["proxy", "--tui"]] {
            let run = try await XMPPTapBinary.run(command)
            #expect(run.ending == .exited(2) && run.error.contains("--tui needs a terminal"), "\(run)")
        }
        let program = try #require(XMPPTapBinary.path)
        let pane = try await TerminalPane("exec env PS1='$ ' sh", 100, 30)
        for (flags, complaint) in [
            ("proxy --tui --log info", "--log-to FILE"), ("proxy --tui --log-to -", "--log-to FILE"),
            ("view x.xtap --tui --listen 0", "leave --listen out"),
        ] {
            try await pane.type("clear; '\(program)' \(flags); echo status $?")
            try await pane.press("Enter")
            let lines = try await pane.wait("status") { $0.contains { $0.hasPrefix("status ") } }
            #expect(lines.contains("status 2") && lines.joined().contains(complaint), "\(lines)")
        }
        try await pane.type("clear; TERM=dumb '\(program)' proxy --tui; echo status $?")
        try await pane.press("Enter")
        let lines = try await pane.wait("status") { $0.contains { $0.hasPrefix("status ") } }
        #expect(lines.contains("status 2") && lines.joined().contains("can move its cursor"), "\(lines)")
        try await pane.tmux("kill-server")
    }
}

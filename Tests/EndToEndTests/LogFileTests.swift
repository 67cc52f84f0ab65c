import Foundation
import TapTestKit
import Testing

/// Tests of a running proxy's logs: moved files, full disks, blocked output, required logs, and output to a terminal.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct LogFileTests {
    private let folder = try? TemporaryFolder()

    /// Starts a proxy with the built-in server in a shell that sets a limit first.
    private func proxy(after command: String, _ arguments: [String]) throws -> ToolProcess {
        let path = try #require(XMPPTapBinary.path)
        let line = "\(command); exec \"$0\" proxy --listen 127.0.0.1:0 \"$@\""
        return try ToolProcess("/bin/sh", ["-c", line, path] + arguments)
    }

    private func port(of process: ToolProcess) async throws -> UInt16 {
        let line = try await process.line(of: .standardError) { XMPPTapBinary.port(in: $0) != nil }
        return try #require(XMPPTapBinary.port(in: line))
    }

    @Test func `SIGHUP creates a new log file if the old one was moved`() async throws {
        let folder = try #require(folder)
        let log = folder.path(of: "tap.jsonl")
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--log", "off", "--log-to", "\(log),format=json",
        ])
        let port = try await proxy.port()
        try await PlainSocket(port: port).openStream()
        while !folder.read("tap.jsonl").contains("\"name\":\"features\"") {
            try await Task.sleep(for: .milliseconds(10))
        }

        try FileManager.default.moveItem(atPath: log, toPath: log + ".old")
        proxy.process.signal(SIGHUP)
        while !folder.read("tap.jsonl").contains("xtap") { try await Task.sleep(for: .milliseconds(10)) }
        try await PlainSocket(port: port).openStream()
        #expect(try await proxy.process.terminate() == .exited(0))
        #expect(folder.read("tap.jsonl.old").contains("\"session\":1,"))
        #expect(folder.read("tap.jsonl").hasPrefix("{\"xtap\":1,"))
        #expect(folder.read("tap.jsonl").contains("\"session\":2,"))
        let rights = try FileManager.default.attributesOfItem(atPath: log)[.posixPermissions] as? Int
        #expect(rights == 0o600)

        let both = try await XMPPTapBinary.run(["read", log, log + ".old"])
        #expect(both.ending == .exited(0), "\(both.error)")
        let sessions = both.output.split(separator: "\n").compactMap { $0.firstMatch(of: /\[(\d+)\] net:/)?.1 }
        #expect(sessions == ["1", "2"], "the parts of a run are read in their order")
    }

    @Test func `A full disk is reported once, and the relay continues`() async throws {
        let log = try #require(folder).path(of: "tap.jsonl")
        let process = try proxy(after: "ulimit -f 8", ["--log", "off", "--log-to", "\(log),format=json,verbose"])
        let client = try PlainSocket(port: try await port(of: process))
        try await client.openStream()
        for number in 0..<40 { try await ask(client, "q\(number)") }
        // The log is incomplete, and the exit code reports that to scripts.
        let ending = try await process.terminate()
        #expect(ending == .exited(3))
        let told = process.lines(of: .standardError).filter { $0.contains("cannot write \(log): ") }
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("xmpptap: --log-to: cannot write ") == true)
        #expect(told.first?.hasSuffix("; records are buffered, then dropped, until there is space") == true)
        #expect(process.text(of: .standardError).contains("xmpptap: warning: \(log) is incomplete: "))
    }

    @Test func `A full disk that ends the program is not reported as waiting for space`() async throws {
        let proxy = try await XMPPTapBinary.run(["proxy", "--listen", "127.0.0.1:0", "--log-to", "/dev/full"])
        #expect(proxy.ending == .exited(3))
        #expect(proxy.error == "xmpptap: --log-to: cannot write /dev/full: No space left on device\n")
        let path = try #require(XMPPTapBinary.path)
        let file = try #require(folder).path(of: "demo.xtap")
        #expect(try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", file]).ending == .exited(0))
        let read = try ToolProcess("/bin/sh", ["-c", "\"$0\" read \"$1\" >/dev/full", path, file])
        #expect(try await read.ending() == .exited(3))
        #expect(
            read.text(of: .standardError) == "xmpptap: cannot write standard output: No space left on device\n"
        )
    }

    @Test func `With --log-required, a full disk closes and refuses sessions until there is space`() async throws {
        let log = try #require(folder).path(of: "tap.jsonl")
        let process = try proxy(
            after: "ulimit -S -f 8",
            ["--log", "off", "--log-required", "--log-to", "\(log),format=json,verbose"]
        )
        let port = try await port(of: process)
        let client = try PlainSocket(port: port)
        try await client.openStream()
        do {
            for number in 0..<1000 { try await ask(client, "q\(number)") }
            Issue.record("the session goes on")
        } catch {
            #expect(client.received.contains("<resource-constraint"))
        }
        let later = try PlainSocket(port: port)
        await #expect(throws: KitError.self) { try await later.openStream() }
        #expect(later.received.contains("<resource-constraint"))
        #expect(
            process.lines(of: .standardError).contains(
                "xmpptap: --log-required: the log cannot be written; sessions are closed and refused"
            )
        )

        let room = try ToolProcess("/usr/bin/prlimit", ["--pid", "\(process.identifier)", "--fsize=unlimited"])
        #expect(try await room.ending() == .exited(0))
        _ = try await process.line(of: .standardError, within: .seconds(20)) {
            $0 == "xmpptap: --log-required: the log can be written again; sessions are accepted"
        }
        let again = try PlainSocket(port: port)
        try await again.openStream()
        try await ask(again, "again")
        #expect(try await process.terminate() == .exited(0))
    }

    @Test func `With --log-required, sessions are closed until their capture file can be created`() async throws {
        let captures = try #require(folder).path(of: "captures")
        try FileManager.default.createDirectory(atPath: captures, withIntermediateDirectories: false)
        let process = try proxy(after: ":", ["--log", "off", "--log-required", "--capture", "\(captures)/%s.xtap"])
        let port = try await port(of: process)
        try FileManager.default.removeItem(atPath: captures)
        let client = try PlainSocket(port: port)
        do {
            try await client.openStream()
            for number in 0..<100_000 { try await ask(client, "q\(number)") }
            Issue.record("the session goes on")
        } catch {
            #expect(client.received.contains("<resource-constraint"))
        }
        try FileManager.default.createDirectory(atPath: captures, withIntermediateDirectories: false)
        _ = try await process.line(of: .standardError, within: .seconds(20)) {
            $0 == "xmpptap: --log-required: the log can be written again; sessions are accepted"
        }
        let again = try PlainSocket(port: port)
        try await again.openStream()
        try await ask(again, "again")
        #expect(try await process.terminate() == .exited(0))
    }

    @Test func `A second signal ends the program even if a log's reader is blocked`() async throws {
        let pipe = try #require(folder).path(of: "pipe")
        try #require(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        try #require(reader >= 0)
        defer { close(reader) }
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--log", "off", "--log-to", "\(pipe),verbose", "--grace", "600",
        ])
        let client = try PlainSocket(port: try await proxy.port())
        try await client.openStream()
        for _ in 0..<8 { try await ask(client, String(repeating: "x", count: 30_000)) }
        proxy.process.signal(SIGTERM)
        try await Task.sleep(for: .milliseconds(500))
        #expect(proxy.process.isRunning, "the log is still being written")
        proxy.process.signal(SIGTERM)
        #expect(try await proxy.process.ending(within: .seconds(20)) == .exited(0))
    }

    @Test func `Relaying pauses while standard output is not read, and the delay is reported`()
        async throws
    {
        let pipe = try #require(folder).path(of: "stdout")
        try #require(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        try #require(reader >= 0)
        defer { close(reader) }
        let process = try proxy(after: "exec >\"$1\"; shift", [pipe, "--log", "verbose"])
        let port = try await port(of: process)
        let client = try PlainSocket(port: port)
        try await client.openStream()
        // More than the log buffers, but no more than the sockets buffer while the proxy does not read.
        let question = String(repeating: "x", count: 60_000)
        for _ in 0..<80 {
            try await client.write("<iq type='get' id='\(question)'><query xmlns='jabber:iq:register'/></iq>")
        }
        _ = try await process.line(of: .standardError, within: .seconds(20)) {
            $0 == "xmpptap: warning: log output to standard output is blocked; relaying is paused until it is read"
        }
        var bytes = [UInt8](repeating: 0, count: 65536)
        var hasGoneOn = false
        while !hasGoneOn {
            while read(reader, &bytes, bytes.count) > 0 {}
            hasGoneOn = process.text(of: .standardError)
                .contains(
                    /xmpptap: log output to standard output is no longer blocked after [0-9.]+ s; relaying continues\n/
                )
            try await Task.sleep(for: .milliseconds(1))
        }
        let ending = Task { try await process.terminate() }
        while process.isRunning {
            while read(reader, &bytes, bytes.count) > 0 {}
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(try await ending.value == .exited(0))
    }

    @Test(
        "SEND and RECV are coloured on a terminal, unless NO_COLOR is set",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "script is missing"),
        arguments: [("", true), ("1", false)]
    )
    func terminal(noColour: String, isColoured: Bool) async throws {
        let path = try #require(XMPPTapBinary.path)
        let script = try ToolProcess(
            "/usr/bin/script",
            ["-qec", "\(path) demo --log info,send,recv", "/dev/null"],
            environment: ["NO_COLOR": noColour, "TERM": "xterm"]
        )
        #expect(try await script.ending() == .exited(0))
        let text = script.text(of: .standardOutput)
        #expect(text.replacing(/\u{1B}\[[0-9;]*m/, with: "").contains("    <presence/>"))
        #expect(text.contains("\u{1B}[") == isColoured)
        // The summary is at the end.
        let end = text.replacing(/\u{1B}\[[0-9;]*m/, with: "").split(separator: /\r?\n/).suffix(4).joined(
            separator: "\n"
        )
        #expect(end.contains(#/sessions +1: /#) && end.contains(#/round trips +p50 /#), "\(end)")
    }

    @Test func `Secrets are shown only on request, with a warning and a mark in the file`() async throws {
        let folder = try #require(folder)
        let hidden = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", folder.path(of: "hidden")])
        #expect(hidden.ending == .exited(0))
        #expect(hidden.error.hasPrefix("capture ") && hidden.error.split(separator: "\n").count == 1)
        #expect(folder.read("hidden").contains("[redacted:sasl-"))
        let shown = try await XMPPTapBinary.run([
            "demo", "--log", "off", "--capture", folder.path(of: "shown"), "--no-redact",
        ])
        #expect(shown.ending == .exited(0))
        #expect(
            shown.error.hasPrefix(
                "xmpptap: warning: --no-redact: logs contain passwords and other secrets in clear text"
            )
        )
        #expect(!folder.read("shown").contains("[redacted:"))
        #expect(folder.read("shown").split(separator: "\n").first?.contains("\"redaction\":\"none\"") == true)
    }

    /// Sends the built-in server a request that it answers before a login.
    private func ask(_ client: PlainSocket, _ id: String) async throws {
        try await client.write("<iq type='get' id='\(id)'><query xmlns='jabber:iq:register'/></iq>")
        try await client.read(until: "id='\(id)'")
    }
}

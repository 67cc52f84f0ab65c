import Foundation
import TapTestKit
import Testing

/// Tests of tiny terminals, terminals that are closed, and readers that exit after one line.
@Suite(.timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct TerminalFaultTests {
    private static func terminal(
        _ columns: Int = 80,
        _ rows: Int = 24,
        closedAt text: String? = nil,
        isControlling: Bool = false,
        _ arguments: [String]
    ) throws -> ToolProcess {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "TapTestKit/Clients/terminal.py").path
        var flags = [script, "--columns", "\(columns)", "--rows", "\(rows)"]
        if let text { flags += ["--close-at", text] }
        if isControlling { flags.append("--controlling") }
        let program = try #require(XMPPTapBinary.path)
        return try ToolProcess(
            "/usr/bin/python3",
            flags + ["--", program] + arguments,
            environment: ["LC_ALL": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1"]
        )
    }

    private static func capture(in folder: TemporaryFolder) async throws -> String {
        let file = folder.path(of: "demo.xtap")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", file])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        return file
    }

    @Test(arguments: [(0, 0), (1, 1), (2, 1), (20, 5), (40, 10), (2000, 1)])
    func `commands work on a terminal of any size`(columns: Int, rows: Int) async throws {
        let folder = try TemporaryFolder()
        let file = try await Self.capture(in: folder)
        for arguments in [
            ["read", file, "--log", "info"], ["read", file, "--log", "info,send,recv"], ["read", file, "--sessions"],
            ["read", file, "--stats"], ["explain", file], ["demo", "--log", "info"], ["help", "tls"],
            ["proxy", "--help"],
            ["doctor", "--port", "\(try FreePort.next())"],
        ] {
            let process = try Self.terminal(columns, rows, arguments)
            let ending = try await process.ending(within: .seconds(60))
            #expect(ending == .exited(0), "\(arguments) on \(columns)x\(rows): \(process.text(of: .standardError))")
            let text = process.text(of: .standardOutput)
            #expect(!text.isEmpty, "\(arguments)")
            guard arguments == ["read", file, "--log", "info"], columns >= 20 else { continue }
            #expect(text.split(separator: "\r\n").allSatisfy { $0.count <= columns }, "\(text)")
        }
    }

    @Test(arguments: [
        ["read", "--log", "verbose", "--format", "text"], ["read", "--json"], ["explain", "--format", "svg"],
    ])
    func `a command ends quietly when its terminal is closed`(arguments: [String]) async throws {
        let folder = try TemporaryFolder()
        let file = try await Self.capture(in: folder)
        let first = arguments.contains("svg") ? "<svg" : arguments.contains("--json") ? "{" : ":"
        let process = try Self.terminal(closedAt: first, arguments + [file])
        #expect(try await process.ending(within: .seconds(60)) == .exited(0))
        #expect(process.lines(of: .standardError) == ["closed"])
    }

    @Test func `tail ends quietly when its terminal is closed, and the proxy continues`() async throws {
        let scene = try await ControlScene()
        let tail = try Self.terminal(closedAt: "message", ["tail", "--control", scene.path, "--format", "text"])
        // Sends messages until the first record is shown and the terminal closes, and then until a record cannot be
        // shown.
        while tail.isRunning {
            try await scene.client.socket.write("<message to='romeo@localhost'><body>Ay me!</body></message>")
            #expect(try await scene.isUntouched())
        }
        #expect(try await tail.ending(within: .seconds(60)) == .exited(0))
        #expect(tail.lines(of: .standardError) == ["closed"])
        #expect(try await scene.isUntouched())
        _ = try await scene.binary.process.terminate()
    }

    /// Connects a client to a proxy with the built-in server. The port and the password are in the proxy's standard
    /// error.
    private static func client(of proxy: ToolProcess) async throws -> PlainClient {
        let line = try await proxy.line(of: .standardError, within: .seconds(60)) { $0.contains("juliet@localhost") }
        let port = try await proxy.line(of: .standardError, within: .seconds(60)) { XMPPTapBinary.port(in: $0) != nil }
        return try await PlainClient(
            Account("juliet", password: line.split(separator: " ").last.map(String.init) ?? ""),
            port: try #require(XMPPTapBinary.port(in: port))
        )
    }

    private static func ping(_ client: PlainClient, _ id: String) async throws {
        try await client.socket.write("<iq type='get' id='\(id)' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await client.socket.read(until: "id='\(id)'")
    }

    /// If the terminal is the controlling one, closing it sends SIGHUP, on which the proxy reopens its logs.
    @Test(arguments: [false, true]) func `a proxy continues when its terminal is closed`(isControlling: Bool)
        async throws
    {
        let proxy = try Self.terminal(
            closedAt: "roster",
            isControlling: isControlling,
            ["proxy", "--listen", "127.0.0.1:0", "--control", "none", "--log", "info"]
        )
        let first = try await Self.client(of: proxy)
        _ = try await proxy.line(of: .standardError, within: .seconds(60)) { $0 == "closed" }
        for number in 0..<20 { try await Self.ping(first, "p\(number)") }
        let second = try await Self.client(of: proxy)
        try await Self.ping(second, "again")
        let said = "xmpptap: --log: cannot write standard output: the terminal was closed"
        _ = try await proxy.line(of: .standardError, within: .seconds(60)) { $0.hasPrefix(said) }
        proxy.signal(SIGTERM)
        #expect(try await proxy.ending(within: .seconds(60)) == .exited(0))
        #expect(proxy.lines(of: .standardError).count { $0.hasPrefix(said) } == 1)
    }

    @Test func `a proxy continues after its reader has exited`() async throws {
        let program = try #require(XMPPTapBinary.path)
        let proxy = try ToolProcess(
            "/bin/bash",
            [
                "-c", "exec \"$0\" proxy --listen 127.0.0.1:0 --control none --log info > >(head -1 >\"$1\")", program,
                "/dev/null",
            ]
        )
        let first = try await Self.client(of: proxy)
        for number in 0..<20 { try await Self.ping(first, "p\(number)") }
        let second = try await Self.client(of: proxy)
        try await Self.ping(second, "again")
        proxy.signal(SIGTERM)
        #expect(try await proxy.ending(within: .seconds(60)) == .exited(0))
    }
}

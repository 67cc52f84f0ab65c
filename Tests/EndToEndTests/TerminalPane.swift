import Foundation
import TapTestKit
import Testing

/// A terminal in which a program runs.
final class TerminalPane {
    private let folder: TemporaryFolder
    /// The process of the program.
    private(set) var pid: Int32 = 0
    private var server: Int32 = 0

    /// Starts a command of the shell, which should begin with `exec`.
    init(_ command: String, _ columns: Int, _ rows: Int) async throws {
        folder = try TemporaryFolder()
        try await tmux("new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", "sh")
        try await tmux("set-option", "-g", "remain-on-exit", "on")
        // Esc is passed on at once.
        try await tmux("set-option", "-s", "escape-time", "0")
        try await tmux("respawn-pane", "-k", command)
        pid = try #require(Int32(try await value("pane_pid")))
        server = try #require(Int32(try await value("pid")))
    }

    deinit {
        for process in [pid, server] where process > 0 && !Self.hasEnded(process) { kill(process, SIGKILL) }
    }

    /// Starts a proxy with the built-in server.
    static func proxy(
        _ arguments: [String],
        _ columns: Int,
        _ rows: Int,
        environment: String = ""
    ) async throws -> TerminalPane {
        let program = try #require(XMPPTapBinary.path)
        let words = (["proxy", "--listen", "127.0.0.1:0"] + arguments).map { "'\($0)'" }.joined(separator: " ")
        return try await TerminalPane(
            "exec env -u LC_ALL LC_ALL=C.UTF-8 \(environment) '\(program)' \(words)",
            columns,
            rows
        )
    }

    @discardableResult
    func tmux(_ arguments: String...) async throws -> String {
        let socket = folder.path(of: "tmux")
        let process = try ToolProcess("/usr/bin/tmux", ["-u", "-f", "/dev/null", "-S", socket] + arguments)
        guard try await process.ending() == .exited(0) else { throw process.failure("failed") }
        return process.text(of: .standardOutput)
    }

    /// Returns the value of a variable of tmux.
    func value(_ name: String) async throws -> String {
        String(try await tmux("display-message", "-p", "#{\(name)}").dropLast())
    }

    /// Presses keys, by the names of tmux.
    func press(_ keys: String...) async throws {
        for key in keys { try await tmux("send-keys", key) }
    }

    /// Types a text.
    func type(_ text: String) async throws { try await tmux("send-keys", "-l", text) }

    /// The rows that are not empty, without spaces at their ends.
    func lines() async throws -> [String] {
        try await tmux("capture-pane", "-p").split(separator: "\n").map {
            String($0.reversed().drop { $0 == " " }.reversed())
        }
        .filter { !$0.isEmpty }
    }

    func resize(_ columns: Int, _ rows: Int) async throws {
        try await tmux("resize-window", "-x", "\(columns)", "-y", "\(rows)")
    }

    /// Waits until the screen is as expected, and returns its lines.
    @discardableResult
    func wait(_ what: String, _ isReached: ([String]) -> Bool) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let lines = try await lines()
            if isReached(lines) { return lines }
            guard ContinuousClock.now < deadline else { throw KitError("no \(what): \(lines)") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Waits until a row contains a text, and returns the rows.
    @discardableResult
    func wait(for text: String) async throws -> [String] {
        try await wait(text) { $0.contains { $0.contains(text) } }
    }

    /// Waits until the proxy listens, and logs a client in.
    func client() async throws -> PlainClient {
        let lines = try await wait("port") { $0.contains { Self.port(in: $0) != nil } }
        let port = try #require(lines.compactMap(Self.port).first)
        let welcome = try #require(lines.first { $0.contains("juliet@localhost") })
        let password = welcome.split(separator: " ").last.map(String.init) ?? ""
        return try await PlainClient(Account("juliet", password: password), port: port, resource: "balcony")
    }

    private static func port(in line: String) -> UInt16? {
        XMPPTapBinary.port(in: String(line.drop { $0 == " " }))
    }

    /// Whether the process has ended.
    var hasEnded: Bool { Self.hasEnded(pid) }

    static func hasEnded(_ pid: Int32) -> Bool {
        let status = Tap.read("/proc/\(pid)/stat")
        return status.isEmpty || status.contains(") Z ")
    }
}

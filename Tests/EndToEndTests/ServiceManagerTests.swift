import Foundation
import TapTestKit
import Testing

/// Tests of a proxy run by a service manager: inherited sockets, notifications, and reloading of files.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ServiceManagerTests {
    private let folder = try? TemporaryFolder()

    @Test func `Inherited sockets are used, and readiness, reloads and the end are notified to systemd`() async throws {
        let folder = try #require(folder)
        let program = try #require(XMPPTapBinary.path)
        let rules = folder.path(of: "rules.pfw")
        try "KIND: message\nDROP.\n".write(toFile: rules, atomically: true, encoding: .utf8)
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../TapTestKit/Clients/service_manager.py").standardized.path
        let manager = try ToolProcess(
            "/usr/bin/python3",
            [script, "2", program, "proxy", "--listen", "127.0.0.1:{0}", "--rules", rules, "--log", "off"]
        )
        let ports = try await manager.line(of: .standardOutput) { $0.hasPrefix("ports ") }.split(separator: " ")
        let port = try #require(ports.dropFirst().first.flatMap { UInt16($0) })
        let unused = try #require(ports.last)

        // The script listens on this port, so the proxy would have failed if it had opened the port itself.
        _ = try await manager.line(of: .standardOutput) { $0 == "READY=1" }
        try await PlainSocket(port: port).openStream()
        _ = try await manager.line(of: .standardError) { line in
            line.contains("the service manager's socket at 127.0.0.1:\(unused) is unused")
        }

        try "KIND: presence\nDROP.\n\nKIND: message\nDROP.\n".write(toFile: rules, atomically: true, encoding: .utf8)
        manager.signal(SIGHUP)
        _ = try await manager.line(of: .standardError) { $0 == "rules reloaded: 2" }
        try "KIND: nonsense\nDROP.\n".write(toFile: rules, atomically: true, encoding: .utf8)
        manager.signal(SIGHUP)
        _ = try await manager.line(of: .standardError) { $0 == "xmpptap: the old rules stay in force" }
        #expect(manager.text(of: .standardError).contains("rules.pfw:1"))
        try await PlainSocket(port: port).openStream()

        while manager.lines(of: .standardOutput).count(where: { $0 == "READY=1" }) < 3 {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(try await manager.terminate() == .exited(0))
        let notices = manager.lines(of: .standardOutput).dropFirst().filter { !$0.hasPrefix("MONOTONIC_USEC=") }
        // The script may end before it has printed the last notification.
        #expect(notices.prefix(5) == ["READY=1", "RELOADING=1", "READY=1", "RELOADING=1", "READY=1"])
        #expect(notices.count == 5 || notices.dropFirst(5) == ["STOPPING=1"])
    }
}

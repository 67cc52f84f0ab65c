import Foundation
import TapTestKit
import Testing

/// Tests of the Debian package's files without installing the package.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct PackagingTests {
    private static let packaging = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.packaging").standardized

    private static let analyzer = "/usr/bin/systemd-analyze"

    private let folder = try? TemporaryFolder()

    /// Runs once with the configuration as shipped, and once with all its proposed settings enabled.
    @Test(arguments: [false, true])
    func `The proxy starts with the packaged configuration`(isWhole: Bool) async throws {
        let folder = try #require(folder)
        var text = try String(contentsOf: Self.packaging.appending(path: "proxy.conf"), encoding: .utf8)
        if isWhole { text.replace("#--", with: "--") }
        for place in ["/var/log/xmpptap", "/run/xmpptap"] {
            try FileManager.default.createDirectory(
                atPath: folder.path(of: String(place.dropFirst())),
                withIntermediateDirectories: true
            )
            text.replace(place, with: folder.path(of: String(place.dropFirst())))
        }
        let config = folder.path(of: "proxy.conf")
        try text.write(toFile: config, atomically: true, encoding: .utf8)
        let proxy = try XMPPTapBinary(
            ["proxy", "--config", config, "--listen", "127.0.0.1:0"],
            environment: ["HOME": folder.path(of: "home")]
        )
        let port = try await proxy.port()
        try await PlainSocket(port: port).write("<stream:stream ")
        #expect(FileManager.default.fileExists(atPath: folder.path(of: "run/xmpptap/control.sock")))
        #expect(try await proxy.process.terminate() == .exited(0))
        let captures = try FileManager.default.contentsOfDirectory(atPath: folder.path(of: "var/log/xmpptap"))
        #expect(captures.isEmpty == !isWhole)
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: analyzer), "there is no systemd-analyze"))
    func `systemd rates the exposure of the packaged unit at most 2.0`() async throws {
        let unit = Self.packaging.appending(path: "debian/xmpptap.service").path
        // Fails if the exposure is above 2.0.
        let process = try ToolProcess(Self.analyzer, ["security", "--offline=true", "--threshold=20", unit])
        #expect(try await process.ending() == .exited(0), "\(process.text(of: .standardOutput).suffix(200))")
    }

    /// Without root, a process cannot raise its priority, and the Swift runtime writes a line to the journal for each
    /// attempt.
    @Test func `The unit's setpriority filter silences the Swift runtime`() async throws {
        let unit = try String(contentsOf: Self.packaging.appending(path: "debian/xmpptap.service"), encoding: .utf8)
        let answer = try #require(unit.firstMatch(of: #/(?m)^SystemCallFilter=~setpriority:(\d+)$/#)).1
        let program = try #require(XMPPTapBinary.path)
        let folder = try #require(folder)
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../TapTestKit/Clients/setpriority.py").standardized.path
        // The second error number is EPERM.
        for (number, isQuiet) in [(String(answer), true), ("1", false)] {
            let process = try ToolProcess(
                "/usr/bin/python3",
                [script, number, program, "demo", "--log", "off"],
                environment: ["HOME": folder.path, "LIBDISPATCH_LOG": "stderr"]
            )
            #expect(try await process.ending() == .exited(0), "\(process.text(of: .standardError))")
            #expect(process.text(of: .standardError).contains("thread priority") != isQuiet)
        }
    }

    /// A chroot is often entered without /proc.
    @Test(.enabled(if: geteuid() == 0, "only root can take /proc away"))
    func `The program reads its arguments without /proc`() async throws {
        let program = try #require(XMPPTapBinary.path)
        let process = try ToolProcess(
            "/usr/bin/unshare",
            ["--mount", "sh", "-c", "umount -l /proc && exec \"$0\" \"$@\"", program, "help", "öde", "x y"]
        )
        #expect(try await process.ending() == .exited(2))
        let complaint = process.text(of: .standardError)
        #expect(complaint.contains("no help for 'öde'") || complaint.contains("x y"), "\(complaint)")
        let version = try ToolProcess(
            "/usr/bin/unshare",
            ["--mount", "sh", "-c", "umount -l /proc && exec \"$0\" --version", program]
        )
        #expect(try await version.ending() == .exited(0))
        #expect(version.text(of: .standardOutput).hasPrefix("xmpptap "))
    }
}

import Foundation
import TapTestKit
import Testing

/// The compact form in terminals of several widths.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/tmux"), "tmux is missing")
)
struct TerminalTests {
    private let folder = try? TemporaryFolder()

    /// What a terminal of so many columns shows of a command that has ended: its lines, and the same with those joined that
    /// the terminal broke.
    private func screen(
        _ columns: Int,
        _ command: String,
        environment: [String: String]
    ) async throws -> (lines: [String], whole: [String]) {
        let folder = try #require(folder)
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
        try FileManager.default.removeItem(atPath: done)
        func rows(_ text: String) -> [String] {
            text.split(separator: "\n").map { String($0.reversed().drop { $0 == " " }.reversed()) }
        }
        return (rows(lines), rows(whole))
    }

    @Test func `Rows keep to the width, whatever is in them`() async throws {
        let folder = try #require(folder)
        let program = try #require(XMPPTapBinary.path)
        let plain = folder.path(of: "plain.xtap")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", plain])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        // Wide, combining, right-to-left, joined and hostile characters where the body and the names stood.
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
}

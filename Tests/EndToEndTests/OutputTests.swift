import Foundation
import TapTestKit
import Testing

/// Tests of standard output that cannot be written: a full disk, a closed descriptor, and a reader that has exited.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct OutputTests {
    private let folder = try? TemporaryFolder()

    /// Runs a line of bash in which `$0` is the program and `$1`… are the arguments.
    private func shell(_ line: String, _ arguments: [String] = []) async throws -> (
        ending: ToolProcess.Ending, output: String, errors: [String]
    ) {
        let path = try #require(XMPPTapBinary.path)
        let shell = try ToolProcess("/bin/bash", ["-c", line, path] + arguments)
        let ending = try await shell.ending()
        return (ending, shell.text(of: .standardOutput), shell.lines(of: .standardError))
    }

    /// Returns all commands that print something and exit, run on a capture of a complete session.
    private func commands() async throws -> [[String]] {
        let folder = try #require(folder)
        let capture = folder.path(of: "demo.xtap")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", capture])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let authorities = ["--ca-dir", folder.path(of: "ca")]
        return [
            ["--help"], ["--version"], ["help", "read"], ["--generate-completion-script", "bash"],
            ["doctor", "--port", "\(try FreePort.next())"], ["doctor", "--port", "\(try FreePort.next())", "--json"],
            ["ca", "create", "--domain", "example.org"] + authorities, ["ca", "show"] + authorities,
            ["ca", "show", "--json"] + authorities, ["ca", "export"] + authorities,
            ["ca", "export", "--der"] + authorities,
            ["explain", capture], ["explain", capture, "--format", "svg"], ["explain", capture, "--format", "html"],
            ["read", capture], ["read", capture, "--json"], ["demo", "--log", "off"],
            ["ca", "remove"] + authorities,
        ]
    }

    @Test(arguments: [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
    func `Output that cannot be written causes exit code 3`(redirection: String, reason: String) async throws {
        let unreachable = try FreePort.next()
        let probe = ["probe", "juliet@localhost", "--via", "127.0.0.1:\(unreachable)"]
        for arguments in try await commands() + [probe, probe + ["--json"]] {
            let run = try await shell("\"$0\" \"$@\" \(redirection)", arguments)
            #expect(run.ending == .exited(3), "\(arguments): \(run.errors)")
            let told = run.errors.filter { $0.contains(" standard output") && $0.hasSuffix(": \(reason)") }
            #expect(told.count == 1, "\(arguments): \(run.errors)")
            // Advice about a certificate is useless if the certificate was not exported.
            #expect(!run.errors.contains { $0.contains("trust") && arguments.contains("export") })
        }
    }

    @Test func `A reader that closes the pipe causes no error`() async throws {
        for arguments in try await commands() {
            let run = try await shell("{ sleep 0.1; \"$0\" \"$@\"; } | true; echo ${PIPESTATUS[0]}", arguments)
            #expect(run.output == "0\n", "\(arguments): \(run.errors)")
            #expect(!run.errors.contains { $0.contains("standard output") }, "\(arguments)")
        }
    }

    @Test func `A file at its size limit is a write error, and no signal ends the program`() async throws {
        let folder = try #require(folder)
        let script = try await shell(
            "ulimit -f 1; \"$0\" --generate-completion-script bash >\"$1\"",
            [folder.path(of: "completions")]
        )
        #expect(script.ending == .exited(3))
        #expect(script.errors == ["xmpptap: cannot write standard output: File too large"])
        let capture = try await shell(
            "ulimit -f 8; \"$0\" demo --log off --capture \"$1\"",
            [folder.path(of: "short.xtap")]
        )
        #expect(capture.ending == .exited(3), "\(capture.errors)")
        #expect(
            capture.errors.contains {
                $0.hasPrefix("xmpptap: warning: \(folder.path(of: "short.xtap")) is incomplete: ")
            }
        )
    }

    @Test func `If standard output is closed, the output does not go to another file`() async throws {
        let path = try #require(folder).path(of: "demo.xtap")
        let demo = try await shell("\"$0\" demo --log off --capture \"$1\" <&- >&-", [path])
        #expect(demo.ending == .exited(3))
        try LogRecord.all(in: path).checkEveryNumberIsThere()
    }
}

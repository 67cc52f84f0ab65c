import Foundation
import TapTestKit
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ToolProcessTests {
    @Test func `The output and the exit code of a program are returned unchanged`() async throws {
        let shell = try ToolProcess(
            "/bin/sh",
            ["-c", "read line; echo \"$line $ADDED\"; echo torn >&2; printf more >&2; exit 7"],
            environment: ["ADDED": "given"],
            input: "typed\n"
        )
        #expect(try await shell.ending() == .exited(7))
        #expect(shell.text(of: .standardOutput) == "typed given\n")
        #expect(shell.lines(of: .standardError) == ["torn"], "a line is one when its end has come")
        #expect(shell.text(of: .standardError) == "torn\nmore")
    }

    @Test func `A line is read while the program runs, and a signal ends the program`() async throws {
        let shell = try ToolProcess("/bin/sh", ["-c", "echo started; exec sleep 60"])
        #expect(try await shell.line(of: .standardOutput) { $0.hasPrefix("start") } == "started")
        #expect(shell.isRunning)
        #expect(try await shell.terminate() == .signalled(SIGTERM))
    }

    @Test func `Waiting for a line that never appears throws an error with the output`() async throws {
        let shell = try ToolProcess("/bin/sh", ["-c", "echo something else; exit 3"])
        await #expect {
            try await shell.line(of: .standardOutput) { $0 == "wanted" }
        } throws: {
            "\($0)".contains("exited(3)") && "\($0)".contains("something else")
        }
        let sleeper = try ToolProcess("/bin/sleep", ["60"])
        await #expect(throws: KitError.self) {
            try await sleeper.line(of: .standardOutput, within: .milliseconds(50)) { _ in true }
        }
        #expect(throws: KitError.self) { try ToolProcess("/nowhere/at/all") }
    }

    @Test func `Deinitialising a process kills it, and deinitialising a folder deletes it`() async throws {
        var shell: ToolProcess? = try ToolProcess("/bin/sleep", ["60"])
        let identifier = try #require(shell?.identifier)
        #expect(kill(identifier, 0) == 0)
        shell = nil
        while kill(identifier, 0) == 0 { try await Task.sleep(for: .milliseconds(10)) }

        var folder: TemporaryFolder? = try TemporaryFolder()
        let file = try #require(try folder?.write("text", to: "file"))
        #expect(FileManager.default.fileExists(atPath: file))
        folder = nil
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `Free ports differ from each other and refuse connections`() throws {
        let ports = try (0..<20).map { _ in try FreePort.next() }
        #expect(Set(ports).count == 20)
        #expect(ports.allSatisfy { !FreePort.accepts($0) })
    }

    @Test(
        "The port is parsed from the line that announces a listener",
        arguments: [
            ("listening on 127.0.0.1:15222", 15222), ("listening on [::1]:15222, upstream …", 15222),
            ("xmpptap: warning: listening on 0.0.0.0:0: other machines can connect", nil),
            ("listening on nothing", nil), ("listening", nil),
        ] as [(String, UInt16?)]
    )
    func announcedPort(line: String, port: UInt16?) {
        #expect(XMPPTapBinary.port(in: line) == port)
    }

    @Test func `The built program is found beside the test bundle`() async throws {
        #expect(XMPPTapBinary.path != nil)
    }
}

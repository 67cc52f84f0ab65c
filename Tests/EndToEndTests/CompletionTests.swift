import Foundation
import TapTestKit
import Testing

/// What bash offers with the program's completion script, which is driven as bash itself drives it.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct CompletionTests {
    /// What is offered for the last of the words, in `folder`.
    private func offers(
        _ words: String...,
        in folder: String = "/",
        environment: [String: String] = [:]
    ) async throws -> [String] {
        let program = try #require(XMPPTapBinary.path)
        let script = """
            program=$1; shift; cd "$1"; shift
            source <("$program" --generate-completion-script bash)
            COMP_WORDS=("$program" "$@"); COMP_CWORD=$#
            COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
            _xmpptap "$program" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
            """
        let bash = try ToolProcess(
            "/bin/bash",
            ["--norc", "-c", script, "bash", program, folder] + words,
            environment: environment
        )
        let ending = try await bash.ending(within: .seconds(60))
        #expect(ending == .exited(0))
        #expect(bash.text(of: .standardError).isEmpty)
        return bash.lines(of: .standardOutput).sorted()
    }

    @Test func `values are offered where there is a list of them`() async throws {
        #expect(try await offers("proxy", "--tls", "") == ["intercept", "passthrough"])
        #expect(try await offers("proxy", "--tls", "p") == ["passthrough"])
        #expect(try await offers("read", "x.xtap", "--color", "a") == ["always", "auto"])
        #expect(try await offers("tail", "--format", "") == ["compact", "json", "pretty", "text"])
        #expect(try await offers("proxy", "--redact", "") == ["bodies", "metadata", "secrets"])
        #expect(try await offers("inject", "--to", "") == ["client", "server"])
        #expect(try await offers("level", "ver") == ["verbose"])
        #expect(try await offers("proxy", "--log", "info,se") == ["info,send", "info,session="])
        #expect(try await offers("sniff", "-i", "l").contains("lo"))
        #expect(try await offers("help", "lo") == ["logins", "logs"])
        #expect(try await offers("help", "pro") == ["probe", "proxy"])
    }

    @Test func `files are offered that fit`() async throws {
        let folder = try TemporaryFolder()
        for name in ["a.xtap", "b.log.1", "c.pcap.gz", "d.png", "e.pfw", "f.pem"] { try folder.write("", to: name) }
        try FileManager.default.createDirectory(atPath: folder.path(of: "more"), withIntermediateDirectories: false)
        func files(_ command: String, _ words: String...) async throws -> [String] {
            let all = [command] + words
            return try await all.count == 1
                ? offers(command, "", in: folder.path) : offers(command, words[0], "", in: folder.path)
        }
        #expect(try await files("read") == ["a.xtap", "b.log.1", "c.pcap.gz", "more"])
        #expect(try await files("explain") == ["a.xtap", "b.log.1", "c.pcap.gz", "more"])
        #expect(try await files("proxy", "--rules") == ["e.pfw", "more"])
        #expect(try await files("proxy", "--upstream-ca") == ["f.pem", "more"])
        #expect(try await files("doctor", "--ca-dir") == ["more"])
        #expect(try await files("proxy", "--config").contains("d.png"))
    }

    @Test func `running proxies are offered, and their sessions`() async throws {
        let scene = try await ControlScene()
        let control = ["--control", scene.path]
        #expect(try await offers("sessions", "show", control[0], control[1], "") == ["1"])
        #expect(try await offers("inject", control[0], control[1], "--session", "") == ["1"])
        #expect(try await offers("ping", control[0], control[1], "--jid", "j") == ["juliet@localhost/balcony"])
        #expect(try await offers("sessions", "show", control[0], control[1], "2").isEmpty)

        let folder = try TemporaryFolder()
        let environment = ["XDG_RUNTIME_DIR": folder.path]
        #expect(try await offers("tail", "--control", "", environment: environment).isEmpty)
        #expect(try await offers("tail", "--session", "", environment: environment).isEmpty)
        let proxy = try XMPPTapBinary(["proxy", "--listen", "127.0.0.1:0"], environment: environment)
        _ = try await proxy.port()
        let socket = folder.path(of: "xmpptap/control-\(proxy.process.identifier).sock")
        #expect(try await offers("tail", "--control", "", environment: environment) == [socket])
        _ = try await proxy.process.terminate()
        _ = try await scene.binary.process.terminate()
    }
}

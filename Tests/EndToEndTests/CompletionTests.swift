import Foundation
import TapTestKit
import Testing

/// Tests of the completions that shells offer with the program's completion scripts: bash calls the completion function
/// as it does for Tab, zsh runs in a terminal, and fish completes a line.
@Suite(.timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct CompletionTests {
    private enum Shell: String {
        case bash, zsh, fish
    }

    /// Returns the completions that a shell offers for the last word, sorted.
    private struct Completion {
        private let shell: Shell
        private let program: String
        private let folder: TemporaryFolder
        private let script: String

        init(_ shell: Shell) async throws {
            self.shell = shell
            program = try #require(XMPPTapBinary.path)
            folder = try TemporaryFolder()
            let made = try await XMPPTapBinary.run(["--generate-completion-script", shell.rawValue])
            #expect(made.ending == .exited(0), "\(made.error)")
            script = try folder.write(made.output, to: "script")
        }

        func callAsFunction(
            _ words: String...,
            in place: String? = nil,
            environment: [String: String] = [:]
        ) async throws -> [String] {
            let place = place ?? folder.path
            let line = (["xmpptap"] + words).joined(separator: " ")
            let search = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
            // Uses a home folder without settings, and a PATH with which the shell finds the program by name.
            let surroundings = [
                "PATH": "\(URL(filePath: program).deletingLastPathComponent().path):\(search)", "HOME": folder.path,
            ].merging(environment) { $1 }
            let process: ToolProcess
            switch shell {
            case .bash:
                let commands = """
                    source "$1"; cd "$2"; shift 2
                    COMP_WORDS=(xmpptap "$@"); COMP_CWORD=$#
                    COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
                    _xmpptap xmpptap "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
                    for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
                    """
                process = try ToolProcess(
                    "/bin/bash",
                    ["--norc", "-c", commands, "bash", script, place] + words,
                    environment: surroundings
                )
            case .zsh:
                let driver = URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "../TapTestKit/Clients/zsh_offers.zsh").standardized.path
                process = try ToolProcess(
                    TestProgram.zsh.rawValue,
                    ["-f", driver, script, place, line],
                    environment: surroundings
                )
            case .fish:
                process = try ToolProcess(
                    TestProgram.fish.rawValue,
                    ["--no-config", "-c", "source $argv[1]; cd $argv[2]; complete -C $argv[3]", script, place, line],
                    environment: surroundings
                )
            }
            let ending = try await process.ending(within: .seconds(60))
            #expect(ending == .exited(0))
            #expect(process.text(of: .standardError).isEmpty, "\(line): \(process.text(of: .standardError))")
            // fish adds descriptions, and a slash after folders.
            let offers = process.lines(of: .standardOutput).map { line in
                let word = line.split(separator: "\t").first.map(String.init) ?? ""
                return word.hasSuffix("/") ? String(word.dropLast()) : word
            }
            return Set(offers).sorted()
        }
    }

    @Test func `bash completes commands, flags, values, files, sessions and topics`() async throws {
        try await check(.bash)
    }

    @Test(.enabled(if: TestProgram.zsh.isInstalled, "zsh is missing"))
    func `zsh completes commands, flags, values, files, sessions and topics`() async throws {
        try await check(.zsh)
    }

    @Test(.enabled(if: TestProgram.fish.isInstalled, "fish is missing"))
    func `fish completes commands, flags, values, files, sessions and topics`() async throws {
        try await check(.fish)
    }

    private func check(_ shell: Shell) async throws {
        let offers = try await Completion(shell)
        if shell == .zsh {
            #expect(try await offers("proxy", "--tls=p") == ["passthrough"])
            #expect(try await offers("proxy", "--log=info,se") == ["info,send", "info,session="])
            #expect(try await offers("sniff", "-il").contains("lo"))
        }
        try await checkValues(offers)
        try await checkFiles(offers, shell)
        try await checkSessions(offers)
    }

    private func checkValues(_ offers: Completion) async throws {
        #expect(try await offers("pro") == ["probe", "proxy"])
        #expect(try await offers("sessions", "p") == ["pass", "pause"])
        #expect(try await offers("read", "--fo") == ["--follow", "--format"])
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

    /// Checks that suitable files and folders are offered.
    private func checkFiles(_ offers: Completion, _ shell: Shell) async throws {
        let folder = try TemporaryFolder()
        for name in ["a.xtap", "b.log.1", "c.pcap.gz", "d.png", "e.pfw", "f.pem"] { try folder.write("", to: name) }
        try FileManager.default.createDirectory(atPath: folder.path(of: "more"), withIntermediateDirectories: false)
        for name in ["more/g.xtap", "more/h.png"] { try folder.write("", to: name) }
        let here = folder.path
        #expect(try await offers("read", "", in: here) == ["a.xtap", "b.log.1", "c.pcap.gz", "more"])
        #expect(try await offers("explain", "", in: here) == ["a.xtap", "b.log.1", "c.pcap.gz", "more"])
        #expect(try await offers("proxy", "--rules", "", in: here) == ["e.pfw", "more"])
        #expect(try await offers("proxy", "--upstream-ca", "", in: here) == ["f.pem", "more"])
        #expect(try await offers("doctor", "--ca-dir", "", in: here) == ["more"])
        #expect(try await offers("proxy", "--config", "", in: here).contains("d.png"))
        // zsh offers only the part after the folder's name.
        let inside = try await offers("read", "more/", in: here)
        #expect(inside == [shell == .zsh ? "g.xtap" : "more/g.xtap"])
    }

    /// Checks that running proxies and their sessions are offered.
    private func checkSessions(_ offers: Completion) async throws {
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

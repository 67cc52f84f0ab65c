import Foundation
import TapTestKit
import Testing

/// Compares the transcripts of the README and the manual with the program's output. A `…` in a transcript replaces
/// omitted lines.
@Suite(.serialized, .timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReadmeTranscriptTests {
    @Test func `a transcript that omits a line without an ellipsis is detected`() {
        let printed = [
            "2026-11-27T17:22:42.102Z info [1] SEND stream 12 B",
            "2026-11-27T17:22:42.103+01:00 info [1] RECV stream 1.2 kB", "end",
        ]
        func difference(_ lines: String...) -> String? { Transcript(lines: lines).difference(from: printed) }
        #expect(
            difference(
                "2026-11-27T11:00:00.000Z info [1] SEND stream 99 B",
                "2026-11-27T11:00:00.000Z info [1] RECV stream 9 B",
                "end"
            ) == nil
        )
        #expect(difference("2026-11-27T11:00:00.000Z info [1] SEND …", "…", "end") == nil)
        #expect(difference("…", "2026-11-27T11:00:00.000Z info [1] RECV stream 9 B", "…") == nil)
        #expect(difference("2026-11-27T11:00:00.000Z info [1] SEND stream 99 B", "end") != nil)
        #expect(difference("2026-11-27T11:00:00.000Z info [1] SEND stream 99 B") != nil)
        #expect(difference("2026-11-27T11:00:00.000Z info [1] SEND features 99 B", "…") != nil)
        #expect(difference("…", "something else", "…") != nil)
    }

    @Test func `the transcripts of doctor and the built-in server match their output`() async throws {
        let doctor = try await XMPPTapBinary.run(["doctor"])
        try Documentation.check(.doctor, doctor.output.split(separator: "\n").map(String.init))
        let proxy = try XMPPTapBinary(["proxy", "--listen", "127.0.0.1:0"])
        _ = try await proxy.port()
        let said = proxy.process.lines(of: .standardError)
        #expect(try await proxy.process.terminate() == .exited(0))
        try Documentation.check(.builtInServer, said)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing"))
    func `the transcripts of commands to a running proxy match their output`() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let control = ["--control", folder.path(of: "control.sock")]
        let proxy = try XMPPTapBinary(proxyTo: server.port, control)
        var clients: [ScriptedClient] = []
        for (account, resource) in [(Account.romeo, "orchard"), (.juliet, "balcony")] {
            let client = try ScriptedClient(
                .slixmpp,
                as: account,
                port: try await proxy.port(),
                .init(receive: 2),
                options: ["--jid", "\(account.jid)/\(resource)"]
            )
            try await client.event("ready")
            clients.append(client)
        }
        let version = #"<iq type="get" id="v" to="localhost"><query xmlns="jabber:iq:version"/></iq>"#
        let commands: [(sample: Documentation.Sample, arguments: [String])] = [
            (.sessions, ["sessions"]),
            (
                .inject,
                ["inject", "--session", "2", "--to", "client", "--message", "Ay me!", "--peer", "romeo@localhost"]
            ),
            (.injectRequest, ["inject", "--session", "2", "--to", "server"]),
            (.ping, ["ping", "--jid", "juliet@localhost", "--count", "2", "--interval", "100ms"]),
            (.level, ["level", "verbose", "--session", "2"]),
        ]
        for (sample, arguments) in commands {
            let run = try await XMPPTapBinary.run(arguments + control, input: version)
            #expect(run.ending == .exited(0), "\(run.error)")
            let printed = (run.output + run.error).split(separator: "\n", omittingEmptySubsequences: false)
            try Documentation.check(sample, printed.dropLast().map(String.init))
        }
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .profanity, .jq), "Prosody, profanity or jq is missing"))
    func `the README's first session with Prosody works as shown`() async throws {
        let folder = try TemporaryFolder()
        let port = try FreePort.next()
        // Prosody does not start as root without `run_as_root`, and the tests may run as root.
        let settings = try #require(Documentation.transcripts(.prosody).first).lines.joined(separator: "\n").replacing(
            "5322",
            with: "\(port)"
        )
        let configuration = try folder.write("run_as_root = true\n\(settings)\n", to: "prosody.cfg.lua")
        let juliet = Account("juliet", password: "secret")
        let register = try ToolProcess(
            "/bin/bash",
            [
                "-c",
                "cd '\(folder.path)' && prosodyctl --root --config \(configuration) register juliet localhost secret",
            ]
        )
        #expect(try await register.ending() == .exited(0), "\(register.text(of: .standardError))")
        let server = try ToolProcess(
            "/bin/bash",
            ["-c", "cd '\(folder.path)' && exec prosody -F --config \(configuration)"]
        )
        let end = ContinuousClock.now + .seconds(60)
        while !FreePort.accepts(port) {
            guard server.isRunning, ContinuousClock.now < end else { throw server.failure("Prosody does not start") }
            try await Task.sleep(for: .milliseconds(20))
        }
        let capture = folder.path(of: "first.xtap")
        let proxy = try XMPPTapBinary(
            [
                "proxy", "--listen", "127.0.0.1:0", "--upstream", "localhost:\(port)", "--log", "info", "--capture",
                capture,
            ]
        )
        let client = try ScriptedClient(
            .profanity,
            as: juliet,
            port: try await proxy.port(),
            .init(send: [(juliet, "Ay me!")], receive: 1),
            options: ["--resource", "balcony"]
        )
        try await client.finish()
        #expect(try await proxy.process.terminate() == .exited(0))
        #expect(try await server.terminate() == .exited(0))

        // The message about the capture is printed last.
        let messages = proxy.process.lines(of: .standardError)
        let printed = messages.dropLast() + proxy.process.lines(of: .standardOutput) + messages.suffix(1)
        try Documentation.check(.firstSession, printed.map { $0.replacing("\(folder.path)/", with: "") })
        let read = try await XMPPTapBinary.run(["read", capture, "--log", "off,send,recv"])
        try Documentation.check(.firstCapture, read.output.split(separator: "\n").map(String.init))

        // Tries the rule files on the same session.
        for (sample, words) in [(Documentation.Sample.rulesCheck, ["rules", "check"]), (.rulesRun, ["rules", "run"])] {
            let files = ["\(Documentation.root)/filters/no-typing.pfw"] + (sample == .rulesRun ? [capture] : [])
            let run = try await XMPPTapBinary.run(words + files)
            #expect(run.ending == .exited(0), "\(run.error)")
            let lines = run.output.replacing("\(Documentation.root)/", with: "").split(separator: "\n").map(String.init)
            try Documentation.check(sample, lines)
        }

        // Checks the answers of jq for the same session.
        for (question, answer) in try Self.questions() {
            let shell = try ToolProcess("/bin/bash", ["-c", "cd '\(folder.path)' && \(question.dropFirst(2))"])
            #expect(try await shell.ending() == .exited(0), "\(question)")
            let difference = answer.difference(from: shell.lines(of: .standardOutput))
            #expect(difference == nil, "\(question)\n\(difference ?? "")")
        }
    }

    /// Returns the jq commands in the manual with the output shown after them.
    private static func questions() throws -> [(question: String, answer: Transcript)] {
        let blocks = Documentation.pages.flatMap(\.transcripts).filter {
            $0.lines.contains(where: Documentation.Sample.jq.begins)
        }
        return blocks.flatMap { block in
            block.lines.indices.filter { Documentation.Sample.jq.begins(block.lines[$0]) }.map { index in
                let rest = block.lines[(index + 1)...].prefix { !$0.hasPrefix("$ ") && !$0.isEmpty }
                return (block.lines[index], Transcript(lines: Array(rest)))
            }
        }
    }

    private typealias OutputName = ToolProcess.Output

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .goSendxmpp, .openssl), "Prosody or go-sendxmpp is missing"))
    func `the transcript of a session inside TLS matches the output`() async throws {
        let real = try await TestCertificate()
        let own = try await InterceptAuthority()
        let server = try await ProsodyServer(encryption: .startTLS(real))
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "inside.xtap")
        let proxy = try XMPPTapBinary(
            ["proxy", "--listen", "127.0.0.1:0", "--upstream", "localhost:\(server.port)", "--log", "info"]
                + ["--capture", capture] + own.arguments + ["--upstream-ca", real.certificate]
        )
        let client = try GoSendxmpp(
            as: .juliet,
            port: try await proxy.port(),
            trusting: own.certificate,
            send: "Ay me!",
            to: .juliet
        )
        try await client.finish()
        try await Self.tryClients(port: try await proxy.port(), trusting: own.certificate)
        #expect(try await proxy.process.terminate() == .exited(0))
        try await server.stop()
        try Documentation.check(.insideTLS, proxy.process.lines(of: .standardOutput))
        let read = try await XMPPTapBinary.run(["read", capture, "--log", "off,send,recv"])
        try Documentation.check(.insideTLSRead, read.output.split(separator: "\n").map(String.init))
    }

    /// Runs the manual's commands for slixmpp and go-sendxmpp.
    private static func tryClients(port: UInt16, trusting authority: String) async throws {
        let page = try #require(Documentation.pages.first { $0.name == "clients.md" })
        let folder = try TemporaryFolder()
        try folder.write(Tap.read(authority), to: "tap.pem")
        func text(_ beginning: String) throws -> String {
            let block = try #require(page.transcripts.first { $0.lines.first?.hasPrefix(beginning) == true })
            return block.lines.joined(separator: "\n").replacing("15222", with: "\(port)")
                .replacing("secret", with: Account.juliet.password)
        }
        func run(_ command: String) async throws {
            let shell = try ToolProcess(
                "/bin/bash",
                ["-c", "cd '\(folder.path)' && \(command)"],
                environment: ["HOME": folder.path]
            )
            #expect(try await shell.ending() == .exited(0), "\(command): \(shell.text(of: .standardError))")
        }
        try await run(try text("echo 'Ay me!'"))
        guard TestProgram.areInstalled(.slixmpp) else { return }
        try folder.write(try text("import logging"), to: "client.py")
        try await run("exec /usr/bin/python3 client.py")
        let told = try await XMPPTapBinary.run(["explain", folder.path(of: "slixmpp.log")])
        #expect(told.ending == .exited(0) && told.output.contains("  ready "), "\(told.output)\(told.error)")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl"), "curl is missing"))
    func `the transcripts of curl with the control socket match its output`() async throws {
        let scene = try await ControlScene()
        let page = try #require(Documentation.pages.first { $0.name == "control.md" })
        let lines = try #require(
            page.transcripts.first { $0.lines.first.map(Documentation.Sample.curl.begins) == true }
        ).lines
        var (told, printed, command): ([String], [String], String) = ([], [], "")
        for line in lines {
            guard line.hasPrefix("$ ") || line.hasPrefix(" ") else {
                told.append(line)
                continue
            }
            command += line.trimmingPrefix("$ ") + "\n"
            guard !line.hasSuffix("\\") else { continue }
            let shell = try ToolProcess(
                "/bin/bash",
                ["-c", "cd '\(scene.folder.path)' && \(command.replacing("tap.sock", with: "control.sock"))"]
            )
            #expect(try await shell.ending() == .exited(0), "\(command)")
            printed += shell.lines(of: .standardOutput)
            command = ""
        }
        func plain(_ line: String) -> String { line.replacing(#/xt-\w+-\d+-i\d+/#, with: "ID") }
        let difference = Transcript(lines: told.map(plain)).difference(from: printed.map(plain))
        #expect(difference == nil, "\(difference ?? "")\n\(printed.joined(separator: "\n"))")
        try await scene.client.socket.read()
        #expect(scene.client.socket.received.contains("Good night"))
    }

    /// Returns the output of a proxy with a rule file for consecutive logins of juliet, of which all but the last must
    /// fail. With `options`, the last must fail too.
    private static func printed(_ file: String, logins: Int, options: [String] = []) async throws -> [String] {
        let server = try await ProsodyServer()
        let program = try #require(XMPPTapBinary.path)
        let proxy = try ToolProcess(
            "/bin/bash",
            [
                "-c",
                "cd '\(Documentation.root)' && exec '\(program)' proxy --listen 127.0.0.1:0 --upstream localhost:\(server.port) "
                    + "--rules filters/\(file).pfw --log info",
            ]
        )
        let line = try await proxy.line(of: .standardError) { XMPPTapBinary.port(in: $0) != nil }
        for login in 1...logins {
            let client = try ScriptedClient(
                .slixmpp,
                as: .juliet,
                port: try #require(XMPPTapBinary.port(in: line)),
                options: ["--jid", "juliet@localhost/balcony", "--timeout", "20"] + options
            )
            if login < logins || !options.isEmpty {
                await #expect(throws: KitError.self) { try await client.finish() }
            } else {
                try await client.finish()
            }
        }
        #expect(try await proxy.terminate() == .exited(0))
        try await server.stop()
        return [OutputName.standardError, .standardOutput].flatMap { proxy.lines(of: $0) }
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing"))
    func `the transcripts of rules that change stanzas and refuse a login match the output`() async throws {
        let changed = try await Self.printed("block-roster-changes", logins: 1, options: ["--add", "tybalt@localhost"])
        try Documentation.check(.changed, changed)
        let broken = try await Self.printed("refuse-first-login", logins: 2)
        try Documentation.check(.refused, broken)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `the transcript of explain for a wrong password matches its output`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "wrong.xtap")
        let proxy = try XMPPTapBinary([
            "proxy", "--tls", "passthrough", "--listen", "127.0.0.1:0", "--capture", capture, "--log", "info",
        ])
        let wrong = Account("juliet", password: "wrong")
        let client = try ScriptedClient(
            .slixmpp,
            as: wrong,
            port: try await proxy.port(),
            options: ["--all-mechanisms", "--timeout", "10"]
        )
        await #expect(throws: KitError.self) { try await client.finish() }
        #expect(try await proxy.process.terminate() == .exited(0))
        let told = try await XMPPTapBinary.run(["explain", capture, "--session", "1"])
        try Documentation.check(.wrongPassword, told.output.split(separator: "\n").map(String.init))
        let diagnosis = proxy.process.lines(of: .standardOutput).filter { $0.contains("the login failed") }
        try Documentation.check(.diagnosis, Array(diagnosis.prefix(1)))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .profanity), "Prosody or profanity is missing"))
    func `the transcript of explain for a profanity log matches its output`() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let log = folder.path(of: "profanity.log")
        let client = try ScriptedClient(.profanity, as: .juliet, port: server.port, options: ["--log", log])
        _ = try await client.finish()
        try await server.stop()
        let told = try await XMPPTapBinary.run(["explain", log])
        try Documentation.check(.profanityLog, told.output.split(separator: "\n").map(String.init))
    }
}

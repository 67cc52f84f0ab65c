import Foundation
import TapTestKit
import Testing

/// Tests of the built program's output and exit codes.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct CommandLineTests {
    private let folder = try? TemporaryFolder()

    /// Runs the program, and returns the only line of its standard error and how the program ended.
    private func mistake(_ arguments: String...) async throws -> (line: String, ending: ToolProcess.Ending) {
        let run = try await XMPPTapBinary.run(arguments)
        let lines = run.error.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 2 && lines.last == "", "more than a line: \(run.error)")
        #expect(run.output.isEmpty)
        return (lines.first.map(String.init) ?? "", run.ending)
    }

    @Test func `--version prints the versions on standard output`() async throws {
        let run = try await XMPPTapBinary.run(["--version"])
        #expect(run.ending == .exited(0))
        #expect(run.output.hasPrefix("xmpptap "))
        #expect(run.output.contains("libxml2 2.") && run.output.contains("OpenSSL 3."))
        #expect(run.error.isEmpty)
    }

    @Test func `A usage mistake is one line that names the flag and the remedy, with exit code 2`() async throws {
        let cases = try await [
            mistake("prxy"), mistake("proxy", "--lisen", "1"), mistake("proxy", "--upstream", "5222"),
            mistake("proxy", "--listen", "70000"), mistake("proxy", "--log", "verbos"),
            mistake("proxy", "--log-to", "x.log,filter=mesage"), mistake("proxy", "--tls", "read"),
            mistake("proxy", "--rotate-size", "big"), mistake("proxy", "--grace", "soon"),
            mistake("proxy", "--redact", "bodies", "--no-redact"), mistake("proxy", "--redact", "all"),
            mistake("proxy", "--log", "off", "--log-required"),
            mistake("proxy", "--upstream-domain", "example.org", "--upstream", "localhost:5222"),
            mistake("proxy", "--proxy-protocol", "yes"), mistake("proxy", "--proxy-protocol-from", "example.org"),
        ]
        let expected = [
            "unknown command 'prxy'; did you mean 'proxy'?",
            "unknown option '--lisen'. Did you mean '--listen'?",
            "the value '5222' is invalid for '--upstream <host[:port]|url>': \"5222\" has no host; write HOST:PORT, ",
            "the value '70000' is invalid for '--listen <[host:]port[=host[:port]|=domain:name]>': ",
            "the value 'verbos' is invalid for '--log <spec>': \"verbos\" at column 1 is not part of a log "
                + "specification; did you mean \"verbose\"?",
            "the value 'x.log,filter=mesage' is invalid for '--log-to <path[,format=text|compact|json|pretty][,spec]"
                + "[,filter=expression]>': filter=: column 1: unknown condition \"mesage\"; ",
            "the value 'read' is invalid for '--tls <intercept|passthrough>': write intercept or passthrough",
            "the value 'big' is invalid for '--rotate-size <size>': write a whole number with a unit, as in 100MB, "
                + "64KiB or 2GB",
            "the value 'soon' is invalid for '--grace <seconds>': write a whole number from 0 to 3600",
            "--redact bodies and --no-redact contradict each other; leave one out",
            "the value 'all' is invalid for '--redact <secrets|bodies|metadata>': choose one of secrets, bodies, metadata",
            "--log-required needs a log; add --log-to or --capture",
            "--upstream and --upstream-domain exclude each other; leave one out, or use a separate listener, as in "
                + "--listen PORT=domain:example.org",
            "the value 'yes' is invalid for '--proxy-protocol <accept|send|send-v1>': write accept, send or send-v1",
            "the value 'example.org' is invalid for '--proxy-protocol-from <address[/bits]>': write an IP address or a network, ",
        ]
        for (found, begin) in zip(cases, expected) {
            #expect(found.line.hasPrefix("xmpptap: \(begin)"))
            #expect(found.ending == .exited(2), "\(found.line)")
        }
    }

    @Test(arguments: [false, true])
    func `The built-in server refuses registration if other machines can connect`(isRemote: Bool) async throws {
        let proxy = try XMPPTapBinary(
            ["proxy", "--listen", "127.0.0.1:0", "--log", "off"]
                + (isRemote ? ["--allow-remote", "--tls", "passthrough"] : [])
        )
        let client = try PlainSocket(port: try await proxy.port())
        try await client.openStream()
        #expect(client.received.contains("<register ") != isRemote)
        try await client.write("<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>paris</username>")
        try await client.write("<password>x</password></query></iq>")
        try await client.read(until: "id='r'")
        try await client.read(until: isRemote ? "<not-allowed " : "type='result'")
        #expect(try await proxy.process.terminate() == .exited(0))
        #expect(proxy.process.text(of: .standardError).contains("registration is disabled") == isRemote)
    }

    @Test func `An address that other machines reach needs --allow-remote, and a relay loop is refused`()
        async throws
    {
        let remote = try await mistake("proxy", "--listen", "0.0.0.0:0", "--upstream", "127.0.0.1:5222", "--log", "off")
        #expect(remote.ending == .exited(2))
        #expect(remote.line.contains("--allow-remote"))
        let port = try FreePort.next()
        let loop = try await XMPPTapBinary.run([
            "proxy", "--listen", "127.0.0.1:\(port)", "--upstream", "127.0.0.1:\(port)", "--log", "off",
        ])
        #expect(loop.ending == .exited(2))
        #expect(loop.error.contains("127.0.0.1:\(port)"))
    }

    @Test func `A proxy that listens on all addresses does not tell users to connect to 0.0.0.0`() async throws {
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "0.0.0.0:0", "--allow-remote", "--tls", "passthrough", "--log", "off",
        ])
        let port = try await proxy.port()
        #expect(try await proxy.process.terminate() == .exited(0))
        let told = proxy.process.text(of: .standardError)
        #expect(
            told.contains("point the client at this machine's address, port \(port); its JID stays romeo@localhost")
        )
        #expect(told.contains("warning: listening on 0.0.0.0:0: other machines can connect"))
    }

    @Test func `If the server is down, the proxy warns and clients get a stream error`() async throws {
        let nobody = try FreePort.next()
        let proxy = try XMPPTapBinary(proxyTo: nobody, ["--log", "info"])
        let port = try await proxy.port()
        _ = try await proxy.process.line(of: .standardError) {
            $0.hasPrefix("xmpptap: warning: cannot connect to 127.0.0.1:\(nobody): connection refused")
        }
        let client = try RawConnection(port: port)
        try await client.write(Conversations.plainLogin[0].text)
        let answer = try await client.read(through: "</stream:stream>")
        #expect(answer.contains("<remote-connection-failed "))
        #expect(try await proxy.process.terminate() == .exited(0))
        #expect(proxy.process.text(of: .standardOutput).contains("error [1] net: "))
    }

    @Test func `A port in use is reported in one line, with exit code 4`() async throws {
        let holder = try XMPPTapBinary(["proxy", "--listen", "127.0.0.1:0", "--log", "off"])
        let port = try await holder.port()
        let second = try await mistake("proxy", "--listen", "127.0.0.1:\(port)", "--log", "off")
        #expect(second.ending == .exited(4))
        #expect(second.line.hasPrefix("xmpptap: cannot listen on 127.0.0.1:\(port): the port is already in use;"))
        let doctor = try await XMPPTapBinary.run(["doctor", "--listen", "127.0.0.1:\(port)"])
        #expect(doctor.ending == .exited(1))
        #expect(doctor.output.contains("stop  port \(port)"))
        #expect(try await holder.process.terminate() == .exited(0))
    }

    @Test func `A port in use leaves no files; otherwise an unused capture is kept`() async throws {
        let folder = try TemporaryFolder()
        let kept = folder.path(of: "kept.xtap")
        let holder = try XMPPTapBinary(["proxy", "--listen", "127.0.0.1:0", "--log", "off", "--capture", kept])
        let port = try await holder.port()
        try FileManager.default.createDirectory(atPath: folder.path(of: "captures"), withIntermediateDirectories: false)
        for capture in ["lost.xtap", "captures"] {
            let second = try await mistake(
                "proxy",
                "--listen",
                "127.0.0.1:\(port)",
                "--log",
                "off",
                "--capture",
                folder.path(of: capture),
                "--log-to",
                folder.path(of: "lost.log")
            )
            #expect(second.ending == .exited(4))
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["captures", "kept.xtap"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(of: "captures")) == [])
        #expect(try await holder.process.terminate() == .exited(0))
        #expect(FileManager.default.fileExists(atPath: kept))
    }

    @Test func `A log that cannot be written is reported in one line, with exit code 3`() async throws {
        let nowhere = try await mistake("proxy", "--listen", "0", "--log-to", "/nowhere/tap.log")
        #expect(nowhere.ending == .exited(3))
        #expect(
            nowhere.line
                == "xmpptap: --log-to: cannot open /nowhere/tap.log for writing: the folder /nowhere/ does not exist; create it first"
        )
        let full = try await mistake("proxy", "--listen", "0", "--capture", "/dev/full", "--log", "off")
        #expect(full.ending == .exited(3))
        #expect(full.line.hasPrefix("xmpptap: --capture: cannot write /dev/full: No space left on device"))
        // A client's own log can be read, but records cannot be appended to it.
        for text in ["Dear nurse,\n", "SEND: <presence/>\n", "17:22:42.102 info [1] net: hello\n"] {
            let letter = try #require(folder).write(text, to: "letter.txt")
            let foreign = try await mistake("proxy", "--listen", "0", "--capture", letter, "--log", "off")
            #expect(foreign.ending == .exited(3))
            #expect(
                foreign.line.hasPrefix("xmpptap: --capture: \(letter) exists and is not a JSON log of xmpptap;")
            )
            #expect(folder?.read("letter.txt") == text)
        }
    }

    @Test func `--config reads flags from a file, and mistakes are reported with their line number`() async throws {
        let folder = try #require(folder)
        let good = try folder.write(
            "# for tests\n--listen 127.0.0.1:0\n--log off\n--log-to \"\(folder.path(of: "the tap.log"))\"\n",
            to: "good.conf"
        )
        let proxy = try XMPPTapBinary(["proxy", "--config", good])
        _ = try await proxy.port()
        #expect(try await proxy.process.terminate() == .exited(0))
        #expect(folder.read("the tap.log").hasPrefix("# 2"))
        #expect(proxy.process.text(of: .standardOutput).isEmpty)

        let bad = try folder.write("--listen 0\n--rotate-keep many\n", to: "bad.conf")
        let found = try await mistake("proxy", "--config", bad)
        #expect(
            found.line
                == "xmpptap: \(bad):2: the value 'many' is invalid for '--rotate-keep <count>': "
                + "write a whole number from 0 to 9999"
        )
        #expect(found.ending == .exited(2))
        let missing = try await mistake("proxy", "--config", "/nowhere.conf")
        #expect(missing.line == "xmpptap: --config: cannot read /nowhere.conf: No such file or directory")
        #expect(missing.ending == .exited(3))
    }

    @Test func `doctor prints one line for each check, as text or as JSON`() async throws {
        let port = try FreePort.next()
        let lines = try await XMPPTapBinary.run(["doctor", "--port", "\(port)"])
        #expect(lines.ending == .exited(0), "\(lines.output)")
        #expect(lines.output.split(separator: "\n").allSatisfy { $0.hasPrefix("ok ") || $0.hasPrefix("note ") })
        let json = try await XMPPTapBinary.run(["doctor", "--port", "\(port)", "--json"])
        #expect(json.output.split(separator: "\n").allSatisfy { $0.hasPrefix("{\"check\":") && $0.hasSuffix("}") })
        #expect(json.output.split(separator: "\n").count == lines.output.split(separator: "\n").count)
    }

    @Test func `A completion script is generated for each shell`() async throws {
        for shell in ["bash", "zsh", "fish"] {
            let run = try await XMPPTapBinary.run(["--generate-completion-script", shell])
            #expect(run.ending == .exited(0))
            #expect(run.output.contains("--log-to") || run.output.contains("log-to"))
        }
    }

    @Test func `A running proxy writes no core dump, neither to a file nor to a program`() async throws {
        let tap = try await Tap(upstream: try FreePort.next())
        let limits = Tap.read("/proc/\(tap.binary.process.identifier)/limits").split(separator: "\n")
        let core = limits.first { $0.hasPrefix("Max core file size") }?.split(whereSeparator: \.isWhitespace)
        // A child process cannot have higher limits than this process.
        let isForbidden = Tap.read("/proc/self/limits").contains(/Max core file size +0 +0/)
        #expect(core.map { Array($0[4...5]) } == (isForbidden ? ["0", "0"] : ["1", "1"]))
        try await tap.stop()
    }
}

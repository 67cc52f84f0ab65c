import ArgumentParser
import Testing

@testable import xmpptap

struct EndingTests {
    /// How the program ends with these arguments, if it ends before it has done anything.
    private func ending(_ arguments: String...) throws -> Ending {
        do {
            var command = try Invocation.command(arguments)
            // Requested help is a separate command.
            if String(describing: type(of: command)) == "HelpCommand" { try command.run() }
        } catch {
            return Ending(error, arguments: arguments)
        }
        Issue.record("no ending")
        throw Failure.reported(.success)
    }

    @Test func `The exit codes have their documented values`() {
        #expect(ExitStatus.allCases.map(\.rawValue) == [0, 1, 2, 3, 4, 5])
        #expect(Failure.usage("").status.rawValue == 2)
        #expect(Failure.file("").status.rawValue == 3)
        #expect(Failure.network("").status.rawValue == 4)
        #expect(ExitStatus.preparation.rawValue == 5)
    }

    @Test func `A usage mistake is one line with a remedy, and has exit code 2`() throws {
        let mistakes = try [
            ending("prxy"), ending("record"), ending("help", "raed"), ending("ca", "shw"), ending("ca", "help"),
            ending("help", "ca", "exprot"), ending("prxy\u{1B}[2J"), ending("doctor", "--prt", "1"),
            ending("doctor", "--unheard-of"),
            ending("doctor", "--port"),
            ending("ca", "create"), ending("ca", "export", "--pm"), ending("ca", "--unheard-of"),
            ending("doctor", "--port", "x"), ending("doctor", "more"), ending("doctor", "--json=1"), ending("--json"),
        ]
        #expect(
            mistakes.map(\.complaint) == [
                "unknown command 'prxy'; did you mean 'proxy'?",
                "unknown command 'record'; the commands are demo, proxy, read, sniff, probe, explain, search, stats, diff, replay, record-test, serve, view, convert, store, rules, sessions, tail, inject, ping, level, ca, doctor, help",
                "no help for 'raed'; did you mean 'read'?",
                "unknown command 'shw' for 'xmpptap ca'; did you mean 'show'?",
                "unknown command 'help' for 'xmpptap ca'; the commands are create, show, export, remove",
                "unknown command 'exprot' for 'xmpptap ca'; did you mean 'export'?",
                "unknown command 'prxy\\u{1b}[2J'; the commands are demo, proxy, read, sniff, probe, explain, search, stats, diff, replay, record-test, serve, view, convert, store, rules, sessions, tail, inject, ping, level, ca, doctor, help",
                "unknown option '--prt'. Did you mean '--port'?",
                "unknown option '--unheard-of'; see 'xmpptap doctor --help'",
                "missing value for '--port <[host:]port>'; see 'xmpptap doctor --help'",
                "missing expected argument '--domain <domain>'; see 'xmpptap ca create --help'",
                "unknown option '--pm'. Did you mean '--pem'?",
                "unknown option '--unheard-of'; see 'xmpptap ca --help'",
                "the value 'x' is invalid for '--port <[host:]port>': \"x\" is not a port; write a port, as in 15222, or HOST:PORT, as in 127.0.0.1:15222",
                "unexpected argument 'more'; see 'xmpptap doctor --help'",
                "the option '--json' does not take any value, but '1' was specified; see 'xmpptap doctor --help'",
                "unknown option '--json'; see 'xmpptap --help'",
            ]
        )
        #expect(mistakes.allSatisfy { $0.status == .usage && $0.answer.isEmpty && !$0.complaint.contains("\n") })
    }

    @Test(arguments: [["--to", "ws://a.example/ws?s3cr3t"], ["--to=wss://u:s3cr3t@a.example/ws#s3cr3t"]])
    func `A refused URL is shown without its query, fragment and user`(option: [String]) throws {
        let words = ["replay", "x.xtap"] + option
        let error = #expect(throws: (any Error).self) { try Invocation.command(words) }
        let complaint = try Ending(#require(error), arguments: words).complaint
        #expect(complaint.contains("://a.example/ws") && !complaint.contains("s3cr3t"), "\(complaint)")
    }

    @Test func `--upstream with a domain is refused, and the message names --upstream-domain`() {
        let words = ["proxy", "--upstream", "domain:example.org"]
        let error = #expect(throws: (any Error).self) { try Invocation.command(words) }
        let complaint = error.map { Ending($0, arguments: words).complaint }
        #expect(complaint?.hasSuffix("for the server of a domain use --upstream-domain") == true)
    }

    @Test(arguments: ["ping --session 1", "inject --session 1 --to client"])
    func `A timeout that a proxy would refuse is refused before a request`(command: String) throws {
        for time in ["301s", "6m", "10ms"] {
            let words = command.split(separator: " ").map(String.init) + ["--timeout", time]
            let error = #expect(throws: (any Error).self) { try Invocation.command(words) }
            let ending = Ending(try #require(error), arguments: words)
            #expect(ending.status == .usage && ending.complaint.hasSuffix("write a time from 100ms to 5m"), "\(ending)")
        }
    }

    @Test func `Requested output is printed with exit code 0`() throws {
        let version = try ending("--version")
        #expect(version.status == .success)
        #expect(version.answer == Version.text)
        #expect(version.complaint.isEmpty)
        #expect(try ending("doctor", "--help").answer.hasPrefix("OVERVIEW: "))
        #expect(try ending("help", "doctor").answer == ending("doctor", "--help").answer)
        for shell in ["bash", "zsh", "fish"] {
            let script = try ending("--generate-completion-script", shell)
            #expect(script.status == .success)
            #expect(script.answer.contains("doctor"))
        }
        #expect(try ending("--generate-completion-script", "csh").status == .usage)
    }

    @Test func `A failure determines the exit code and the message`() {
        let ending = Ending(Failure.network("no route"), arguments: [])
        #expect(ending.status == .network)
        #expect(ending.complaint == "no route")
    }
}

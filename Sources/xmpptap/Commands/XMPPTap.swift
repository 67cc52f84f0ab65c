internal import ArgumentParser
internal import Glibc
internal import TapCapture
internal import TapSecurity

/// The entry point: parses the arguments, runs the command and exits with its status.
@main
struct XMPPTap: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpptap",
        abstract: "Logging man-in-the-middle proxy for XMPP.",
        discussion: """
            Examples: see a whole login; log a client's session with the XMPP server on this machine; explain why a \
            recorded login failed.

              xmpptap demo
              xmpptap proxy --upstream localhost:5222
              xmpptap explain today.xtap

            The client connects to localhost port 15222. The log appears here.

            "xmpptap help" lists the topics of the manual.
            """,
        version: Version.text,
        subcommands: [
            DemoCommand.self, ProxyCommand.self, ReadCommand.self, SniffCommand.self, ProbeCommand.self,
            ExplainCommand.self,
            SearchCommand.self, StatsCommand.self, DiffCommand.self, ReplayCommand.self, RecordTestCommand.self,
            ServeCommand.self, ViewCommand.self,
            ConvertCommand.self,
            StoreCommand.self, RulesCommand.self, SessionsCommand.self, TailCommand.self, InjectCommand.self,
            PingCommand.self,
            LevelCommand.self, AuthorityCommand.self,
            DoctorCommand.self, ManualCommand.self,
        ]
    )

    static func main() async {
        let arguments = Array(ProgramArguments.all.dropFirst())
        ProcessLimits.prepare()
        OpenSSLLibrary.leaveCleanupToSystem()
        Processors.limitEventLoops()
        if let help = ShortHelp(asked: arguments, Invocation.definitions) {
            Console.print(help.lines(width: ManualCommand.width).joined(separator: "\n"))
            end(with: .success)
        }
        if let script = CompletionScript.asked(arguments, of: Self.self, Invocation.commands) {
            Console.print(script)
            end(with: .success)
        }
        if arguments.first == Completions.request { await Completions.prepare(arguments) }
        do {
            var command = try Invocation.command(arguments)
            TypedWarnings.print()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            end(with: .success)
        } catch {
            let ending = Ending(error, arguments: arguments)
            if !ending.answer.isEmpty {
                if arguments.first == "help" { Pager.show(ending.answer) } else { Console.print(ending.answer) }
            }
            if !ending.complaint.isEmpty { Console.printDiagnostic(ending.complaint) }
            end(with: ending.status)
        }
    }

    /// Exits with `status`, or with ``ExitStatus/file`` if a write to standard output failed. A closed pipe, as with
    /// `head`, does not count as a failure.
    private static func end(with status: ExitStatus) -> Never {
        BottomLine.hide(isEnd: true)
        guard let fault = Console.fault, fault.code != .brokenPipe else { Glibc.exit(status.rawValue) }
        Console.printDiagnostic("\(fault)")
        Glibc.exit(ExitStatus.file.rawValue)
    }
}

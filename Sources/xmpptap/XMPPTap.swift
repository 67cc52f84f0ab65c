internal import ArgumentParser
internal import Glibc
internal import TapCapture

/// Entry point: parses the arguments, runs the command and exits with its status.
@main
struct XMPPTap: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpptap",
        abstract: "Logging man-in-the-middle proxy for XMPP.",
        discussion: """
            Example: log a client's session with the XMPP server on this machine.

              xmpptap proxy --upstream localhost:5222

            Then connect the client to localhost port 15222 and log in. The log appears here.
            """,
        version: Version.text,
        subcommands: [
            DemoCommand.self, ProxyCommand.self, ReadCommand.self, ProbeCommand.self, ExplainCommand.self,
            RulesCommand.self, AuthorityCommand.self,
            DoctorCommand.self,
        ]
    )

    static func main() async {
        ProcessLimits.prepare()
        Processors.limitEventLoops()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            var command = try Invocation.command(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            end(with: .success)
        } catch {
            let ending = Ending(error, arguments: arguments)
            if !ending.answer.isEmpty { Console.print(ending.answer) }
            if !ending.complaint.isEmpty { Console.complain(ending.complaint) }
            end(with: ending.status)
        }
    }

    /// Exits with `status`, or with ``ExitStatus/file`` if a write to standard output failed. A closed pipe, as with `head`,
    /// is no failure.
    private static func end(with status: ExitStatus) -> Never {
        guard let fault = Console.fault, fault.code != .brokenPipe else { Glibc.exit(status.rawValue) }
        Console.complain("\(fault)")
        Glibc.exit(ExitStatus.file.rawValue)
    }
}

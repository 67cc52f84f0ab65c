internal import ArgumentParser
internal import Glibc
internal import TapCapture

/// The program: from what was typed to a command, and from its end to an exit code.
@main
struct XMPPTap: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpptap",
        abstract: "Reads along between XMPP clients and their server.",
        discussion: """
            Example: a server runs on this machine, and a client shall log in through the tap.

              xmpptap proxy --upstream localhost:5222

            Point the client at localhost port 15222, log in, and read the conversation here.
            """,
        version: Version.text,
        subcommands: [
            DemoCommand.self, ProxyCommand.self, ReadCommand.self, ProbeCommand.self, ExplainCommand.self,
            AuthorityCommand.self,
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

    /// Ends the program, as a failure to write where its output did not reach its place. A reader that has seen enough and
    /// gone is none.
    private static func end(with status: ExitStatus) -> Never {
        guard let fault = Console.fault, fault.code != .brokenPipe else { Glibc.exit(status.rawValue) }
        Console.complain("\(fault)")
        Glibc.exit(ExitStatus.file.rawValue)
    }
}

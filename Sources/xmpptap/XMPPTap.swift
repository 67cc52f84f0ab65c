internal import ArgumentParser
internal import Glibc

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

    /// The names of the commands, as they are typed.
    static var commandNames: [String] {
        configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    }

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
        } catch {
            let ending = Ending(error, arguments: arguments)
            if !ending.answer.isEmpty { Console.print(ending.answer) }
            if !ending.complaint.isEmpty { Console.complain(ending.complaint) }
            Glibc.exit(ending.status.rawValue)
        }
    }
}

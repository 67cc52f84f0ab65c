internal import ArgumentParser
internal import CLibXML2
internal import Glibc
internal import TapCapture
internal import TapSecurity

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
            DiffCommand.self, ReplayCommand.self, RecordTestCommand.self, ServeCommand.self, ConvertCommand.self,
            RulesCommand.self, SessionsCommand.self, TailCommand.self, InjectCommand.self, PingCommand.self,
            LevelCommand.self, AuthorityCommand.self,
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

/// The versions of the program and of the libraries it runs with.
enum Version {
    /// The program's.
    static let program = "0.2.0"

    /// libxml2's, of the library that is loaded, such as `2.9.14`.
    static var libxml2: String {
        // Digits without dots: 20914, perhaps with words of the distribution behind.
        let digits = String(cString: xmpptap_libxml2_version()).prefix { $0.isNumber }
        guard let number = Int(digits) else { return "(unknown version)" }
        return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }

    /// OpenSSL's, of the library that is loaded, such as `3.0.19`.
    static var openSSL: String { OpenSSLCryptography.libraryVersion }

    /// All of them, as `--version` prints them.
    static var text: String { "xmpptap \(program) (libxml2 \(libxml2), OpenSSL \(openSSL))" }
}

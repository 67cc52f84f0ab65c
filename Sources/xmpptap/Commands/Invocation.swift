internal import ArgumentParser
internal import TapRecord

/// Parses the arguments to a command.
enum Invocation {
    /// Returns the command that the arguments name, with the flags of its `--config` file.
    ///
    /// - Throws: Errors of the parser; for a line of the file, a ``Failure`` that starts with `FILE:LINE:`.
    static func command(_ arguments: [String]) throws -> any ParsableCommand {
        // Completion requests contain an unfinished line, which must not be checked.
        if arguments.first == Completions.request { return try XMPPTap.parseAsRoot(arguments) }
        let typed = try ManualCommand.arguments(arguments)
        try refuseUnknownCommand(typed)
        let arguments = ValueFlags.tied(ExplainCommand.complete(typed))
        if let flag = ValueFlags.repeated(arguments) { throw Failure.usage("\(flag) given more than once") }
        let command = try XMPPTap.parseAsRoot(arguments)
        guard let path = (command as? any Configurable)?.config.config else { return command }
        let file = try ConfigFile(path: path, text: text(of: path))
        let lines = file.lines(beside: arguments)
        for (index, line) in lines.enumerated() {
            guard let flag = ValueFlags.repeated(lines[...index].lazy.map(\.flag)) else { continue }
            throw Failure.usage("\(path):\(line.number): \(flag) given more than once")
        }
        do {
            return try XMPPTap.parseAsRoot(ConfigFile.arguments(arguments, with: lines))
        } catch {
            throw try blame(error, on: lines, of: path, beside: arguments)
        }
    }

    /// The names of the program's commands, as typed.
    static var commands: [String] { names(below: XMPPTap.self) }

    /// The help of the program.
    static func help(columns: Int) -> String { XMPPTap.helpMessage(columns: columns) }

    /// The JSON definitions of all commands, as printed by `--experimental-dump-help`.
    static var definitions: String { XMPPTap._dumpHelp() }

    /// Returns the names of a command's subcommands, without hidden ones.
    private static func names(below command: any ParsableCommand.Type) -> [String] {
        let names = command.configuration.subcommands.filter { $0.configuration.shouldDisplay }
            .compactMap { $0.configuration.commandName }
        // The parser adds `help`.
        return command == XMPPTap.self ? names + ["help"] : names
    }

    /// Refuses unknown subcommands, also after `help`; the parser would show the help of the parent command instead.
    private static func refuseUnknownCommand(_ arguments: [String]) throws(Failure) {
        var command: any ParsableCommand.Type = XMPPTap.self
        var path = ""
        for word in arguments {
            let names = names(below: command)
            guard !names.isEmpty, !word.hasPrefix("-") else { return }
            if path.isEmpty, word == "help", word == arguments.first { continue }
            // A number is an argument of the default subcommand.
            if command.configuration.defaultSubcommand != nil, Number.isWhole(word) { return }
            let next = command.configuration.subcommands.first { $0.configuration.commandName == word }
            guard let next else {
                let program = path.isEmpty ? "" : " for 'xmpptap\(path)'"
                let wayOut =
                    Spelling.nearest(to: word, among: names).map { "did you mean '\($0)'?" }
                    ?? "the commands are \(names.joined(separator: ", "))"
                throw .usage("unknown command '\(Console.escaped(word))'\(program); \(wayOut)")
            }
            command = next
            path += " \(word)"
        }
    }

    private static func text(of path: String) throws(Failure) -> String {
        do throws(Failure) {
            return try TextFile.read(path)
        } catch {
            throw Failure(status: error.status, message: "--config: \(error.message)")
        }
    }

    /// Returns a failure for the first line of the file that makes parsing fail.
    private static func blame(
        _ error: any Error,
        on lines: [ConfigFile.Line],
        of path: String,
        beside arguments: [String]
    ) throws -> Failure {
        for (index, line) in lines.enumerated() {
            do {
                _ = try XMPPTap.parseAsRoot(ConfigFile.arguments(arguments, with: lines[...index]))
            } catch {
                return .usage("\(path):\(line.number): \(Ending(error, arguments: arguments).complaint)")
            }
        }
        throw error
    }
}

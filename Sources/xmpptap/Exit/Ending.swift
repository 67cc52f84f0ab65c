internal import ArgumentParser

/// What is printed last, and the exit code, for whatever ended a command.
struct Ending: Equatable {
    /// How the program ends.
    let status: ExitStatus
    /// Help, version or a completion script: what was asked for, for standard output.
    var answer = ""
    /// One line for standard error, without the program's name.
    var complaint = ""

    /// The ending that an error of `arguments` brings.
    init(_ error: any Error, arguments: [String]) {
        if let failure = error as? Failure {
            status = failure.status
            complaint = failure.message
        } else if XMPPTap.exitCode(for: error).isSuccess {
            status = .success
            answer = XMPPTap.message(for: error)
        } else if XMPPTap.exitCode(for: error) == .validationFailure {
            status = .usage
            complaint = Self.complaint(of: error, arguments: arguments)
        } else {
            // No part of the program throws anything else, and if one does this still names it.
            status = .checkFailed
            complaint = "\(error)"
        }
    }

    /// The parser's words in one line, with a way out where they have none.
    private static func complaint(of error: any Error, arguments: [String]) -> String {
        var message = XMPPTap.message(for: error).split(whereSeparator: \.isNewline)
            .map { $0.drop { $0 == " " } }
            .joined(separator: " ")
        if message.hasSuffix(".") { message.removeLast() }
        if let first = message.first, first.isUppercase { message = first.lowercased() + message.dropFirst() }
        // A refused value says itself what would be right, and a suggestion is a way out.
        if message.contains("' is invalid for '") || message.hasSuffix("?") { return message }
        return "\(message); see '\(program(arguments)) --help'"
    }

    /// The command that was typed, with those above it: `xmpptap ca create`.
    private static func program(_ arguments: [String]) -> String {
        var command: any ParsableCommand.Type = XMPPTap.self
        var words = ["xmpptap"]
        for argument in arguments {
            guard
                let inner = command.configuration.subcommands.first(where: { $0.configuration.commandName == argument })
            else { break }
            command = inner
            words.append(argument)
        }
        return words.joined(separator: " ")
    }
}

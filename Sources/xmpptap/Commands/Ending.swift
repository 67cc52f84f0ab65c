internal import ArgumentParser
internal import TapNetwork

/// The last output and the exit code of a command.
struct Ending: Equatable {
    let status: ExitStatus
    /// Help, version or a completion script; printed to standard output.
    var answer = ""
    /// One line for standard error, without the program's name.
    var complaint = ""

    /// Creates the ending for an error of the parser or of a command.
    init(_ error: any Error, arguments: [String]) {
        if let failure = error as? Failure ?? (error as? ControlClientError).map({ Failure($0) }) {
            status = failure.status
            complaint = failure.message
        } else if XMPPTap.exitCode(for: error).isSuccess {
            status = .success
            answer = XMPPTap.message(for: error)
        } else if XMPPTap.exitCode(for: error) == .validationFailure {
            status = .usage
            complaint = Self.complaint(of: error, arguments: arguments)
        } else {
            // Commands do not throw other errors; if one does, print it.
            status = .checkFailed
            complaint = "\(error)"
        }
    }

    /// Returns the parser's message as one line, with a pointer to `--help` if it contains no advice.
    private static func complaint(of error: any Error, arguments: [String]) -> String {
        var message = XMPPTap.message(for: error).split(whereSeparator: \.isNewline)
            .map { $0.drop { $0 == " " } }
            .joined(separator: " ")
        if message.hasSuffix(".") { message.removeLast() }
        if let first = message.first, first.isUppercase { message = first.lowercased() + message.dropFirst() }
        message = withoutSecrets(message, arguments)
        // Messages about invalid values, and suggestions, already contain advice.
        if message.contains("' is invalid for '") || message.hasSuffix("?") { return message }
        return "\(message); see '\(program(arguments)) --help'"
    }

    /// Returns a message of the parser, which quotes values as typed, without the query and the user of URLs.
    private static func withoutSecrets(_ message: String, _ arguments: [String]) -> String {
        var message = message
        for argument in arguments where argument.contains("://") {
            let value = argument.hasPrefix("--") ? argument.drop { $0 != "=" }.dropFirst() : argument[...]
            let shown = WebServer.withoutSecrets(String(value))
            if !value.isEmpty, shown != value { message = message.replacing(value, with: shown) }
        }
        return message
    }

    /// Returns the command in the arguments, with its parents, such as `xmpptap ca create`.
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

internal import ArgumentParser
internal import TapManual

/// A completion script: the one that the argument parser writes, and the topics of `help`. The parser takes `help` for its
/// built-in command, and completes no topics.
enum CompletionScript {
    /// The script that the arguments ask for, of the command with all others; nil if they ask for none.
    static func asked(_ arguments: [String], of command: any ParsableCommand.Type) -> String? {
        let flag = "--generate-completion-script"
        let name: String? =
            switch arguments.first {
            case flag? where arguments.count == 2: arguments[1]
            case let word? where word.hasPrefix("\(flag)=") && arguments.count == 1:
                String(word.dropFirst(flag.count + 1))
            default: nil
            }
        return name.flatMap { CompletionShell(rawValue: $0) }.map { text(for: $0, command.completionScript(for: $0)) }
    }

    private static func text(for shell: CompletionShell, _ script: String) -> String {
        let words = (Invocation.commands + ManualPage.all.map(\.name)).joined(separator: " ")
        switch shell {
        case .bash:
            return script + """

                _xmpptap_help() {
                    COMPREPLY+=($(compgen -W '\(words)' -- "${cur}"))
                }
                """
        case .zsh:
            // The last lines of the script call what is defined before them.
            let help = "_xmpptap_help() {\n    compadd -- \(words)\n}\n\n"
            guard let end = script.firstRange(of: "if [[ \"${funcstack[1]}\"") else { return script }
            return "\(script[..<end.lowerBound])\(help)\(script[end.lowerBound...])"
        case .fish:
            return script + "\ncomplete -c 'xmpptap' -n '__fish_seen_subcommand_from help' -fa '\(words)'"
        default: return script
        }
    }
}

internal import ArgumentParser
internal import TapManual

/// The argument parser's completion scripts, with additions.
///
/// All scripts complete the topics of `help`, which the parser does not know because it handles `help` itself. The
/// script for zsh also completes values after an equals sign, and the script for fish searches for files in its own
/// way.
enum CompletionScript {
    /// Returns the completion script that the arguments request; nil if they request none.
    ///
    /// - Parameter commands: The names of the program's commands, as typed.
    static func asked(_ arguments: [String], of command: any ParsableCommand.Type, _ commands: [String]) -> String? {
        let flag = "--generate-completion-script"
        let name: String? =
            switch arguments.first {
            case flag? where arguments.count == 2: arguments[1]
            case let word? where word.hasPrefix("\(flag)=") && arguments.count == 1:
                String(word.dropFirst(flag.count + 1))
            default: nil
            }
        return name.flatMap { CompletionShell(rawValue: $0) }.map {
            text(for: $0, command.completionScript(for: $0), commands)
        }
    }

    private static func text(for shell: CompletionShell, _ script: String, _ commands: [String]) -> String {
        let topics = (commands + ManualPage.all.map(\.name)).joined(separator: " ")
        switch shell {
        case .bash:
            return script + """

                _xmpptap_help() {
                    COMPREPLY+=($(compgen -W '\(topics)' -- "${cur}"))
                }
                """
        case .zsh:
            // Insert the function before the last lines of the script, which call the functions defined above them.
            let help = "_xmpptap_help() {\n    compadd -- \(topics)\n}\n\n"
            guard let end = script.firstRange(of: "if [[ \"${funcstack[1]}\"") else { return script }
            return zshScript("\(script[..<end.lowerBound])\(help)\(script[end.lowerBound...])")
        case .fish:
            return fishScript(script)
                + "\ncomplete -c 'xmpptap' -n '__fish_seen_subcommand_from help' -fa '\(topics)'"
        default: return script
        }
    }

    /// Changes the parser's script for zsh, so that options accept their value in the same word: `--tls=`, `-ilo`.
    private static func zshScript(_ script: String) -> String {
        script.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            // In the script, options with a value have a colon after their description.
            guard line.contains("]:"), line.hasSuffix("'") else { return line }
            return line.replacing(#/^(?<start> +'\*?--[a-z-]+)\[/#) { "\($0.start)=[" }
                .replacing(#/\{(?<short>-[A-Za-z]),(?<long>--[a-z-]+)\}'\[/#) { "{\($0.short)+,\($0.long)=}'[" }
        }
        .joined(separator: "\n")
    }

    /// Changes the parser's script for fish: it completes files in other folders than the current one, supports
    /// patterns as extensions, and determines the cursor's position also for `complete -C`.
    private static func fishScript(_ script: String) -> String {
        let search =
            #/\(set -l exts (?<endings>.*?);for p in .*?;end;__fish_complete_directories \(commandline -t\) \\'\\'\)/#
        let files = script.replacing(search) { match in
            "(__xmpptap_complete_files \(match.endings.replacing("[0-9]*", with: "[0-9]+")))"
        }
        return files.replacing("(__xmpptap_tokens -tC)", with: #"(string length -- "$(commandline -ct)")"#) + #"""

            # Folders, and files whose names end with one of the arguments, which are regular expressions.
            function __xmpptap_complete_files
                set -l folder (string match -r '^.*/' -- (commandline -ct); or printf '\n')
                set -l place (string replace -r '^~/' "$HOME/" -- "$folder")
                for path in $place*
                    set -l name (string sub -s (math (string length -- "$place") + 1) -- $path)
                    if test -d $path
                        printf '%s%s/\n' "$folder" $name
                    else if string match -qr '\.('(string join '|' -- $argv)')$' -- $name
                        printf '%s%s\n' "$folder" $name
                    end
                end
            end
            """#
    }
}

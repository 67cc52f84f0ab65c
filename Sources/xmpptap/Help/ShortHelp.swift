internal import TapRecord

/// The output of `--help` for a command: usage, the most important options, examples, and pointers to the rest.
///
/// It fits on a screen of 40 rows. `xmpptap help COMMAND` prints everything.
struct ShortHelp {
    /// Number of options up to which a command's help shows all of them.
    static let maximumOptions = 12
    private static let maximumExamples = 3
    /// Maximum width of the column of names; a longer name gets a separate row.
    private static let widestName = 28

    /// The options that the help shows for commands with more options, in this order.
    static let choices: [String: [String]] = [
        "xmpptap proxy": [
            "--listen", "--upstream", "--upstream-domain", "--tls", "--accounts", "--rules", "--capture", "--log",
            "--log-to", "--config",
        ],
        "xmpptap demo": ["--capture", "--log", "--filter", "--format", "--log-to", "--config"],
        "xmpptap read": [
            "--log", "--filter", "--session", "--since", "--sessions", "--stats", "--follow", "--keylog", "--format",
            "--json",
        ],
        "xmpptap search": [
            "--store", "--account", "--with", "--between", "--room", "--since", "--until", "--context", "--format",
            "--json",
        ],
        "xmpptap stats": [
            "--store", "--account", "--with", "--since", "--until", "--top", "--format", "--json", "--csv",
        ],
        "xmpptap probe": [
            "--password-file", "--via", "--upstream-ca", "--direct-tls", "--no-binding", "--with", "--timeout",
            "--capture",
            "--log", "--json",
        ],
        "xmpptap replay": [
            "--to", "--accounts", "--session", "--pace", "--prepare", "--register", "--copies", "--update", "--junit",
            "--report",
        ],
        "xmpptap diff": [
            "--against", "--session", "--noise", "--learn", "--fail-on", "--format", "--junit", "--report",
        ],
        "xmpptap sniff": [
            "--interface", "--port", "--filter", "--keylog", "--write", "--capture", "--capture-when", "--log",
            "--format", "--json",
        ],
        "xmpptap inject": [
            "--session", "--jid", "--to", "--message", "--peer", "--from", "--raw", "--timeout", "--json",
        ],
        "xmpptap serve": [
            "--listen", "--session", "--accounts", "--pace", "--chunks", "--unmatched", "--noise", "--keylog",
        ],
    ]

    /// The manual pages about each command.
    static let topics: [String: [String]] = [
        "demo": ["start"], "proxy": ["start", "tls", "logs", "changes", "upstream", "websocket", "phone"],
        "read": ["logs", "captures", "packets"], "sniff": ["packets", "logs"], "probe": ["logins"],
        "explain": ["logins"], "diff": ["compare"], "replay": ["regression"], "record-test": ["regression"],
        "serve": ["regression"], "view": ["browser"], "convert": ["captures", "packets", "audit"],
        "search": ["audit"], "stats": ["audit"], "store": ["audit"], "rules": ["changes"], "sessions": ["control"],
        "tail": ["control", "logs"], "inject": ["injection"], "ping": ["injection"], "level": ["control", "logs"],
        "ca": ["trust", "tls"], "doctor": ["install"],
    ]

    let command: CommandDefinition

    init(command: CommandDefinition) { self.command = command }

    /// Creates the help that the arguments request with `--help` or `-h`; nil if they do not request it, or name an
    /// unknown command.
    ///
    /// - Parameter definitions: The JSON definitions of all commands.
    init?(asked arguments: [String], _ definitions: @autoclosure () -> String) {
        let typed = arguments.prefix { $0 != "--" }
        guard typed.contains("--help") || typed.contains("-h"), typed.first != "help",
            var command = try? CommandDefinition.program(dump: definitions())
        else { return nil }
        for word in typed {
            guard let inner = command.below.first(where: { $0.name == word }) else {
                // The first word must be a command.
                guard !command.isProgram || word.hasPrefix("-") else { return nil }
                break
            }
            command = inner
        }
        self.init(command: command)
    }

    /// Returns the lines, at most `width` columns wide if the words allow it.
    func lines(width: Int) -> [String] {
        var lines = Self.wrapped(command.abstract, width, indent: 0)
        lines += ["", "Usage: \(usage)"]
        if !command.below.isEmpty {
            lines += [""] + Self.table(command.below.map { ($0.name, Self.sentence($0.abstract)) }, width)
        }
        let shown = options
        if !shown.isEmpty {
            lines += [""] + Self.table(shown.map { ($0.typed, Self.sentence($0.abstract)) }, width)
        }
        let examples = examples
        if !examples.isEmpty {
            lines += ["", examples.count == 1 ? "Example:" : "Examples:"] + examples.map { "  \($0)" }
        }
        return lines + [""] + Self.wrapped(elsewhere, width, indent: 0)
    }

    private var usage: String {
        let operands = command.arguments.filter { $0.isPositional && $0.isShown }.map { argument in
            let name = "<\(argument.valueName)>" + (argument.isRepeating ? " ..." : "")
            return argument.isOptional ? "[\(name)]" : name
        }
        let parts = command.below.isEmpty ? ["[options]"] + operands : ["<command>"]
        return ([command.title] + parts).joined(separator: " ")
    }

    private var options: [CommandDefinition.Argument] {
        // Options that all commands have are mentioned at the end.
        let all = command.arguments.filter {
            $0.isShown && !$0.isPositional && !["--help", "--version"].contains($0.names.last)
        }
        guard all.count > Self.maximumOptions else { return all }
        let names = Self.choices[command.title] ?? []
        return names.compactMap { name in all.first { $0.names.contains(name) } }
    }

    private var examples: [String] {
        let lines = command.discussion.split(separator: "\n").filter { $0.hasPrefix("  ") }.map {
            $0.drop { $0 == " " }
        }
        return Array(lines.filter { $0.hasPrefix("xmpptap ") }.map(String.init).prefix(Self.maximumExamples))
    }

    private var elsewhere: String {
        guard !command.isProgram else {
            return
                "A command: xmpptap <command> --help. A topic: xmpptap help <topic>. All topics: xmpptap help."
        }
        let words = command.title.split(separator: " ").dropFirst()
        let topics = words.first.flatMap { Self.topics[String($0)] } ?? []
        let more = topics.isEmpty ? "" : " Topics: \(topics.map { "xmpptap help \($0)" }.joined(separator: ", "))."
        return "All options: xmpptap help \(words.joined(separator: " ")).\(more)"
    }

    // MARK: Layout

    /// Returns the first sentence of a text.
    private static func sentence(_ text: String) -> String {
        guard let end = text.firstRange(of: ". ") else { return text }
        return String(text[..<end.lowerBound]) + "."
    }

    private static func table(_ rows: [(name: String, help: String)], _ width: Int) -> [String] {
        let column = rows.map(\.name.count).filter { $0 <= widestName }.max() ?? 0
        return rows.flatMap { name, help in
            var lines = wrapped(help, width, indent: column + 4)
            if name.count <= widestName, let first = lines.first {
                let space = String(repeating: " ", count: column + 2 - name.count)
                lines[0] = "  \(name)\(space)\(first.drop { $0 == " " })"
            } else {
                lines.insert("  \(name)", at: 0)
            }
            return lines
        }
    }

    private static func wrapped(_ text: String, _ width: Int, indent: Int) -> [String] {
        let space = String(repeating: " ", count: indent)
        var lines: [String] = []
        for word in text.split(whereSeparator: \.isWhitespace) {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(space + word)
            }
        }
        return lines
    }
}

extension CommandDefinition {
    /// The last word of the command.
    fileprivate var name: String { String(title.split(separator: " ").last ?? "") }
}

extension CommandDefinition.Argument {
    /// The longest name and the value, as typed.
    fileprivate var typed: String {
        let name = names.max { $0.count < $1.count } ?? ""
        return kind == "flag" ? name : "\(name) <\(valueName)>"
    }
}

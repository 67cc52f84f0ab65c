internal import Glibc
internal import TapManual
internal import TapRecord

/// Man pages: one for each command, generated from its definition, and one for each topic of the manual.
enum ManPages {
    /// Writes the pages to `man1` and `man7` in a folder; missing folders are created.
    ///
    /// - Parameter program: The definition of the program with its commands.
    static func write(_ program: CommandDefinition, to folder: String) throws(Failure) {
        for section in ["man1", "man7"] { makeFolder("\(folder)/\(section)") }
        for command in program.visible {
            try write(text(of: command), to: "\(folder)/man1/\(command.page).1")
        }
        for page in ManualPage.all {
            let text = ManText(of: page, version: Version.program).text
            try write(text, to: "\(folder)/man7/xmpptap-\(page.name).7")
        }
    }

    private static func write(_ text: String, to path: String) throws(Failure) {
        try OutputText.write(text, to: path)
        // Man pages must be readable by all users.
        chmod(path, 0o644)
    }

    /// Creates a folder and its parents. Errors are ignored, because writing the first file reports them.
    private static func makeFolder(_ path: String) {
        for end in path.indices.dropFirst() where path[end] == "/" { mkdir(String(path[..<end]), 0o755) }
        mkdir(path, 0o755)
    }

    /// Returns the page of a command, including its subcommands.
    static func text(of command: CommandDefinition) -> String {
        var page = ManText(
            name: command.page,
            section: 1,
            version: Version.program,
            summary: CommandDefinition.phrase(command.abstract)
        )
        page.section("SYNOPSIS")
        for command in command.isProgram ? [command] : command.withBelow { page.line(synopsis(of: command)) }
        page.section("DESCRIPTION")
        append(discussion: command.discussion, to: &page)
        if command.isProgram {
            page.section("COMMANDS")
            for command in command.below {
                page.entry("\\fB\(ManText.verbatim(command.page))\\fR(1)", [command.abstract])
            }
            append(optionsOf: command, to: &page)
            page.section("TOPICS")
            for topic in ManualPage.all {
                page.entry("\\fBxmpptap\\-\(ManText.verbatim(topic.name))\\fR(7)", [topic.title])
            }
        } else {
            append(optionsOf: command, to: &page)
            for inner in command.below {
                page.section(inner.title)
                page.paragraph(inner.abstract)
                append(discussion: inner.discussion, to: &page)
                append(optionsOf: inner, to: &page, isInner: true)
            }
        }
        page.section("SEE ALSO")
        page.line(command.isProgram ? "\\fBxmpptap\\-start\\fR(7)" : "\\fBxmpptap\\fR(1)")
        return page.text
    }

    private static func synopsis(of command: CommandDefinition) -> String {
        let operands = command.arguments.filter { $0.isPositional && $0.isShown }.map { argument in
            let name = "\\fI\(ManText.verbatim(argument.valueName))\\fR" + (argument.isRepeating ? " ..." : "")
            return argument.isOptional ? "[\(name)]" : name
        }
        let parts = command.isProgram ? ["\\fIcommand\\fR"] : operands
        return ".PP\n\\fB\(ManText.verbatim(command.title))\\fR "
            + (["[\\fIoptions\\fR]"] + parts).joined(separator: " ")
    }

    /// Appends the paragraphs of a discussion; indented lines are examples to type.
    private static func append(discussion: String, to page: inout ManText) {
        var typed: [String] = []
        func isTyped(_ line: Substring) -> Bool { line.hasPrefix("  ") }
        for line in discussion.split(separator: "\n", omittingEmptySubsequences: false) {
            if isTyped(line) {
                typed.append(String(line.drop { $0 == " " }))
            } else {
                if !typed.isEmpty { page.code(typed) }
                typed = []
                if !line.isEmpty { page.paragraph(String(line)) }
            }
        }
        if !typed.isEmpty { page.code(typed) }
    }

    private static func append(optionsOf command: CommandDefinition, to page: inout ManText, isInner: Bool = false) {
        // Options that all commands have are described only once.
        let shown = command.arguments.filter {
            $0.isShown && !(isInner && ["--help", "--version"].contains($0.names.last))
        }
        if !shown.isEmpty, !isInner { page.section("OPTIONS") }
        var part: String?
        // Options without a group come last, as in the help.
        for argument in shown.filter({ $0.part != nil }) + shown.filter({ $0.part == nil }) {
            if let title = argument.part, title != part {
                page.part(title)
            } else if part != nil, argument.part == nil {
                page.part("Other options")
            }
            part = argument.part
            page.entry(argument.roff, [argument.abstract, argument.discussion])
        }
    }
}

/// A command, as defined for the argument parser.
struct CommandDefinition {
    /// The words to type, such as `xmpptap ca create`.
    let title: String
    let abstract: String
    let discussion: String
    let arguments: [Argument]
    /// The subcommands that the help shows.
    let below: [CommandDefinition]

    /// An option, a flag or an operand.
    struct Argument {
        let isShown: Bool
        let isOptional: Bool
        let isRepeating: Bool
        let kind: String
        /// The title of its group; nil if it has none.
        let part: String?
        /// The names as typed, with hyphens.
        let names: [String]
        let valueName: String
        let abstract: String
        let discussion: String

        var isPositional: Bool { kind == "positional" }

        /// The names and the value, in roff.
        var roff: String {
            let value = "\\fI\(ManText.verbatim(valueName))\\fR"
            if isPositional { return value }
            let names = names.map { "\\fB\(ManText.verbatim($0))\\fR" }.joined(separator: ", ")
            return kind == "flag" ? names : "\(names) \(value)"
        }
    }

    /// The name of the command's man page.
    var page: String { title.replacing(" ", with: "-") }

    var isProgram: Bool { !title.contains(" ") }

    /// The command and all its subcommands.
    var withBelow: [CommandDefinition] { [self] + below.flatMap(\.withBelow) }

    /// The program and its commands; each of them has a man page.
    var visible: [CommandDefinition] { [self] + below }

    /// Returns the definition of the program, with all its commands.
    ///
    /// - Parameter dump: The parser's JSON description, as printed by `--experimental-dump-help`.
    static func program(dump: String) throws(Failure) -> CommandDefinition {
        let dump = Array(dump.utf8)
        let json: JSONValue?
        do throws(JSONError) {
            json = try JSONValue(dump.span.bytes)["command"]
        } catch {
            json = nil
        }
        guard let json, let program = CommandDefinition(json, above: "") else {
            throw Failure(status: .checkFailed, message: "the parser's description of the commands cannot be read")
        }
        return program
    }

    private init?(_ json: JSONValue, above: String) {
        guard let name = json["commandName"]?.text, name != "help", json["shouldDisplay"]?.bool != false else {
            return nil
        }
        let title = above + name
        self.title = title
        abstract = json["abstract"]?.text ?? ""
        discussion = json["discussion"]?.text ?? ""
        arguments = (json["arguments"]?.values ?? []).map(Argument.init)
        below = (json["subcommands"]?.values ?? []).compactMap { CommandDefinition($0, above: "\(title) ") }
    }

    /// Returns a sentence as a phrase: without the final stop, and with a lower-case first letter unless it starts with
    /// an abbreviation.
    static func phrase(_ sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        guard let second = text.dropFirst().first, second.isLowercase else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}

extension CommandDefinition.Argument {
    fileprivate init(_ json: JSONValue) {
        isShown = json["shouldDisplay"]?.bool ?? true
        isOptional = json["isOptional"]?.bool ?? false
        isRepeating = json["isRepeating"]?.bool ?? false
        kind = json["kind"]?.text ?? ""
        part = json["sectionTitle"]?.text
        names = (json["names"]?.values ?? []).compactMap { name in
            name["name"]?.text.map { (name["kind"]?.text == "long" ? "--" : "-") + $0 }
        }
        valueName = json["valueName"]?.text ?? ""
        abstract = json["abstract"]?.text ?? ""
        discussion = json["discussion"]?.text ?? ""
    }
}

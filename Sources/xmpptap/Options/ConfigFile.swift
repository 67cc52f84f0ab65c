internal import ArgumentParser
internal import TapSecurity

/// A command that accepts `--config`.
protocol Configurable: ParsableCommand {
    /// The option group with `--config`.
    var config: ConfigOption { get }
}

/// `--config FILE`: reads flags from a file.
struct ConfigOption: ParsableArguments {
    @Option(file: "Read flags from a file, one per line; typed flags win.")
    var config: String?
}

/// A file of flags, one per line, for `--config FILE`.
///
/// ```
/// # address for clients
/// --listen 15222=xmpp.example.org:5222
/// --log-to /var/log/xmpptap.log,info
/// --allow-remote
/// ```
///
/// A line consists of a long flag, a space or `=`, and the value, which extends to the end of the line. A value can
/// start with a quoted part: `"my tap.log",info`. Between double quotes, a backslash escapes the next character; single
/// quotes have no escapes. Empty lines and lines that start with `#` are ignored. Arguments without a flag, such as an
/// account, must be typed on the command line.
///
/// A flag on the command line replaces all lines with that flag, also if the flag can be repeated.
struct ConfigFile: Equatable {
    struct Line: Equatable {
        let number: Int
        /// The flag, with its two hyphens.
        let flag: String
        let value: String?

        var argument: String { value.map { "\(flag)=\($0)" } ?? flag }
    }

    let lines: [Line]

    /// Flags that are not allowed in a file.
    private static let refused = ["--config", "--help", "--version", "--generate-completion-script"]

    /// Parses the content of a config file; errors name `path`.
    init(path: String, text: String) throws(Failure) {
        var lines: [Line] = []
        for (number, content) in text.numberedRows {
            guard let first = content.first, first != "#" else { continue }
            guard content.hasPrefix("--"), content.count > 2 else {
                let isWord = first != "-" && !content.contains(" ")
                throw .usage(
                    "\(path):\(number): '\(content)' is not a long flag; write one flag per line, as in --log info"
                        + (isWord ? ", and type what has no flag on the command line" : "")
                )
            }
            let end = content.firstIndex { $0 == "=" || $0 == " " || $0 == "\t" } ?? content.endIndex
            let flag = String(content[..<end])
            guard !Self.refused.contains(flag) else {
                throw .usage("\(path):\(number): \(flag) is not allowed in a file; type it on the command line")
            }
            var value: String?
            if end < content.endIndex {
                value = Self.unquoted(content[content.index(after: end)...].trimmed)
                guard value != nil else {
                    throw .usage("\(path):\(number): unterminated quotation mark in the value")
                }
            }
            lines.append(Line(number: number, flag: flag, value: value))
        }
        self.lines = lines
    }

    /// Returns the lines with flags that are not in `arguments`.
    func lines(beside arguments: [String]) -> [Line] {
        let typed = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
            .map { String($0.prefix { $0 != "=" }) }
        return lines.filter { !typed.contains($0.flag) }
    }

    /// Returns `arguments` with `lines` added, in front of `--` if there is one.
    static func arguments(_ arguments: [String], with lines: some Sequence<Line>) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        return arguments[..<end] + lines.map(\.argument) + arguments[end...]
    }

    /// Returns a value without its quotation marks; nil if the closing one is missing.
    private static func unquoted(_ text: Substring) -> String? {
        guard let mark = text.first, mark == "\"" || mark == "'" else { return String(text) }
        var value = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst() {
            if character == mark { return value + rest }
            if character == "\\", mark == "\"", let next = rest.popFirst() {
                value.append(next)
            } else {
                value.append(character)
            }
        }
        return nil
    }
}

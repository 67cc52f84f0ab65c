/// A file of flags, one a line, that stands in for typing them: `--config FILE`.
///
/// ```
/// # where the clients come in
/// --listen 15222=xmpp.example.org:5222
/// --log-to /var/log/xmpptap.log,info
/// --allow-remote
/// ```
///
/// A line is a long flag, and its value after a space or `=`, to the end of the line. A value that begins with a quotation
/// mark, `"` or `'`, is what stands up to the next one, and what follows that: `"my tap.log",info`. Between `"` a backslash
/// takes the next character as it is. Empty lines and those that begin with `#` say nothing.
///
/// A flag that is typed on the command line counts alone: all lines of that flag in the file are passed over, also where the
/// flag may be repeated.
struct ConfigFile: Equatable {
    /// A line that says something.
    struct Line: Equatable {
        /// Number in the file, from 1.
        let number: Int
        /// With its two hyphens.
        let flag: String
        /// What follows it.
        let value: String?

        /// The line as one argument.
        var argument: String { value.map { "\(flag)=\($0)" } ?? flag }
    }

    /// The path, for complaints.
    let path: String
    /// The lines in order.
    let lines: [Line]

    /// Asks instead of saying, or would need another pass.
    private static let refused = ["--config", "--help", "--version", "--generate-completion-script"]

    /// Reads `text`, the contents of the file at `path`.
    init(path: String, text: String) throws(Failure) {
        var lines: [Line] = []
        var number = 0
        // Some editors begin a file with a mark that says that it is UTF-8.
        let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        for row in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            number += 1
            let content = Self.trim(row)
            guard let first = content.first, first != "#" else { continue }
            guard content.hasPrefix("--"), content.count > 2 else {
                throw .usage("\(path):\(number): '\(content)' is no long flag; write one a line, as in --log info")
            }
            let end = content.firstIndex { $0 == "=" || $0 == " " || $0 == "\t" } ?? content.endIndex
            let flag = String(content[..<end])
            guard !Self.refused.contains(flag) else {
                throw .usage("\(path):\(number): \(flag) has no place in a file; type it on the command line")
            }
            var value: String?
            if end < content.endIndex {
                value = Self.unquoted(Self.trim(content[content.index(after: end)...]))
                guard value != nil else {
                    throw .usage("\(path):\(number): unterminated quotation mark in the value")
                }
            }
            lines.append(Line(number: number, flag: flag, value: value))
        }
        self.path = path
        self.lines = lines
    }

    /// The lines that count beside what was typed: those whose flag was not.
    func lines(beside arguments: [String]) -> [Line] {
        let typed = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
            .map { String($0.prefix { $0 != "=" }) }
        return lines.filter { !typed.contains($0.flag) }
    }

    /// What was typed, and `lines` as if they had been typed too.
    static func arguments(_ arguments: [String], with lines: some Sequence<Line>) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        return arguments[..<end] + lines.map(\.argument) + arguments[end...]
    }

    /// A value without the quotation marks at its beginning; nil where the second one is missing.
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

    private static func trim(_ text: Substring) -> Substring {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}

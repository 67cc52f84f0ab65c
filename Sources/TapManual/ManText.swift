/// A page for man(1): text in the `man` macros of groff.
///
/// Source: groff_man(7), groff_man_style(7).
package struct ManText {
    /// The source text of the page.
    package private(set) var text: String

    /// Creates a page with its title line.
    ///
    /// - Parameters:
    ///   - name: The name of the page, such as `xmpptap-proxy`.
    ///   - section: 1 for commands, 7 for topics.
    ///   - version: The version of the program.
    ///   - summary: The line that `whatis` shows.
    package init(name: String, section: Int, version: String, summary: String) {
        // preconv reads the encoding from the first line. Hyphenation and justification are disabled.
        text =
            ".\\\" -*- coding: utf-8 -*-\n.nr HY 0\n.TH \(name.uppercased()) \(section) \"\" \"xmpptap \(version)\" \"xmpptap manual\"\n"
        text += ".ad l\n.SH NAME\n\(Self.escaped(name)) \\- \(Self.escaped(summary))\n"
    }

    /// Creates the page of a topic.
    package init(of page: ManualPage, version: String) {
        self.init(name: "xmpptap-\(page.name)", section: 7, version: version, summary: page.title)
        if case .heading = page.blocks.first {} else { section("DESCRIPTION") }
        append(page.blocks)
        section("SEE ALSO")
        line("\\fBxmpptap\\fR(1)")
    }

    /// Begins a section.
    package mutating func section(_ title: String) { line(".SH \(Self.quoted(title.uppercased()))") }

    /// Begins a subsection.
    package mutating func part(_ title: String) { line(".SS \(Self.quoted(title))") }

    /// Appends a paragraph of plain text.
    package mutating func paragraph(_ words: String) {
        line(".PP")
        plain(words)
    }

    /// Appends an entry: its tag, in roff, and its description.
    package mutating func entry(_ tag: String, _ words: [String]) {
        line(".TP")
        line(tag)
        for (index, text) in words.enumerated() where !text.isEmpty {
            if index > 0 { line(".br") }
            plain(text)
        }
    }

    /// Appends code with its lines unchanged.
    package mutating func code(_ lines: [String]) {
        line(".PP")
        line(".RS 4")
        line(".EX")
        for text in lines { line(Self.line(Self.verbatim(text))) }
        line(".EE")
        line(".RE")
    }

    /// Appends a line of roff.
    package mutating func line(_ roff: String) { text += roff + "\n" }

    private mutating func plain(_ words: String) { line(Self.line(Self.escaped(words))) }

    private mutating func append(_ blocks: [Markdown.Block]) {
        for block in blocks {
            switch block {
            case .heading(_, let text): section(Markdown.plain(text))
            case .paragraph(let text):
                line(".PP")
                line(Self.line(Self.roff(text)))
            case .list(let items):
                for item in items {
                    line(".IP \(item.mark == "-" ? "\\(bu 2" : "\(item.mark) 4")")
                    line(Self.line(Self.roff(item.text)))
                }
            case .code(let lines): code(lines)
            case .table(let rows): append(table: rows)
            }
        }
    }

    /// Appends a table as a list of entries. If it has more than two columns, each cell after the first is preceded by
    /// the heading of its column.
    private mutating func append(table rows: [[[Markdown.Inline]]]) {
        guard let heads = rows.first else { return }
        for row in rows.dropFirst() {
            line(".TP")
            line(Self.line(row.first.map(Self.roff) ?? ""))
            let cells = zip(heads, row).dropFirst().filter { !$1.isEmpty }
            for (index, cell) in cells.enumerated() {
                if index > 0 { line(".br") }
                let head = cells.count > 1 ? "\(Self.escaped(Markdown.plain(cell.0))): " : ""
                line(Self.line(head + Self.roff(cell.1)))
            }
        }
    }

    /// Returns text with font changes.
    private static func roff(_ text: [Markdown.Inline]) -> String {
        text.map { part in
            switch part {
            case .text(let text): escaped(text)
            case .code(let text): "\\fB\(verbatim(text))\\fR"
            case .strong(let text): "\\fB\(escaped(text))\\fR"
            case .emphasis(let text): "\\fI\(escaped(text))\\fR"
            case .link(let text, let target):
                if let name = ManualLink.page(target) {
                    (name == text ? "" : "\(escaped(text)), ") + "\\fBxmpptap\\-\(escaped(name))\\fR(7)"
                } else {
                    escaped(text) + (target.hasPrefix("http") ? " <\(verbatim(target))>" : "")
                }
            }
        }
        .joined()
    }

    /// Returns a quoted argument of a macro.
    private static func quoted(_ text: String) -> String { "\"\(escaped(text).replacing("\"", with: "\\(dq"))\"" }

    /// Returns a text line that groff does not read as a macro, whatever its first character.
    private static func line(_ roff: String) -> String {
        roff.hasPrefix(".") || roff.hasPrefix("'") ? "\\&\(roff)" : roff
    }

    /// Escapes text. `-` becomes a hyphen, except at the beginning of a flag.
    package static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\(rs").replacing("--", with: "\\-\\-").replacing("'", with: "\\(aq")
            .replacing("`", with: "\\(ga").replacing("^", with: "\\(ha").replacing("~", with: "\\(ti")
    }

    /// Escapes text that users can type or copy: each character is shown as on the keyboard.
    package static func verbatim(_ text: String) -> String {
        escaped(text).replacing("\\-\\-", with: "--").replacing("-", with: "\\-")
    }
}

/// The subset of Markdown in which the manual is written: headings, paragraphs, lists of one level, fenced code,
/// tables, links.
///
/// Source: CommonMark 0.31 and GitHub's tables, as far as the pages use them.
package enum Markdown {
    /// A block of a page.
    package enum Block: Equatable, Sendable {
        /// A heading; the page's title has level 1.
        case heading(level: Int, [Inline])
        case paragraph([Inline])
        /// Items, each with its mark: `-`, or a number with a full stop.
        case list([(mark: String, text: [Inline])])
        /// Lines that are shown unchanged.
        case code([String])
        /// Rows of cells; the first row contains the headings.
        case table([[[Inline]]])

        package static func == (one: Block, other: Block) -> Bool {
            switch (one, other) {
            case (.heading(let level, let text), .heading(let otherLevel, let otherText)):
                level == otherLevel && text == otherText
            case (.paragraph(let text), .paragraph(let otherText)): text == otherText
            case (.list(let items), .list(let others)):
                items.map(\.mark) == others.map(\.mark) && items.map(\.text) == others.map(\.text)
            case (.code(let lines), .code(let others)): lines == others
            case (.table(let rows), .table(let others)): rows == others
            default: false
            }
        }
    }

    /// A part of a paragraph.
    package enum Inline: Equatable, Sendable {
        case text(String)
        case code(String)
        case strong(String)
        case emphasis(String)
        case link(String, to: String)
    }

    /// Returns the text without markup.
    package static func plain(_ text: [Inline]) -> String {
        text.map { part in
            switch part {
            case .text(let text), .code(let text), .strong(let text), .emphasis(let text), .link(let text, _): text
            }
        }
        .joined()
    }

    /// Returns the blocks of a page.
    package static func blocks(of page: String) -> [Block] {
        var blocks: [Block] = []
        var lines = page.split(separator: "\n", omittingEmptySubsequences: false)[...]
        while let line = lines.first {
            if line.isEmpty {
                lines.removeFirst()
            } else if line.hasPrefix("```") {
                let code = lines.dropFirst().prefix { !$0.hasPrefix("```") }
                blocks.append(.code(code.map(String.init)))
                lines = lines.dropFirst(code.count + 2)
            } else if let heading = heading(line) {
                blocks.append(heading)
                lines.removeFirst()
            } else if line.hasPrefix("|") {
                let rows = lines.prefix { $0.hasPrefix("|") }
                blocks.append(.table(rows.filter { !isRule($0) }.map { cells(of: $0).map(inline) }))
                lines = lines.dropFirst(rows.count)
            } else if mark(of: line) != nil {
                blocks.append(.list(items(&lines)))
            } else {
                let paragraph = lines.prefix { !$0.isEmpty && !$0.hasPrefix("```") && !$0.hasPrefix("|") }
                blocks.append(.paragraph(inline(paragraph.joined(separator: " "))))
                lines = lines.dropFirst(paragraph.count)
            }
        }
        return blocks
    }

    private static func heading(_ line: Substring) -> Block? {
        let level = line.prefix { $0 == "#" }.count
        guard level > 0, line.dropFirst(level).hasPrefix(" ") else { return nil }
        return .heading(level: level, inline(String(line.dropFirst(level + 1))))
    }

    /// Removes and returns the items of a list. The list ends at a line that neither begins an item nor is indented.
    private static func items(_ lines: inout ArraySlice<Substring>) -> [(mark: String, text: [Inline])] {
        var items: [(mark: String, text: String)] = []
        while let line = lines.first, !line.isEmpty {
            if let mark = mark(of: line) {
                items.append((mark, String(line.dropFirst(mark.count + 1))))
            } else if line.hasPrefix(" "), let last = items.popLast() {
                items.append((last.mark, last.text + " " + line.drop { $0 == " " }))
            } else {
                break
            }
            lines.removeFirst()
        }
        return items.map { ($0.mark, inline($0.text)) }
    }

    /// Returns the mark at the beginning of a list item: `-`, or a number with a full stop; nil for other lines.
    private static func mark(of line: Substring) -> String? {
        if line.hasPrefix("- ") { return "-" }
        let digits = line.prefix { $0.isASCII && $0.isNumber }
        return !digits.isEmpty && line.dropFirst(digits.count).hasPrefix(". ") ? "\(digits)." : nil
    }

    private static func isRule(_ row: Substring) -> Bool { row.allSatisfy { "|-: ".contains($0) } }

    /// Returns the cells of a row. A `|` within code does not separate cells.
    private static func cells(of row: Substring) -> [String] {
        var cells: [String] = [""]
        var isCode = false
        for character in row.dropFirst() {
            if character == "`" { isCode.toggle() }
            if character == "|", !isCode {
                cells.append("")
            } else {
                cells[cells.count - 1].append(character)
            }
        }
        // The text after the last `|` is empty.
        return cells.dropLast().map { cell in
            String(cell.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Returns the parts of a line of text.
    package static func inline(_ text: String) -> [Inline] {
        var parts: [Inline] = []
        var plain = ""
        var rest = text[...]
        func end() {
            if !plain.isEmpty { parts.append(.text(plain)) }
            plain = ""
        }
        while let character = rest.first {
            if character == "`", let code = enclosed(rest, by: "`") {
                end()
                parts.append(.code(String(code)))
                rest = rest[code.endIndex...].dropFirst()
            } else if rest.hasPrefix("**"), let strong = enclosed(rest, by: "**") {
                end()
                parts.append(.strong(String(strong)))
                rest = rest[strong.endIndex...].dropFirst(2)
            } else if character == "*", let words = enclosed(rest, by: "*"), words.first != " " {
                end()
                parts.append(.emphasis(String(words)))
                rest = rest[words.endIndex...].dropFirst()
            } else if character == "[", let link = link(rest) {
                end()
                parts.append(.link(String(link.text), to: String(link.target)))
                rest = rest[link.target.endIndex...].dropFirst()
            } else {
                plain.append(character)
                rest.removeFirst()
            }
        }
        end()
        return parts
    }

    /// Returns the text between a mark at the beginning and its next occurrence; nil if there is none.
    private static func enclosed(_ text: Substring, by mark: String) -> Substring? {
        let inner = text.dropFirst(mark.count)
        guard let end = inner.firstRange(of: mark), end.lowerBound > inner.startIndex else { return nil }
        return inner[..<end.lowerBound]
    }

    private static func link(_ text: Substring) -> (text: Substring, target: Substring)? {
        guard let middle = text.firstRange(of: "]("), let end = text[middle.upperBound...].firstIndex(of: ")") else {
            return nil
        }
        let words = text[..<middle.lowerBound].dropFirst()
        return words.contains("[") || words.contains("`") ? nil : (words, text[middle.upperBound..<end])
    }
}

internal import TapRecord

/// Formats Markdown as lines for a terminal.
package struct TerminalText {
    /// The style of a part of a line.
    package enum Style: Sendable {
        case plain, heading, code, strong
    }

    /// A word, which is not broken across lines. Its parts may have different styles.
    private struct Word {
        var parts: [(text: String, style: Style)] = []
        var columns = 0

        mutating func append(_ text: String, _ style: Style) {
            parts.append((text, style))
            columns += TerminalText.columns(text)
        }
    }

    private let width: Int
    private let paint: (String, Style) -> String

    /// Creates a formatter.
    ///
    /// - Parameters:
    ///   - width: Maximum width of a line in columns, at least 20. Only code and long words exceed it.
    ///   - paint: Returns a text coloured according to its style.
    package init(width: Int, paint: @escaping (String, Style) -> String = { text, _ in text }) {
        self.width = max(20, width)
        self.paint = paint
    }

    /// Returns the lines of a page, beginning with its title.
    package func lines(of page: ManualPage) -> [String] {
        [paint(page.title, .heading), ""] + lines(of: page.blocks)
    }

    /// Returns the lines of blocks, with an empty line between two blocks.
    package func lines(of blocks: [Markdown.Block]) -> [String] {
        var lines: [String] = []
        for block in blocks {
            if !lines.isEmpty { lines.append("") }
            switch block {
            case .heading(_, let text):
                lines += wrap(words([.text(Markdown.plain(text))], .heading), width: width).map(\.0)
            case .paragraph(let text): lines += wrapped(text, width: width - 2).map { "  \($0)" }
            case .list(let items):
                for item in items {
                    let indent = String(repeating: " ", count: item.mark.count + 1)
                    for (index, line) in wrapped(item.text, width: width - 2 - indent.count).enumerated() {
                        lines.append("  \(index == 0 ? "\(item.mark) " : indent)\(line)")
                    }
                }
            case .code(let code): lines += code.map { $0.isEmpty ? "" : "    \($0)" }
            case .table(let rows): lines += table(rows)
            }
        }
        return lines
    }

    /// Returns the lines of a table. Text that does not fit is wrapped within its column.
    private func table(_ rows: [[[Markdown.Inline]]]) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let columns = (0..<count).map { column in
            rows.flatMap { column < $0.count ? [words($0[column]).map(\.columns)] : [] }
        }
        var widths = columns.map { $0.map(Self.columns).max() ?? 0 }
        // A column is at least as wide as its longest word. If the table is then too wide, it is shown as entries.
        let least = columns.map { $0.flatMap { $0 }.max() ?? 0 }
        let room = width - 2 - 2 * max(0, count - 1)
        while widths.reduce(0, +) > room,
            let widest = widths.indices.filter({ widths[$0] > least[$0] }).max(by: { widths[$0] < widths[$1] })
        {
            widths[widest] -= 1
        }
        guard widths.reduce(0, +) <= room else { return entries(rows) }
        var lines: [String] = []
        for (number, row) in rows.enumerated() {
            let cells = widths.indices.map { column in
                column < row.count
                    ? wrap(words(row[column], number == 0 ? .strong : .plain), width: widths[column]) : []
            }
            for index in 0..<max(1, cells.map(\.count).max() ?? 1) {
                var line = "  "
                var pending = 0
                for (cell, width) in zip(cells, widths) {
                    let part = index < cell.count ? cell[index] : ("", 0)
                    if part.1 > 0 { line += String(repeating: " ", count: pending) + part.0 }
                    pending = (part.1 > 0 ? 0 : pending) + width - part.1 + 2
                }
                lines.append(line)
            }
        }
        return lines
    }

    /// Returns the lines of a table that is too wide: one cell below the other. Each cell except the first follows the
    /// heading of its column.
    private func entries(_ rows: [[[Markdown.Inline]]]) -> [String] {
        guard let heads = rows.first else { return [] }
        return rows.dropFirst().flatMap { row in
            zip(heads, row).enumerated().flatMap { index, cell in
                let text = index == 0 ? cell.1 : [.text("\(Markdown.plain(cell.0)): ")] + cell.1
                let indent = index == 0 ? "  " : "    "
                return wrapped(text, width: width - indent.count).map { indent + $0 }
            }
        }
    }

    private func wrapped(_ text: [Markdown.Inline], width: Int) -> [String] { wrap(words(text), width: width).map(\.0) }

    /// Wraps words into lines of at most `width` columns, and returns each line with its width. A longer word gets a
    /// separate line.
    private func wrap(_ words: [Word], width: Int) -> [(String, Int)] {
        var lines: [(String, Int)] = []
        for word in words {
            let text = word.parts.map { paint($0.text, $0.style) }.joined()
            if let last = lines.last, last.1 + 1 + word.columns <= width {
                lines[lines.count - 1] = ("\(last.0) \(text)", last.1 + 1 + word.columns)
            } else {
                lines.append((text, word.columns))
            }
        }
        return lines
    }

    private func words(_ text: [Markdown.Inline], _ style: Style = .plain) -> [Word] {
        var words: [Word] = []
        var isOpen = false
        func add(_ text: String, _ style: Style) {
            for (index, part) in text.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
                if index > 0 { isOpen = false }
                guard !part.isEmpty else { continue }
                if !isOpen { words.append(Word()) }
                words[words.count - 1].append(String(part), style)
                isOpen = true
            }
        }
        for part in text {
            switch part {
            case .text(let text), .emphasis(let text): add(text, style)
            case .code(let text): add(text, .code)
            case .strong(let text): add(text, .strong)
            case .link(let text, let target):
                add(text, ManualLink.page(target) == nil ? style : .strong)
                let note = Self.linkNote(of: text, to: target)
                if !note.isEmpty { add(" (\(note))", style) }
            }
        }
        return words
    }

    /// Returns a note with the target of a link; empty if the link's text already names the page.
    private static func linkNote(of text: String, to target: String) -> String {
        if target.hasPrefix("http") { return target }
        guard let name = ManualLink.page(target), name != text else { return "" }
        return "xmpptap help \(name)"
    }

    private static func columns(_ text: String) -> Int { Columns.count(text.utf8Span.span) }

    /// Returns the width of words with a space between them, in columns.
    private static func columns(_ words: [Int]) -> Int { words.reduce(0, +) + max(0, words.count - 1) }
}

/// Links from one page of the manual to another.
enum ManualLink {
    /// Returns the name of the page to which a link leads; nil for other targets.
    static func page(_ target: String) -> String? {
        guard !target.contains("/"), let end = target.firstRange(of: ".md") else { return nil }
        return String(target[..<end.lowerBound])
    }
}

internal import TapRecord

/// A table of aligned columns with a header.
struct TextTable {
    let header: [String]
    let rows: [[String]]
    /// Indices of columns that are right-aligned.
    var numeric: Set<Int> = []
    /// Indices of columns that may be cut if a line is too wide; the last one is cut first.
    var flexible: [Int] = []
    /// Indices of columns that may be omitted if a line is still too wide; the first one is omitted first.
    var optional: [Int] = []
    /// Minimum width of a flexible column, if its text is that long; default 10.
    var narrowest: [Int: Int] = [:]
    /// Indices of columns that are cut at the start, because their end matters, such as paths.
    var cutAtStart: Set<Int> = []

    /// Returns the colour of a cell, by its column and text; nil means no colour.
    var colour: (Int, String) -> Colour? = { _, _ in nil }

    /// Returns the lines, without control characters, at most `width` columns wide if possible. With nil, nothing is
    /// cut.
    func lines(width: Int?) -> [String] { lines(OutputStyle(width: width)) }

    /// Returns the lines, without control characters, at most as wide as the terminal if possible.
    func lines(_ style: OutputStyle) -> [String] {
        let rows = ([header] + rows).map { $0.map(Console.escaped) }
        var widths = header.indices.map { column in rows.map { Columns.count($0[column]) }.max() ?? 0 }
        var shown = Array(header.indices)
        if let width = style.width {
            var surplus: Int { shown.reduce(0) { $0 + widths[$1] } + 2 * (shown.count - 1) - width }
            func least(_ column: Int) -> Int {
                flexible.contains(column) ? min(narrowest[column] ?? 10, widths[column]) : widths[column]
            }
            for column in optional where shown.reduce(0, { $0 + least($1) }) + 2 * (shown.count - 1) > width {
                shown.removeAll { $0 == column }
            }
            for column in flexible.reversed() where shown.contains(column) && surplus > 0 {
                widths[column] = max(least(column), widths[column] - surplus)
            }
        }
        let hidden = header.indices.filter { !shown.contains($0) }.map { header[$0] }
        let note = hidden.isEmpty ? [] : ["not shown here: \(hidden.joined(separator: ", "))"]
        return rows.enumerated().map { number, row in
            // Omit spaces at the end of a line.
            let last = shown.last { !row[$0].isEmpty } ?? 0
            let cells = shown.prefix { $0 <= last }.map { column in
                let text = cell(row[column], widths[column], column)
                let shown = column == last ? String(text.reversed().drop { $0 == " " }.reversed()) : text
                return style.paint(shown, number == 0 ? .dim : colour(column, row[column]))
            }
            return style.drawn(cells.joined(separator: "  "))
        } + note.flatMap { style.wrapped($0) }.map { style.paint($0, .dim) }
    }

    private func cell(_ text: String, _ width: Int, _ column: Int) -> String {
        let columns = Columns.count(text)
        guard columns > width else {
            return numeric.contains(column)
                ? String(repeating: " ", count: width - columns) + text : text.padded(to: width)
        }
        guard cutAtStart.contains(column) else { return Columns.cut(text, to: width).padded(to: width) }
        var rest = text[...]
        while Columns.count(String(rest)) > width - 1, !rest.isEmpty { rest.removeFirst() }
        return "…\(rest)".padded(to: width)
    }
}

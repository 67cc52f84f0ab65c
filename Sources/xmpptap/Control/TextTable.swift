internal import TapRecord

/// Rows in aligned columns below a header.
struct TextTable {
    let header: [String]
    let rows: [[String]]
    /// Columns that are aligned to the right.
    var numeric: Set<Int> = []
    /// Columns that are cut if a line would be too wide, the last one first.
    var flexible: [Int] = []
    /// Columns that are left out if a line would be wider than it may be, the first one first.
    var optional: [Int] = []
    /// The columns that a flexible one keeps, unless it needs fewer; default 10.
    var narrowest: [Int: Int] = [:]
    /// Columns of which the end is what matters, such as paths: they are cut at the beginning.
    var cutAtStart: Set<Int> = []

    /// The colour of a cell by its column and its text; nil is none.
    var colour: (Int, String) -> Colour? = { _, _ in nil }

    /// The lines, without control characters, at most `width` columns wide if possible; nil cuts nothing.
    func lines(width: Int?) -> [String] { lines(OutputStyle(width: width)) }

    /// The lines, without control characters, at most as wide as the terminal if possible.
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
            // Spaces at the end of a line are nothing to see.
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

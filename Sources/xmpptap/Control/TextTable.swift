/// Rows in aligned columns below a header.
struct TextTable {
    let header: [String]
    let rows: [[String]]
    /// Columns that are aligned to the right.
    var numeric: Set<Int> = []
    /// Columns that are cut where a line would be wider than it may be, the last one first.
    var flexible: [Int] = []
    /// Columns of which the end is what matters, such as paths: they are cut at the beginning.
    var cutAtStart: Set<Int> = []

    private static let narrowest = 10

    /// The lines, without control characters, at most `width` columns wide where that can be; nil cuts nothing.
    func lines(width: Int?) -> [String] {
        let rows = ([header] + rows).map { $0.map(Console.escaped) }
        var widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        if let width {
            for column in flexible.reversed() {
                let surplus = widths.reduce(0, +) + 2 * (widths.count - 1) - width
                if surplus > 0 { widths[column] = max(min(Self.narrowest, widths[column]), widths[column] - surplus) }
            }
        }
        return rows.map { row in
            let cells = row.indices.map { cell(row[$0], widths[$0], $0) }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    private func cell(_ text: String, _ width: Int, _ column: Int) -> String {
        if text.count > width {
            return cutAtStart.contains(column) ? "…\(text.suffix(width - 1))" : "\(text.prefix(width - 1))…"
        }
        return numeric.contains(column)
            ? String(repeating: " ", count: width - text.count) + text : text.padded(to: width)
    }
}

internal import TapDiagnosis
internal import TapRecord
internal import TapStore

/// Statistics as an HTML page with charts. It needs no script and loads nothing.
///
/// All text is escaped when it is written.
struct StatisticsPage {
    /// Maximum number of days in a chart, and of pairs.
    private static let (maximumDays, maximumPairs) = (400, 20)
    private static let day: Int64 = 86_400_000_000_000

    let tables: StatisticsTables

    /// Returns the page.
    func text() -> String {
        var page = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"/><title>xmpptap stats</title>
            <meta name="viewport" content="width=device-width"/>
            <style>
            \(HTMLText.palette)
            \(Self.style)
            </style></head><body>
            <h1>xmpptap stats</h1>

            """
        for line in tables.summary { page += "<p>\(HTMLText.escaped(line))</p>\n" }
        for table in tables.tables {
            page += "<section><h2>\(HTMLText.escaped(table.title))</h2>\n"
            switch table.subject {
            case .pairs: page += pairs() + Self.html(table)
            case .hours: page += hours()
            case .days: page += days() + Self.html(table)
            default: page += Self.html(table)
            }
            page += "</section>\n"
        }
        return page + "</body></html>"
    }

    private static func html(_ table: StatisticsTables.Table) -> String {
        func row(_ cells: [String], _ tag: String) -> String {
            let cells = cells.enumerated().map { column, cell in
                let isNumber = table.numeric.contains(column)
                let style = isNumber ? " class=\"n\"" : table.flexible.contains(column) ? " class=\"w\"" : ""
                return "<\(tag)\(style)>\(HTMLText.escaped(cell))</\(tag)>"
            }
            return "<tr>\(cells.joined())</tr>\n"
        }
        return "<div class=\"t\"><table>\n<thead>\(row(table.header, "th"))</thead>\n<tbody>\n"
            + table.rows.map { row($0, "td") }.joined() + "</tbody></table></div>\n"
    }

    // MARK: Charts

    /// Bars from left to right: forth and back.
    private func pairs() -> String {
        let pairs = tables.statistics.pairs.prefix(min(tables.top, Self.maximumPairs))
        let most = Double(max(1, pairs.first?.count ?? 1))
        var chart = Self.begin(width: 900, height: pairs.count * 38 + 4, "messages between addresses")
        for (number, pair) in pairs.enumerated() {
            let y = number * 38
            let (forth, back) = (Double(pair.forth) / most * 820, Double(pair.back) / most * 820)
            let title = HTMLText.escaped("\(pair.first) sent \(pair.forth), \(pair.second) sent \(pair.back)")
            chart += "<g><title>\(title)</title>"
            chart += "<text x=\"0\" y=\"\(y + 13)\">\(HTMLText.escaped(Self.short(pair)))</text>"
            chart += Self.bar(0, Double(y + 18), forth, 12, "f") + Self.bar(forth, Double(y + 18), back, 12, "b")
            chart +=
                "<text class=\"v\" x=\"\(Self.number(forth + back + 6))\" y=\"\(y + 28)\">\(pair.count)</text></g>\n"
        }
        return chart + "</svg>\n<p class=\"k\"><i class=\"f\"></i>sent by the first address "
            + "<i class=\"b\"></i>sent by the second</p>\n"
    }

    private static func short(_ pair: AuditStatistics.Pair) -> String {
        [pair.first, pair.second].map { Columns.cut(LineBuffer.escaped($0), to: 60) }.joined(separator: " – ")
    }

    private func hours() -> String {
        columns(
            tables.statistics.hours.enumerated().map { (StatisticsTables.hour($0.offset), $0.element) },
            labelEach: 3,
            "messages by hour of the day"
        )
    }

    /// Returns a chart of the days; those without messages are left out only if the first and the last are far apart.
    private func days() -> String {
        let counts = tables.statistics.days
        var days = counts.map { ($0.name, $0.count) }
        if let first = counts.first?.midnight, let last = counts.last?.midnight {
            let span = (last &- first) / Self.day
            if (0..<Int64(Self.maximumDays)).contains(span) {
                let known = Dictionary(counts.map { ($0.name, $0.count) }) { $1 }
                days = (0...span).map { number in
                    let name = Timestamp(nanoseconds: first + number * Self.day).day
                    return (name, known[name] ?? 0)
                }
            }
        }
        guard days.count > 1, days.count <= Self.maximumDays else { return "" }
        return columns(days, labelEach: max(1, (days.count + 7) / 8), "messages by day")
    }

    /// Bars from bottom to top, some of them with a label.
    private func columns(_ bars: [(name: String, count: Int)], labelEach step: Int, _ title: String) -> String {
        let most = Double(max(1, bars.map(\.count).max() ?? 1))
        let width = 900 / Double(max(1, bars.count))
        var chart = Self.begin(width: 900, height: 190, title)
        for (number, bar) in bars.enumerated() {
            let height = Double(bar.count) / most * 140
            let (x, y) = (Double(number) * width, 160 - height)
            chart += "<g><title>\(HTMLText.escaped("\(bar.name): \(bar.count)"))</title>"
            chart += Self.bar(x, 20, width, 140, "h")
            chart += Self.bar(x + width * 0.1, y, width * 0.8, height, "f")
            if bar.count > 0, bars.count <= 24 {
                let middle = Self.number(x + width / 2)
                chart += "<text class=\"v m\" x=\"\(middle)\" y=\"\(Self.number(y - 5))\">\(bar.count)</text>"
            }
            if number % step == 0 {
                chart += "<text x=\"\(Self.number(x + width * 0.1))\" y=\"178\">\(HTMLText.escaped(bar.name))</text>"
            }
            chart += "</g>\n"
        }
        return chart + "<path class=\"a\" d=\"M 0 160.5 h 900\"/></svg>\n"
    }

    private static func begin(width: Int, height: Int, _ title: String) -> String {
        "<svg viewBox=\"0 0 \(width) \(height)\" role=\"img\" aria-label=\"\(title)\">\n"
    }

    private static func bar(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ name: String) -> String {
        guard width > 0, height > 0 else { return "" }
        let values = [("x", x), ("y", y), ("width", width), ("height", height)].map { "\($0)=\"\(number($1))\"" }
        return "<rect class=\"\(name)\" \(values.joined(separator: " "))/>"
    }

    /// Formats a coordinate with one decimal.
    private static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    private static let style = """
        body { max-width: 1000px; margin: 0 auto; padding: 16px; background: var(--paper); color: var(--ink);
        font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace }
        h1 { font-size: 18px; margin: 0 } h2 { font-size: 14px; margin: 28px 0 8px; padding-bottom: 2px;
        border-bottom: 1px solid var(--lane) } p { margin: 0; color: var(--faint) }
        .t { overflow-x: auto } table { border-collapse: collapse; margin-top: 8px }
        th { color: var(--faint); font-weight: normal; text-align: left } th, td { padding: 1px 16px 1px 0; vertical-align: top }
        td { white-space: nowrap } td.w { overflow-wrap: anywhere; white-space: normal; min-width: 12ch }
        .n { text-align: right }
        tbody tr:hover { background: color-mix(in srgb, var(--lane) 30%, transparent) }
        svg { display: block; width: 100%; max-width: 900px; height: auto; font-size: 12px } svg text { fill: var(--ink) }
        .f { fill: var(--item); background: var(--item) } .b { fill: var(--tap); background: var(--tap) }
        .h { fill: transparent } g:hover .h { fill: var(--lane); opacity: 0.4 } svg .v { fill: var(--faint) }
        .m { text-anchor: middle } .a { stroke: var(--lane) }
        .k i { display: inline-block; width: 12px; height: 12px; margin: 0 6px -1px 0 } .k .b { margin-left: 16px }
        """
}

extension AuditStatistics.Day {
    /// The beginning of the day in UTC, in nanoseconds; nil if it is beyond the times that can be represented.
    fileprivate var midnight: Int64? { Timestamp(rfc3339: "\(name)T00:00:00Z")?.nanoseconds }
}

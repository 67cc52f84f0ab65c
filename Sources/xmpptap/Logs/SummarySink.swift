internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

extension SummarySink {
    /// Returns the lines printed at the end of a run, without control characters and no wider than the terminal; empty
    /// without sessions.
    ///
    /// - Parameter width: The width of the terminal in columns; nil without a terminal, and lines are not cut.
    static func lines(_ summary: RunSummary, width: Int?, isASCII: Bool = false) -> [String] {
        guard summary.sessions > 0 else { return [] }
        var rows = [Row("sessions", counts(summary.endings, of: summary.sessions))]
        if !summary.failedLogins.isEmpty {
            rows.append(
                Row("failed logins", counts(summary.failedLogins, of: summary.failedLogins.values.reduce(0, +)))
            )
        }
        let kinds = summary.statistics.kinds.map { kind, figures in
            "\(kind.rawValue) \(figures.sent + figures.received)"
        }
        if !kinds.isEmpty { rows.append(Row("items", parts(kinds))) }
        let trips = summary.statistics.roundTrips
        if let slowest = summary.slowest, trips.count > 0 {
            let times = [
                ("p50", trips.percentile(50)), ("p99", trips.percentile(99)), ("slowest", slowest.roundTrip),
            ]
            let text = parts(times.map { "\($0) \(LineBuffer.duration($1))" })
            rows.append(Row("round trips", text, remark: slowest.summary.map { "\($0)" }))
        }
        if summary.unanswered > 0 {
            rows.append(Row("unanswered", [Plural.of(Int(clamping: summary.unanswered), "request")]))
        }
        let column = (rows.map(\.name.count).max() ?? 0) + 2
        return rows.map { row in
            guard let width else { return row.name.padded(to: column) + row.whole }
            let head = width < narrow ? "\(row.name) " : row.name.padded(to: column)
            let line = Columns.cut(head + row.fitting(width - head.count), to: width)
            return isASCII ? Columns.ascii(line) : line
        }
    }

    /// Width of a terminal in columns below which names are not aligned in a column.
    private static let narrow = 48

    private struct Row {
        let name: String
        /// The parts of the text, including their separators.
        private let parts: [String]
        /// Text in parentheses after the parts.
        private let remark: String?

        /// Minimum width of a remark that is cut; shorter ones are omitted.
        private static let leastRemark = 12

        init(_ name: String, _ parts: [String], remark: String? = nil) {
            self.name = name
            self.parts = parts.map(Console.escaped)
            self.remark = remark.map(Console.escaped)
        }

        var whole: String { parts.joined() + (remark.map { " (\($0))" } ?? "") }

        /// Returns as many parts as fit, but at least one, and an ellipsis for the others; the remark is cut
        /// separately.
        func fitting(_ columns: Int) -> String {
            if Columns.count(whole) <= columns { return whole }
            let head = parts.joined()
            let room = columns - Columns.count(head) - 3
            if let remark, room >= Self.leastRemark { return "\(head) (\(Columns.cut(remark, to: room)))" }
            let counts = (1...max(1, parts.count - (remark == nil ? 1 : 0))).reversed()
            let cut = counts.lazy.map { "\(parts.prefix($0).joined()) …" }
            return parts.count > 1 || remark != nil ? cut.first { Columns.count($0) <= columns } ?? whole : whole
        }
    }

    /// Returns the counts, the most frequent first, such as `3: closed 2, lost 1`.
    private static func counts(_ names: [String: UInt64], of total: UInt64) -> [String] {
        let sorted = names.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return parts(sorted.map { "\($0.key) \($0.value)" }, after: "\(total): ")
    }

    /// Returns the words with separators.
    private static func parts(_ texts: [String], after head: String = "") -> [String] {
        texts.enumerated().map { ($0 == 0 ? head : ", ") + $1 }
    }
}

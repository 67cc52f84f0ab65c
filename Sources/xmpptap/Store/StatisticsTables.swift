internal import TapRecord
internal import TapStore

/// Statistics as tables for people.
struct StatisticsTables {
    struct Table {
        /// The figures as tables.
        enum Subject {
            case pairs, hours, days, failedLogins, requests, unanswered, kinds, sizes
        }

        let subject: Subject
        var title: String
        let header: [String]
        let rows: [[String]]
        /// Indices of columns that are right-aligned.
        var numeric: Set<Int> = []
        /// Indices of columns that may be cut; see ``TextTable``.
        var flexible: [Int] = []
        var optional: [Int] = []
        var narrowest: [Int: Int] = [:]
    }

    let statistics: AuditStatistics
    let top: Int

    /// Whether times in tables are shown to the minute and without their zone.
    private let hasShortTimes: Bool

    /// - Parameter top: Maximum number of rows of a table. Those of hours and kinds stay complete.
    init(_ statistics: AuditStatistics, top: Int, hasShortTimes: Bool) {
        self.statistics = statistics
        self.top = top
        self.hasShortTimes = hasShortTimes
    }

    private func moment(_ time: Timestamp) -> String {
        let text = OverviewReport.moment(time)
        return hasShortTimes && time.hasDay ? String(text.prefix(16).replacing("T", with: " ")) : text
    }

    /// The tables that are not empty.
    var tables: [Table] {
        [pairs, hours, days, failedLogins, requests, unanswered, kinds, sizes].filter { !$0.rows.isEmpty }
    }

    /// Facts about all stanzas, one line each.
    var summary: [String] {
        // In a client log without times, they are zero.
        let span = statistics.times.flatMap { times in
            times.upperBound.nanoseconds == 0
                ? nil
                : ", from \(OverviewReport.moment(times.lowerBound)) to \(OverviewReport.moment(times.upperBound))"
        }
        let size = LineBuffer.text { $0.append(size: UInt64(clamping: statistics.bytes)) }
        return [
            "\(Plural.of(statistics.stanzas, "stanza")), \(size)\(span ?? "")",
            "\(Plural.of(statistics.messages, "message")) with a body, and \(statistics.copies) "
                + "\(statistics.copies == 1 ? "copy" : "copies") of them",
        ]
    }

    /// Returns the lines for a terminal or a file.
    func lines(_ style: OutputStyle) -> [String] {
        guard statistics.stanzas > 0 || !statistics.failedLogins.isEmpty else { return [] }
        var lines = summary.flatMap { style.wrapped($0) }
        for table in tables {
            var rows = table.rows
            if table.subject == .hours { rows = bars(of: rows, style) }
            let text = TextTable(
                header: table.header,
                rows: rows,
                numeric: table.numeric,
                flexible: table.flexible,
                optional: table.optional,
                narrowest: table.narrowest
            )
            lines += ["", style.rule(table.title)] + text.lines(style)
        }
        return lines
    }

    /// Adds a bar to each hour.
    private func bars(of rows: [[String]], _ style: OutputStyle) -> [[String]] {
        let most = max(1, statistics.hours.max() ?? 1)
        return rows.map { row in
            let count = row.last.flatMap { Int($0) } ?? 0
            let columns = count == 0 ? 0 : max(1, Int(Double(count) / Double(most) * 40))
            return row + [String(repeating: style.isASCII ? "#" : "█", count: columns)]
        }
    }

    /// Returns a title that says how many entries are shown.
    private func title(_ text: String, _ count: Int) -> String {
        count > top ? "\(text) (\(top) of \(count); --top shows more)" : text
    }

    // MARK: Messages

    private var pairs: Table {
        Table(
            subject: .pairs,
            title: title("messages between addresses", statistics.pairs.count),
            header: ["ADDRESS", "WITH", "SENT", "RECEIVED", "FIRST", "LAST"],
            rows: statistics.pairs.prefix(top).map { pair in
                [
                    pair.first, pair.second, "\(pair.forth)", "\(pair.back)",
                    moment(pair.times.lowerBound), moment(pair.times.upperBound),
                ]
            },
            numeric: [2, 3],
            flexible: [0, 1],
            optional: [4, 5],
            narrowest: [0: 20, 1: 20]
        )
    }

    /// The zone of hours and days.
    var zone: String { "local time, UTC\(statistics.zones.joined(separator: " and UTC"))" }

    private var hours: Table {
        let hours = statistics.hours.enumerated().filter { $0.element > 0 }
        return Table(
            subject: .hours,
            title: "messages by hour of the day (\(zone))",
            header: ["HOUR", "MESSAGES", ""],
            rows: hours.map { [StatisticsTables.hour($0.offset), "\($0.element)"] },
            numeric: [1],
            flexible: [2]
        )
    }

    /// Formats an hour of the day: `08:00`.
    static func hour(_ number: Int) -> String { "\(number < 10 ? "0" : "")\(number):00" }

    private var days: Table {
        let days = statistics.days.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
        return Table(
            subject: .days,
            title: title("days with the most messages", days.count),
            header: ["DAY", "MESSAGES"],
            rows: days.prefix(top).map { [$0.name, "\($0.count)"] },
            numeric: [1]
        )
    }

    // MARK: Logins and requests

    private var failedLogins: Table {
        Table(
            subject: .failedLogins,
            title: title("failed logins", statistics.failedLogins.count),
            header: ["CAUSE", "COUNT", "FINDING OF THE LAST", "ACCOUNTS", "LAST"],
            rows: statistics.failedLogins.prefix(top).map { logins in
                let shown = logins.accounts.prefix(2).map(\.name)
                let more = logins.accounts.count - shown.count
                return [
                    logins.cause, "\(logins.count)", logins.finding ?? "-",
                    shown.isEmpty ? "-" : shown.joined(separator: ", ") + (more > 0 ? " and \(more) more" : ""),
                    logins.last.map(moment) ?? "-",
                ]
            },
            numeric: [1],
            flexible: [2, 3],
            optional: [4],
            narrowest: [2: 28, 3: 16]
        )
    }

    private var requests: Table {
        Table(
            subject: .requests,
            title: title("round trips of requests", statistics.requests.count),
            header: ["REQUEST", "COUNT", "P50", "P99", "MAX"],
            rows: statistics.requests.prefix(top).map { request in
                [request.payload ?? "-", "\(request.count)"]
                    + [request.median, request.percentile99, request.longest].map { LineBuffer.duration($0) }
            },
            numeric: [1, 2, 3, 4],
            flexible: [0]
        )
    }

    private var unanswered: Table {
        Table(
            subject: .unanswered,
            title: title("requests without an answer", statistics.unanswered.count),
            header: ["REQUEST", "COUNT", "LAST"],
            rows: statistics.unanswered.prefix(top).map {
                [$0.payload ?? "-", "\($0.count)", moment($0.last)]
            },
            numeric: [1],
            flexible: [0]
        )
    }

    // MARK: Sizes

    private var kinds: Table {
        Table(
            subject: .kinds,
            title: "stanzas by kind",
            header: ["KIND", "STANZAS", "BYTES"],
            rows: statistics.kinds.map { ["\($0.kind.name)", "\($0.stanzas)", "\($0.bytes)"] },
            numeric: [1, 2]
        )
    }

    private var sizes: Table {
        Table(
            subject: .sizes,
            title: title("stanzas by namespace of the payload", statistics.sizes.count),
            header: ["NAMESPACE", "KIND", "STANZAS", "BYTES"],
            rows: statistics.sizes.prefix(top).map { size in
                [size.namespace.isEmpty ? "-" : size.namespace, size.kind.name, "\(size.stanzas)", "\(size.bytes)"]
            },
            numeric: [2, 3],
            flexible: [0]
        )
    }
}

internal import TapCapture
internal import TapCore
internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import TapRules

/// The selection of records by session, time and filter.
struct RecordChoice {
    let sessions: Set<UInt64>
    let since: TimeBound?
    let until: TimeBound?
    let filter: RecordFilter?

    /// Returns the selected times for a recording with this header; nil selects all.
    func times(in header: RecordHeader) -> Range<Timestamp>? {
        TimeBound.range(since: since, until: until, beginning: header.time, now: RunClock().now().time, in: .system)
    }
}

/// The output of `read --sessions` and `read --stats`, which replaces the records.
struct OverviewReport {
    private let choice: RecordChoice
    private var overview: RecordOverview
    private var hasHeader = false

    init(_ subject: RecordOverview.Subject, of choice: RecordChoice) {
        self.choice = choice
        overview = RecordOverview(subject, of: RecordSelection(sessions: choice.sessions, filter: choice.filter))
    }

    mutating func add(_ entry: RecordReader.Entry) {
        if !hasHeader, case .header(let header) = entry {
            hasHeader = true
            overview.selection.times = choice.times(in: header)
        }
        overview.add(entry)
    }

    /// Returns the lines; on a terminal, tables are as wide as it is.
    func lines(isJSON: Bool, style: OutputStyle) -> [String] {
        switch overview.subject {
        case .sessions: isJSON ? overview.sessions.all.map(json) : table(style)
        case .statistics: isJSON ? [overview.statistics.json] : overview.statistics.lines
        }
    }

    // MARK: Sessions

    /// Formats a time for people: `-` if it is unknown, as in a client log without times.
    static func moment(_ time: Timestamp) -> String {
        time.nanoseconds == 0 ? "-" : time.stamp(in: .system).replacing(#/\.\d{3}/#, with: "")
    }

    /// Returns the distinct days and zones of times, in order.
    private static func days(_ times: [Timestamp]) -> [String] {
        var writer = TimestampWriter(zone: .system)
        var days: [String] = []
        for time in times.filter(\.hasDay).sorted() {
            let day = LineBuffer.text { writer.appendDay(of: time, to: &$0) }
            if day != days.last { days.append(day) }
        }
        return days
    }

    /// Formats a time for a terminal, below a line with the days: with month and day if there are several days.
    private static func clock(_ time: Timestamp, _ days: [String]) -> String {
        let stamp = moment(time)
        guard time.hasDay else { return stamp }
        guard days.count > 1 else { return String(stamp.dropFirst(11).prefix(8)) }
        return String(stamp.dropFirst(5).prefix(14)).replacing("T", with: " ")
    }

    private func table(_ style: OutputStyle) -> [String] {
        guard !overview.sessions.all.isEmpty else { return [] }
        let isOnTerminal = style.width != nil
        let days = isOnTerminal ? Self.days(overview.sessions.all.map(\.began)) : []
        let hasRuns = overview.sessions.runCount > 1
        let rows = overview.sessions.all.map { session -> [String] in
            let slowest = session.slowest.map { slowest -> String in
                "\(LineBuffer.duration(slowest.roundTrip)) \(slowest.summary.map { "\($0)" } ?? "")"
            }
            let cells: [String] = [
                "\(session.number)", session.jid.map { session.loginFailure == nil ? $0 : "~\($0)" } ?? "-",
                session.remote ?? "-", days.isEmpty ? Self.moment(session.began) : Self.clock(session.began, days),
                LineBuffer.duration(session.duration),
                session.loginFailure ?? session.closeReason ?? "-", "\(session.sent.stanzas)",
                "\(session.received.stanzas)", "\(session.errors)", slowest ?? "-",
            ]
            return hasRuns ? ["\(session.run)"] + cells : cells
        }
        let columns = [
            "SESSION", "JID", "CLIENT", "BEGAN", "LASTED", "ENDED", "SENT", isOnTerminal ? "RECV" : "RECEIVED",
            "ERRORS",
            "SLOWEST IQ",
        ]
        let title =
            days.isEmpty ? [] : [style.rule(days.count == 1 ? days[0] : "\(days[0]) to \(days[days.count - 1])")]
        let shift = hasRuns ? 1 : 0
        let table = TextTable(
            header: (hasRuns ? ["RUN"] : []) + columns,
            rows: rows,
            numeric: Set([0, 6, 7, 8].map { $0 + shift } + [0]),
            flexible: [1, 5, 2, 9].map { $0 + shift },
            optional: [9, 2, 7, 6, 4, 8, 3].map { $0 + shift },
            narrowest: [1 + shift: 18]
        )
        return title + table.lines(style)
    }

    private func json(_ session: SessionOverview.Session) -> String {
        LineBuffer.object { line in
            if overview.sessions.runCount > 1 { line.field("run", session.run) }
            line.field("session", session.number)
            if let jid = session.jid { line.field("jid", jid) }
            if let remote = session.remote { line.field("remote", remote) }
            line.field("began", session.began.text)
            line.field("duration_ns", Int(session.duration))
            if let reason = session.closeReason { line.field("close_reason", reason) }
            if let cause = session.loginFailure { line.field("login_failure", cause) }
            for (name, count) in [("sent", session.sent), ("received", session.received)] {
                line.field(named: name)
                line.openObject()
                line.field("stanzas", count.stanzas)
                line.field("bytes", count.bytes)
                line.closeObject()
            }
            line.field("errors", session.errors)
            if let slowest = session.slowest {
                line.field("slowest_iq")
                line.openObject()
                line.field("round_trip_ns", Int(slowest.roundTrip))
                line.field("sequence", slowest.sequence)
                line.closeObject()
            }
        }
    }
}

extension RecordStatistics {
    /// The statistics, as lines for users.
    fileprivate var lines: [String] {
        func size(_ bytes: UInt64) -> String { LineBuffer.text { $0.append(size: bytes) } }
        let span = first.flatMap { first in
            last.map { " from \(OverviewReport.moment(first)) to \(OverviewReport.moment($0))" }
        }
        var lines = [Plural.of(Int(clamping: records), "record") + (span ?? "")]
        let rows = kinds.map { kind, figures in
            [
                kind.rawValue, "\(figures.sent)", "\(figures.received)", size(figures.bytes),
                size(figures.bytes / (figures.sent + figures.received)), size(figures.largest),
            ]
        }
        if !rows.isEmpty {
            let header = ["KIND", "SENT", "RECEIVED", "BYTES", "AVERAGE", "LARGEST"]
            lines += [""] + TextTable(header: header, rows: rows, numeric: [1, 2, 3, 4, 5]).lines(width: nil)
        }
        if roundTrips.count > 0 {
            let figures = [
                "shortest \(LineBuffer.duration(roundTrips.shortest))",
                "median \(LineBuffer.duration(roundTrips.percentile(50)))",
                "95% \(LineBuffer.duration(roundTrips.percentile(95)))",
                "99% \(LineBuffer.duration(roundTrips.percentile(99)))",
                "longest \(LineBuffer.duration(roundTrips.longest))",
            ]
            lines += ["", "round trips of \(roundTrips.count) iqs: \(figures.joined(separator: ", "))"]
        }
        if !errors.isEmpty {
            let rows = sortedErrors.map { [$0.name, "\($0.count)"] }
            lines += [""] + TextTable(header: ["ERROR", "COUNT"], rows: rows, numeric: [1]).lines(width: nil)
        }
        return lines
    }

    private var sortedErrors: [(name: String, count: UInt64)] {
        errors.map { (name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    }

    /// The statistics as JSON.
    fileprivate var json: String {
        LineBuffer.object { line in
            line.field("records", records)
            if let first { line.field("first", first.text) }
            if let last { line.field("last", last.text) }
            line.field("kinds")
            line.openArray()
            for (kind, figures) in kinds {
                line.openObject()
                line.field("kind", kind.rawValue)
                line.field("sent", figures.sent)
                line.field("received", figures.received)
                line.field("bytes", figures.bytes)
                line.field("largest", figures.largest)
                line.closeObject()
            }
            line.closeArray()
            line.field("round_trips")
            line.openObject()
            line.field("count", roundTrips.count)
            if roundTrips.count > 0 {
                line.field("min_ns", Int(roundTrips.shortest))
                line.field("median_ns", Int(roundTrips.percentile(50)))
                line.field("p95_ns", Int(roundTrips.percentile(95)))
                line.field("p99_ns", Int(roundTrips.percentile(99)))
                line.field("max_ns", Int(roundTrips.longest))
            }
            line.closeObject()
            line.field("errors")
            line.openObject()
            for error in sortedErrors {
                line.field(named: error.name)
                line.append(decimal: error.count)
            }
            line.closeObject()
        }
    }
}

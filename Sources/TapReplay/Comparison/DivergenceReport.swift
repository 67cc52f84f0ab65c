internal import TapRecord

/// The result of a comparison of sessions, with human-readable and machine-readable output.
package struct DivergenceReport: Sendable {
    /// The divergences of a pair of sessions, or of a session without a counterpart.
    package struct Case: Sendable {
        /// The name of the sessions, such as `session 1 romeo@example.org/orchard`.
        package var name: String
        /// The divergences in the order of the recording.
        package var divergences: [Divergence]

        package init(name: String, divergences: [Divergence] = []) {
            self.name = name
            self.divergences = divergences
        }
    }

    /// The kind of the cases.
    package enum Subject: String, Sendable {
        /// Recorded sessions, compared item by item.
        case session
        /// Scripts, compared step by step.
        case script
    }

    /// Latencies of one kind of stanza.
    package struct Latencies: Sendable {
        /// `iq` with the name of its payload, `message` or `presence`.
        package let kind: String
        /// Number of stanzas.
        package let count: Int
        /// Percentiles in nanoseconds; `share` is the percentage.
        package let percentiles: [(share: Int, nanoseconds: Int64)]
        /// The maximum in nanoseconds.
        package let maximum: Int64

        /// Creates the statistics of at least one time, in nanoseconds.
        package init(kind: String, times: [Int64]) {
            self.kind = kind
            count = times.count
            let sorted = times.sorted()
            maximum = sorted.last ?? 0
            percentiles = [50, 95, 99].map { share in
                (share, sorted.dropFirst(sorted.count * share / 100).first ?? sorted.last ?? 0)
            }
        }
    }

    /// The kind of the cases.
    package var subject = Subject.session
    /// Latencies sorted by kind; empty if nothing was played.
    package var latencies: [Latencies] {
        times.sorted { $0.key < $1.key }.map { Latencies(kind: $0.key, times: $0.value) }
    }
    /// Times in nanoseconds by kind.
    private var times: [String: [Int64]] = [:]
    /// Times in nanoseconds by the second of the replay in which they ended.
    private var timeline: [Int64: [Int64]] = [:]
    /// Latencies in time spans of equal length, each with its start in seconds since the first span; empty if nothing
    /// was played.
    package var spans: [(second: Int64, latencies: Latencies)] {
        guard let first = timeline.keys.min(), let last = timeline.keys.max() else { return [] }
        let width = (last - first) / Self.maximumSpans + 1
        return stride(from: first, through: last, by: Int64.Stride(width)).map { start in
            let times = (start..<(start + width)).flatMap { timeline[$0] ?? [] }
            return (start - first, Latencies(kind: "", times: times))
        }
    }
    /// Maximum number of rows in the table over time.
    private static let maximumSpans: Int64 = 20
    /// The command that made the comparison, such as `diff` or `replay`.
    package var command: String
    /// The name of the recorded side: its file.
    package var recorded: String
    /// The name of the live side: its file, or a server.
    package var live: String
    /// The cases, without secrets.
    package private(set) var cases: [Case] = []
    private let redactor = ReportRedactor()
    private var optionalElements: [OptionalElement: Int] = [:]
    /// Number of compared items of both sides; for scripts, the number of passed steps.
    package var compared = 0
    /// Number of items that cannot be compared: redacted, or recorded without XML.
    package var undecided = 0
    /// Number of divergences that are not in ``cases`` because there are too many.
    package private(set) var omitted = 0
    /// Whether an omitted divergence may be of a class that makes the comparison fail.
    package private(set) var omittedMayFail = false
    /// Errors that prevented parts of the replay, as human-readable lines; the comparison has failed if there is one.
    package var errors: [String] = []
    /// The classes that make the comparison fail.
    package var failingClasses: Set<Divergence.Class>

    package init(command: String, recorded: String, live: String, failingClasses: Set<Divergence.Class>) {
        self.command = command
        self.recorded = recorded
        self.live = live
        self.failingClasses = failingClasses
    }

    /// Adds the divergences of a pair of sessions, redacted.
    package mutating func add(_ entry: Case) {
        cases.append(Case(name: entry.name, divergences: entry.divergences.map(redactor.disclosed)))
    }

    /// Adds latencies in nanoseconds: by kind, and by the second of the replay in which they ended.
    package mutating func add(times: [String: [Int64]], timeline: [Int64: [Int64]] = [:]) {
        self.times.merge(times, uniquingKeysWith: +)
        self.timeline.merge(timeline, uniquingKeysWith: +)
    }

    /// Adds divergences that are not in ``cases``, by class.
    package mutating func omit(_ counts: [Divergence.Class: Int]) {
        for (divergenceClass, count) in counts where count > 0 {
            omit(count, mayFail: failingClasses.contains(divergenceClass))
        }
    }

    /// Adds divergences that are not in ``cases``.
    ///
    /// - Parameter mayFail: Whether one may be of a class that makes the comparison fail.
    package mutating func omit(_ count: Int, mayFail: Bool) {
        omitted += count
        omittedMayFail = omittedMayFail || mayFail
    }

    /// Adds the latencies and the optional elements of another report.
    package mutating func addFigures(of other: DivergenceReport) {
        add(times: other.times, timeline: other.timeline)
        add(other.optionalElements)
    }

    /// Adds optional elements that only one stanza of a matched pair had, with the number of times this happened.
    package mutating func add(_ elements: [OptionalElement: Int]) {
        optionalElements.merge(elements, uniquingKeysWith: +)
    }

    /// The divergences by their causes: those that make the comparison fail first.
    package var causes: [DivergenceCause] { DivergenceCause.causes(of: cases, failing: failingClasses) }

    /// Notes about optional behaviour that differs between the two sides, as human-readable lines.
    package var notes: [String] {
        var counts: [(text: String, count: Int)] = []
        var places: [String: Int] = [:]
        for divergence in cases.flatMap(\.divergences) where divergence.divergenceClass == .optional {
            let source = divergence.message.isEmpty ? "" : " (\(divergence.message))"
            let text = (divergence.subject?.title ?? divergence.code.rawValue) + source
            if let place = places[text] {
                counts[place].count += 1
            } else {
                places[text] = counts.count
                counts.append((text, 1))
            }
        }
        for (element, count) in optionalElements.sorted(by: { ($0.key.path, $0.value) < ($1.key.path, $1.value) }) {
            let verb = element.isMissing ? "is absent" : "was not recorded"
            counts.append(("\(element.path) \(verb)\(element.source.map { " (\($0))" } ?? "")", count))
        }
        return counts.map { $0.count == 1 ? $0.text : "\($0.text), \($0.count) times" }
    }

    /// Whether the comparison has failed: because of a divergence, of an omitted one that may be of a failing class, or
    /// of an error.
    package var hasFailed: Bool {
        omittedMayFail || !errors.isEmpty || cases.contains { $0.divergences.contains { $0.isOf(failingClasses) } }
    }

    /// Returns counts such as `3 changed, 1 missing, 1 session differs`; empty if there are none.
    func counts(_ divergences: [Divergence]) -> String {
        Divergence.Code.allCases.compactMap { code in
            let count = divergences.count { $0.code == code }
            guard code == .session else { return count == 0 ? nil : "\(count) \(code.rawValue)" }
            // The same line already contains the number of sessions.
            return count == 0 ? nil : "\(count) \(count == 1 ? "session differs" : "sessions differ")"
        }.joined(separator: ", ")
    }

    /// The last line of the report: the number of compared items, and the result.
    package var summary: String {
        let all = cases.flatMap(\.divergences).filter { $0.divergenceClass != .optional }
        let many = compared == 1 ? "" : "s"
        let counted = subject == .session ? "item\(many) compared" : "step\(many) passed"
        var text = "\(cases.count) \(subject.rawValue)\(cases.count == 1 ? "" : "s"), \(compared) \(counted): "
        if all.isEmpty, omitted == 0 {
            text += errors.isEmpty ? "no differences" : "not played to the end"
        } else {
            text += counts(all)
        }
        let causes = causes.count
        if causes > 0, causes < all.count || all.contains(where: { !$0.followed.isEmpty }) {
            text += "; \(causes) \(causes == 1 ? "cause" : "causes")"
        }
        let notes = notes.count
        if notes > 0 { text += "; \(notes) \(notes == 1 ? "note" : "notes")" }
        if omitted > 0 { text += "\(all.isEmpty ? "" : ", ")\(omitted) more not shown" }
        if undecided > 0 { text += "; \(undecided) items not decided: redacted, or recorded without XML" }
        return text
    }
}

// MARK: Text
extension DivergenceReport {
    /// Returns the lines of the text form.
    ///
    /// - Parameter coloured: Whether to colour the text with ANSI escape sequences.
    package func lines(coloured: Bool) -> [String] {
        var lines: [String] = []
        for cause in causes { append(cause, coloured, to: &lines) }
        for note in notes { lines.append(LineBuffer.escaped("note: \(note)")) }
        lines.append(LineBuffer.escaped(summary))
        return lines
    }

    /// The latencies as lines of text: for answers by kind of request, for messages and for presence.
    package var latencyLines: [String] {
        latencies.map { entry in
            let counted = entry.kind.hasPrefix("iq") ? "answers" : "delivered"
            let shares = entry.percentiles.map { "p\($0.share) \(LineBuffer.duration($0.nanoseconds))" }
            let most = "most \(LineBuffer.duration(entry.maximum))"
            return "\(entry.kind): \(entry.count) \(counted), \((shares + [most]).joined(separator: ", "))"
        }
    }

    /// The latencies over time as a table with a row for each span of at least a second.
    package var timelineLines: [String] {
        guard spans.count > 1 else { return [] }
        func row(_ cells: [String]) -> String {
            cells.map { String(repeating: " ", count: max(0, 9 - $0.count)) + $0 }.joined()
        }
        let rows = spans.map { second, latencies in
            let shares = latencies.percentiles.map { LineBuffer.duration($0.nanoseconds) }
            let times = latencies.count == 0 ? [] : shares + [LineBuffer.duration(latencies.maximum)]
            return row(["\(second) s", "\(latencies.count)"] + times)
        }
        return [row(["time", "count"] + [50, 95, 99].map { "p\($0)" } + ["most"])] + rows
    }

    func append(_ cause: DivergenceCause, _ coloured: Bool, to lines: inout [String]) {
        let divergence = cause.first
        func paint(_ text: String, _ colour: Int) -> String {
            let text = LineBuffer.escaped(text)
            return coloured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
        }
        let title = LineBuffer.escaped(cause.title)
        lines.append(coloured ? "\u{1B}[1m\(title)\u{1B}[0m" : title)
        lines.append(LineBuffer.escaped("  \(Self.head(cause))"))
        let hidden = divergence.differences.count - Self.maximumDifferences
        for difference in divergence.differences.prefix(Self.maximumDifferences) {
            let values = [
                difference.recorded.map { "\"\($0)\"" } ?? "absent", difference.live.map { "\"\($0)\"" } ?? "absent",
            ]
            lines.append(
                paint("    \(difference.path): \(values.joined(separator: " → "))\(Self.remark(difference.reason))", 33)
            )
        }
        if hidden > 0 { lines.append(paint("    and \(hidden) more", 33)) }
        func paint(_ item: Divergence.Item, _ head: String, _ marks: DifferenceMarks, _ colour: Int) -> String {
            guard coloured else { return LineBuffer.escaped(head + item.text) }
            // The marked parts are shown in reverse video.
            let text = marks.text(
                item.text,
                marked: { "\u{1B}[7m\(LineBuffer.escaped($0))\u{1B}[27m" },
                plain: { LineBuffer.escaped($0) }
            )
            return "\u{1B}[\(colour)m\(LineBuffer.escaped(head))\(text)\u{1B}[0m"
        }
        func append(_ item: Divergence.Item, _ head: String, _ marks: DifferenceMarks, _ colour: Int) {
            lines.append(paint(item, head, marks, colour))
            if !coloured, let carets = Self.carets(item, head, marks) { lines.append(carets) }
        }
        if let item = divergence.recorded, !item.text.isEmpty {
            append(item, "    - \(item.label("expected:")) ", divergence.recordedMarks, 31)
        }
        if let item = divergence.live, !item.text.isEmpty {
            append(item, "    + \(item.label("received:")) ", divergence.liveMarks, 32)
        }
        for consequence in cause.followed.prefix(Self.maximumFollowed) {
            lines.append(paint("    → \(Self.line(consequence))", 2))
        }
        let more = cause.followed.count - Self.maximumFollowed
        if more > 0 { lines.append(paint("    → and \(more) more", 2)) }
    }

    /// Returns a line with carets below the marked parts of an item. Returns nil if nothing is marked, if a terminal
    /// may wrap the line, or if the line contains non-ASCII characters, because their width is unknown.
    private static func carets(_ item: Divergence.Item, _ head: String, _ marks: DifferenceMarks) -> String? {
        let columns = LineBuffer.escaped(head + item.text)
        guard !marks.ranges.isEmpty, columns.utf8.count <= maximumColumns, columns.utf8.allSatisfy({ $0 < 0x7F }) else {
            return nil
        }
        func line(of mark: Character, _ text: String) -> String {
            String(repeating: mark, count: LineBuffer.escaped(text).utf8.count)
        }
        let carets = marks.text(item.text, marked: { line(of: "^", $0) }, plain: { line(of: " ", $0) })
        return line(of: " ", head) + carets.prefix(through: carets.lastIndex(of: "^") ?? carets.startIndex)
    }

    /// Maximum length of a line with carets below it, in columns; a terminal may wrap longer lines.
    private static let maximumColumns = 120

    /// Returns the line below the title: `changed (behaviour) RECV, 3 times in session 1 romeo@example.org/x and 2 more`.
    static func head(_ cause: DivergenceCause) -> String {
        let divergence = cause.first
        var head = "\(divergence.code.rawValue) (\(divergence.divergenceClass.rawValue))"
        if let direction = (divergence.recorded ?? divergence.live)?.direction {
            head += " \(direction == .send ? "SEND" : "RECV")"
        }
        if cause.count > 1 { head += ", \(cause.count) times" }
        if let session = cause.sessions.first {
            head += cause.count > 1 ? " in \(session)" : ", \(session)"
            if cause.sessions.count > 1 { head += " and \(cause.sessions.count - 1) more" }
        }
        if divergence.scriptStep == nil, !divergence.message.isEmpty, divergence.message != cause.title {
            head += ": \(divergence.message)"
        }
        if divergence.consequences > 0 {
            head += " (and \(divergence.consequences) \(divergence.consequences == 1 ? "answer" : "answers") to it)"
        }
        return head
    }

    /// Maximum number of differences of an item shown in the text form.
    private static let maximumDifferences = 8
    /// Maximum number of consequences shown in the text form.
    private static let maximumFollowed = 3

    /// Returns a consequence as one line: `#12 no presence from romeo@example.org`.
    static func line(_ divergence: Divergence) -> String {
        let item = divergence.recorded ?? divergence.live
        return [item.map { "#\($0.sequence)" } ?? "", divergence.title].filter { !$0.isEmpty }.joined(separator: " ")
    }

    private static func remark(_ reason: ValueDifference.Reason) -> String {
        switch reason {
        case .collision: " (stood for another value before)"
        case .pattern: " (does not match the rule's expression)"
        case .number: " (beyond the rule's tolerance)"
        case .value, .missing, .unexpected, .name: ""
        }
    }
}

extension Divergence.Item {
    /// Returns the number of the record; `word` for a stanza of a script, which has no record.
    func label(_ word: String) -> String { sequence > 0 || session > 0 ? "#\(sequence)" : word }
}

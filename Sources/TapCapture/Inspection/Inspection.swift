internal import Synchronization
package import TapRecord
package import TapRules

/// The records of a run or of files, and answers to questions about them as JSON, for a page.
///
/// All answers contain the identifier of the run. Long searches are done in steps: an answer says how far it has come, and
/// the next one continues.
package final class Inspection: Sendable {
    /// The inspected source.
    package struct Subject: Sendable {
        /// A short title, such as the name of the file.
        package var title: String
        /// The paths of the files.
        package var files: [String]
        /// Where clients are relayed to; empty for files.
        package var server: String
        /// Name and version of the program.
        package var tool: String
        /// The path of the control socket; nil if there is none.
        package var control: String?
        /// Whether records are added while the page is open.
        package var isLive: Bool
        /// The redaction policy of records without a header.
        package var redaction: String
        /// Returns the recording that contains the records; nil if there is none.
        package var recording: @Sendable () -> Recording? = { nil }

        package init(
            title: String,
            files: [String] = [],
            server: String = "",
            tool: String,
            isLive: Bool,
            redaction: String
        ) {
            self.title = title
            self.files = files
            self.server = server
            self.tool = tool
            self.isLive = isLive
            self.redaction = redaction
        }
    }

    /// The files of a recording, for commands that read them.
    package struct Recording: Sendable, Hashable {
        /// The files as words of a shell.
        package var words: String
        /// What commands must know about the recording, such as that it is not complete; nil if there is nothing.
        package var remark: String?

        package init(words: String, remark: String? = nil) {
            self.words = words
            self.remark = remark
        }
    }

    /// Maximum number of rows in an answer.
    package static let maximumRows = 2000
    /// Maximum number of messages of a conversation in an answer.
    private static let maximumMessages = 500
    /// Maximum number of bytes of the messages in an answer, except the last message.
    private static let maximumBytes = 8 << 20
    /// Maximum number of servers that are named.
    private static let maximumServers = 8
    /// How long an answer searches.
    static let patience = Duration.milliseconds(60)

    /// The identifier of the run.
    package let run: String
    package let subject: Subject
    /// The records.
    package let table: RecordTable
    private let live: LiveTable?
    private let survey = Mutex(RecordSurvey())
    private let filters = Mutex(FilteredLists())
    private let reading = Mutex<(read: UInt64, size: UInt64, trouble: String?)>((0, 0, nil))

    /// Creates an inspection of a table.
    ///
    /// - Parameter run: An identifier that no other run has.
    package init(_ subject: Subject, run: String, _ table: RecordTable) {
        self.subject = subject
        self.run = run
        self.table = table
        live = nil
    }

    /// Creates an inspection of a running proxy.
    ///
    /// - Parameter run: An identifier that no other run has.
    package init(_ subject: Subject, run: String, _ live: LiveTable) {
        self.subject = subject
        self.run = run
        self.live = live
        table = live.table
    }

    /// Records from now on, because a page asks for data.
    package func touch() { live?.touch() }

    /// Stops recording if no page has asked for data for a while. Must be called regularly.
    package func expire() { live?.expire() }

    /// How much of the files was read, in bytes, and the reason why they could not be read to their end.
    package var progress: (read: UInt64, size: UInt64, trouble: String?) { reading.withLock { $0 } }

    /// When recording began; nil for files, and while only errors and warnings are kept.
    package var since: Timestamp? { live?.since }

    /// The redaction policies of the records, by their names.
    package var redaction: String {
        let policies = table.runs.policies.map(\.rawValue)
        return policies.isEmpty ? subject.redaction : policies.joined(separator: ", ")
    }

    /// Sets how much of the files was read, in bytes.
    package func setProgress(_ read: UInt64, of size: UInt64) {
        reading.withLock { ($0.read, $0.size) = (read, size) }
    }

    /// Sets the reason why the files could not be read to their end.
    package func setTrouble(_ text: String) { reading.withLock { $0.trouble = text } }

    /// Surveys all records that the table has; returns when there are no more.
    package func surveyAll(while goesOn: () -> Bool) {
        while goesOn() {
            let isDone = survey.withLock { survey in
                // A reader may wait for the result so far.
                survey.extend(in: table, until: .now + .milliseconds(5))
                return survey.end >= table.range.upperBound
            }
            if isDone { return }
        }
    }

    // MARK: Answers

    /// Returns an object with the fields of all answers, and those of `body`.
    private func answer(_ body: (inout LineBuffer) -> Void) -> [UInt8] {
        var output = LineBuffer(capacity: 4096)
        output.openObject()
        output.field("run", run)
        body(&output)
        output.closeObject()
        return output.bytes
    }

    /// The inspected source, and the progress of reading it.
    ///
    /// - Parameters:
    ///   - build: Identifies the files of the page.
    ///   - acts: Whether the page can act on sessions.
    package func state(build: String, acts: Bool = false) -> [UInt8] {
        let range = table.range
        let reading = reading.withLock { $0 }
        let servers = withSurvey(extendedFor: .milliseconds(5)) { $0.sessions.servers(limit: Self.maximumServers) }
        return answer { output in
            output.field("title", subject.title)
            output.field("files")
            output.openArray()
            for file in subject.files {
                output.separate()
                output.appendJSONString(file)
            }
            output.closeArray()
            output.field("server", subject.server)
            output.field("servers")
            output.openArray()
            for server in servers {
                output.openObject()
                output.field("domain", server.domain)
                output.field("software", server.software)
                output.closeObject()
            }
            output.closeArray()
            if let control = subject.control { output.field("control", control) }
            output.field("tool", subject.tool)
            output.field("redaction", redaction)
            output.field("live", subject.isLive)
            if let since = live?.since { output.field("since", Int(since.nanoseconds / 1000)) }
            if let recording = subject.recording() {
                output.field("recording")
                output.openObject()
                output.field("words", recording.words)
                if let remark = recording.remark { output.field("remark", remark) }
                output.closeObject()
            }
            if acts { output.field("acts", true) }
            output.field("build", build)
            output.field("first", range.lowerBound)
            output.field("end", range.upperBound)
            output.field("bytes", table.byteCount)
            output.field("read", reading.read)
            output.field("size", reading.size)
            if let trouble = reading.trouble { output.field("trouble", trouble) }
        }
    }

    /// The place of rows in a list.
    package enum Place: Sendable {
        /// From this index on; a negative one counts from the end.
        case from(Int)
        /// Around the record at this position.
        case around(Int)
    }

    /// Returns whether a list is longer than `known`, so that a page that waits gets an answer.
    ///
    /// - Parameter list: The number of the list that `known` is about; nil if the page does not know it.
    package func hasMore(than known: Int, filter: RecordFilter?, list: Int? = nil) -> Bool {
        guard let filter else { return table.range.upperBound > known }
        return withList(of: filter) { found in
            found.range.upperBound > known || found.scanned < table.range.upperBound
                || list.map { $0 != found.number } ?? false
        }
    }

    /// A part of a list of records.
    struct Part {
        /// The number of the list; 0 for that of all records.
        let list: Int
        /// The indices of the whole list.
        let range: Range<Int>
        /// The index of the first record of the part.
        let start: Int
        /// The positions of the records in the part.
        let positions: [Int]
        /// The position up to which the filter has searched.
        let scanned: Int
        /// The positions of all records.
        let whole: Range<Int>
        /// Number of rows of the list that are not records, but say that some are missing.
        var gaps = 0
    }

    /// Returns a part of a list.
    ///
    /// - Parameter patience: How long to search with a filter.
    func part(_ filter: RecordFilter?, _ place: Place, count: Int, patience: Duration) -> Part {
        let count = min(max(0, count), Self.maximumRows)
        let whole = table.range
        guard let filter else {
            let rows = Self.rows(place, whole, count) { $0 }
            return Part(
                list: 0,
                range: whole,
                start: rows.lowerBound,
                positions: Array(rows),
                scanned: whole.upperBound,
                whole: whole
            )
        }
        return withList(of: filter, patience) { list in
            let rows = Self.rows(place, list.range, count) { list.index(of: $0) }
            return Part(
                list: list.number,
                range: list.range,
                start: rows.lowerBound,
                positions: Array(list[rows]),
                scanned: list.scanned,
                whole: whole,
                gaps: list.gaps.count
            )
        }
    }

    /// Returns rows of a list.
    ///
    /// An answer has the number of its list. The results of a filter that was not used for some time are dropped; the
    /// next list of the same filter has another number, because its indices mean other records.
    package func rows(_ filter: RecordFilter?, _ place: Place, count: Int) -> [UInt8] {
        let part = part(filter, place, count: count, patience: Self.patience)
        return answer { output in
            output.field("list", part.list)
            output.field("first", part.range.lowerBound)
            output.field("end", part.range.upperBound)
            output.field("start", part.start)
            if filter != nil {
                output.field("scanned", part.scanned)
                output.field("begin", part.whole.lowerBound)
                output.field("total", part.whole.upperBound)
                output.field("gaps", part.gaps)
            }
            appendRows(part.positions, to: &output)
        }
    }

    private static func rows(_ place: Place, _ range: Range<Int>, _ count: Int, _ index: (Int) -> Int) -> Range<Int> {
        let from: Int
        switch place {
        case .from(let start): from = start < 0 ? range.upperBound &+ start : start
        case .around(let position): from = index(position) - count / 2
        }
        let first = min(max(from, range.lowerBound), range.upperBound)
        return first..<min(range.upperBound, first + count)
    }

    /// Appends a row for each position.
    private func appendRows(_ positions: [Int], to output: inout LineBuffer) {
        let runs = table.runs
        var rows = RecordRows()
        table.read(positions[...]) { position, line in rows.add(row(line, runs, position), at: position) }
        rows.append(to: &output)
    }

    /// Returns a line of the table, or the reason why it is missing.
    func row(_ line: RawSpan?, _ runs: borrowing TableRuns, _ position: Int) -> StoredLine {
        guard line == nil, live != nil else { return StoredLine(line, runs, at: position) }
        return .remark(StoredLine.Remark(.gap, "this record is no longer kept"))
    }

    func withList<Result>(
        of filter: RecordFilter,
        _ patience: Duration = patience,
        _ body: (FilteredList) -> Result
    ) -> Result {
        filters.withLock { body($0.list(of: filter, in: table, until: .now + patience)) }
    }

    /// Returns the nearest match of a filter after a position, or before it; -1 if there is none so far.
    package func seek(_ filter: RecordFilter, from position: Int, backwards: Bool) -> [UInt8] {
        let (found, isDone) = nearest(filter, from: position, backwards: backwards, patience: Self.patience)
        return answer { output in
            output.field("at", found ?? -1)
            output.field("done", isDone)
        }
    }

    /// Returns a whole record, and the place of its request or answer.
    package func record(at position: Int) -> [UInt8] {
        let (request, answerTo, surveyed) = survey.withLock { survey in
            (survey.request(of: position), survey.answer(to: position), survey.end)
        }
        let first = table.range.lowerBound
        let runs = table.runs
        return answer { output in
            output.field("at", position)
            if let request { output.field("request", request) }
            if let answerTo { output.field("answer", answerTo) }
            output.field("surveyed", surveyed > position)
            output.field("first", first)
            guard position >= first else { return }
            table.read(position..<position &+ 1) { at, line in
                var rows = RecordRows()
                rows.add(row(line, runs, at), at: at)
                output.field("row")
                output.openObject()
                rows.append(to: &output)
                output.closeObject()
                var object = LineBuffer()
                guard let line, StoredLine.append(line, runs, at: at, to: &object) else { return }
                output.field("record")
                output.append(bytes: object.span)
            }
        }
    }

    /// Surveys more records for a time, and calls `body` with the result so far.
    func withSurvey<Result: Sendable>(
        extendedFor patience: Duration,
        _ body: (borrowing RecordSurvey) -> Result
    ) -> Result {
        survey.withLock { survey in
            if patience > .zero { survey.extend(in: table, until: .now + patience) }
            return body(survey)
        }
    }

    /// Calls `body` with the result so far.
    func withSurvey<Result: Sendable>(_ body: (borrowing RecordSurvey) -> Result) -> Result {
        survey.withLock { body($0) }
    }

    /// Appends the requests and answers, and the messages of conversations, as positions.
    func appendPairs(_ range: Range<Int>, to output: inout LineBuffer) {
        survey.withLock { survey in
            output.field("pairs")
            output.openObject()
            for position in range {
                let (request, answer) = (survey.request(of: position), survey.answer(to: position))
                guard request != nil || answer != nil else { continue }
                output.field(named: "\(position)")
                output.openArray()
                if let request { output.append(decimal: request) } else { output.append("null") }
                output.separate()
                if let answer { output.append(decimal: answer) } else { output.append("null") }
                output.closeArray()
            }
            output.closeObject()
            output.field("messages")
            output.openArray()
            for conversation in 0..<survey.conversations.next {
                output.openArray()
                for position in survey.conversations.positions(of: conversation).positions {
                    output.separate()
                    output.append(decimal: position)
                }
                output.closeArray()
            }
            output.closeArray()
            output.field("others")
            output.openObject()
            for conversation in 0..<survey.conversations.next {
                for (message, records) in survey.conversations.others(of: conversation) {
                    output.field(named: "\(message)")
                    output.openArray()
                    for position in records {
                        output.separate()
                        output.append(decimal: position)
                    }
                    output.closeArray()
                }
            }
            output.closeObject()
        }
    }

    private func surveyed(_ body: (borrowing RecordSurvey, inout LineBuffer) -> Void) -> [UInt8] {
        survey.withLock { survey in
            survey.extend(in: table, until: .now + Self.patience)
            return answer { output in
                output.field("surveyed", survey.end)
                output.field("missed", survey.missed)
                output.field("end", table.range.upperBound)
                body(survey, &output)
            }
        }
    }

    /// Returns the sessions.
    package func sessions() -> [UInt8] {
        surveyed { survey, output in
            output.field("omitted", survey.sessions.omitted)
            output.field("errors", survey.findings.errors)
            output.field("sessions")
            survey.sessions.append(to: &output)
        }
    }

    /// Returns the errors, the warnings, and what rules and users did to items, grouped.
    package func findings() -> [UInt8] {
        surveyed { survey, output in
            output.field("others", survey.findings.others)
            output.field("findings")
            survey.findings.append(to: &output)
        }
    }

    /// Returns figures of the records.
    package func measures() -> [UInt8] {
        surveyed { survey, output in survey.measures.append(to: &output) }
    }

    /// Returns the conversations.
    ///
    /// - Parameter filter: The messages to search for; the answer has the number of them in each conversation, as far as
    ///   they have been found.
    package func conversations(_ filter: RecordFilter? = nil) -> [UInt8] {
        let matches = filter.map { withList(of: $0) { ($0.matches, $0.scanned) } }
        return surveyed { survey, output in
            output.field("omitted", survey.conversations.omitted)
            if let matches { output.field("scanned", matches.1) }
            output.field("conversations")
            survey.conversations.append(to: &output, matches: matches?.0)
        }
    }

    /// Returns messages of a conversation as whole records: the newest ones before an index. With each message are those of
    /// its other records that say what became of it.
    ///
    /// If they are too large for an answer, the older ones are left off; `from` is the index of the first message, as
    /// for the next request.
    ///
    /// - Parameter filter: Only these messages, as far as they have been found; the indices count only them.
    package func messages(
        of conversation: Int,
        before end: Int?,
        count: Int,
        _ filter: RecordFilter? = nil
    ) -> [UInt8] {
        var (removed, positions) = survey.withLock { $0.conversations.positions(of: conversation) }
        let others = survey.withLock { $0.conversations.others(of: conversation) }
        if let filter {
            let matches = withList(of: filter) { $0.matches }
            (removed, positions) = (0, survey.withLock { $0.conversations.positions(of: conversation, in: matches) })
        }
        // The conversations forget in large steps which records the table no longer has.
        let first = table.range.lowerBound
        let gone = positions.firstIndex { $0 >= first } ?? positions.count
        positions.removeFirst(gone)
        removed += gone
        let runs = table.runs
        let end = min(max(0, (end ?? .max) - removed), positions.count)
        var start = max(0, end - min(max(0, count), Self.maximumMessages))
        var bytes = 0
        for (place, length) in zip(start..<end, table.byteCounts(of: positions[start..<end])).reversed() {
            bytes += length
            guard bytes > Self.maximumBytes, place < end - 1 else { continue }
            start = place + 1
            break
        }
        // A position can be read only in the order of all.
        var changes: [Int: [UInt8]] = [:]
        let changed = others.isEmpty ? [] : positions[start..<end].flatMap { others[$0] ?? [] }.filter { $0 >= first }
        table.read(changed.sorted()[...]) { position, line in
            var object = LineBuffer()
            guard let line, StoredLine.append(line, runs, at: position, to: &object) else { return }
            changes[position] = object.bytes
        }
        return answer { output in
            output.field("conversation", conversation)
            output.field("items", removed + positions.count)
            output.field("first", removed)
            output.field("from", removed + start)
            output.field("messages")
            output.openArray()
            table.read(positions[start..<end]) { position, line in
                var object = LineBuffer()
                guard let line, StoredLine.append(line, runs, at: position, to: &object) else { return }
                output.openObject()
                output.field("at", position)
                output.field("record")
                output.append(bytes: object.span)
                if let records = others[position]?.compactMap({ changes[$0] }), !records.isEmpty {
                    output.field("others")
                    output.openArray()
                    for record in records {
                        output.separate()
                        output.append(bytes: record)
                    }
                    output.closeArray()
                }
                output.closeObject()
            }
            output.closeArray()
        }
    }
}

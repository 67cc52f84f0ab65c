internal import Synchronization
internal import TapRecord
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
        /// Whether records are added while the page is open.
        package var isLive: Bool
        /// The redaction policy.
        package var redaction: String

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

    /// Maximum number of rows in an answer.
    package static let maximumRows = 2000
    /// Maximum number of bytes of the rows in an answer, except the first row.
    private static let maximumBytes = 2 << 20
    /// Maximum number of filters with stored results.
    private static let maximumFilters = 8
    /// How long an answer searches.
    private static let patience = Duration.milliseconds(60)

    /// The identifier of the run.
    package let run: String
    package let subject: Subject
    /// The records.
    package let table: RecordTable
    private let survey = Mutex(RecordSurvey())
    private let filters = Mutex<(lists: [String: FilteredList], uses: Int)>(([:], 0))
    private let reading = Mutex<(read: UInt64, size: UInt64, trouble: String?)>((0, 0, nil))

    /// Creates an inspection of a table.
    ///
    /// - Parameter run: An identifier that no other run has.
    package init(_ subject: Subject, run: String, _ table: RecordTable) {
        self.subject = subject
        self.run = run
        self.table = table
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
                survey.extend(in: table, until: .now + .milliseconds(20))
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
    /// - Parameter build: Identifies the files of the page.
    package func state(build: String) -> [UInt8] {
        let range = table.range
        let reading = reading.withLock { $0 }
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
            output.field("tool", subject.tool)
            output.field("redaction", subject.redaction)
            output.field("live", subject.isLive)
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
    package func hasMore(than known: Int, filter: RecordFilter?) -> Bool {
        guard let filter else { return table.range.upperBound > known }
        return withList(of: filter) { list in
            list.range.upperBound > known || list.scanned < table.range.upperBound
        }
    }

    /// Returns rows of a list.
    package func rows(_ filter: RecordFilter?, _ place: Place, count: Int) -> [UInt8] {
        let count = min(max(0, count), Self.maximumRows)
        let whole = table.range
        guard let filter else {
            let rows = Self.rows(place, whole, count) { $0 }
            return answer { output in
                output.field("first", whole.lowerBound)
                output.field("end", whole.upperBound)
                output.field("start", rows.lowerBound)
                appendRows(rows, nil, to: &output)
            }
        }
        let (range, from, positions, scanned) = withList(of: filter) { list in
            let rows = Self.rows(place, list.range, count) { list.index(of: $0) }
            return (list.range, rows.lowerBound, list[rows], list.scanned)
        }
        return answer { output in
            output.field("first", range.lowerBound)
            output.field("end", range.upperBound)
            output.field("start", from)
            output.field("scanned", scanned)
            output.field("begin", whole.lowerBound)
            output.field("total", whole.upperBound)
            appendRows(0..<0, positions, to: &output)
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

    private func appendRows(_ range: Range<Int>, _ positions: ArraySlice<UInt32>?, to output: inout LineBuffer) {
        var rows = RecordRows()
        if let positions {
            table.read(positions) { position, line in
                if rows.count == 0 || rows.byteCount < Self.maximumBytes { rows.add(line, at: position) }
            }
        } else {
            table.read(range) { position, line in
                if rows.count == 0 || rows.byteCount < Self.maximumBytes { rows.add(line, at: position) }
            }
        }
        rows.append(to: &output)
    }

    private func withList<Result>(of filter: RecordFilter, _ body: (FilteredList) -> Result) -> Result {
        filters.withLock { filters in
            var list =
                filters.lists.removeValue(forKey: filter.text)
                ?? FilteredList(filter, from: table.range.lowerBound)
            list.extend(in: table, until: .now + Self.patience)
            filters.uses += 1
            list.lastUse = filters.uses
            if filters.lists.count >= Self.maximumFilters,
                let oldest = filters.lists.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                filters.lists.removeValue(forKey: oldest.key)
            }
            filters.lists[filter.text] = list
            return body(list)
        }
    }

    /// Returns the nearest match of a filter after a position, or before it; -1 if there is none so far.
    package func seek(_ filter: RecordFilter, from position: Int, backwards: Bool) -> [UInt8] {
        let (found, isDone) = withList(of: filter) { list in
            let total = table.range.upperBound
            let index = list.index(of: backwards ? position : position + 1) - (backwards ? 1 : 0)
            let isDone = list.scanned >= total || backwards && list.scanned >= position
            guard list.range.contains(index), !backwards || list.scanned >= position else { return (-1, isDone) }
            return (Int(list[index..<index + 1].first ?? 0), true)
        }
        return answer { output in
            output.field("at", found)
            output.field("done", isDone)
        }
    }

    /// Returns a whole record, and the place of its request or answer.
    package func record(at position: Int) -> [UInt8] {
        let (request, answerTo, surveyed) = survey.withLock { survey in
            (survey.request(of: position), survey.answer(to: position), survey.end)
        }
        return answer { output in
            output.field("at", position)
            if let request { output.field("request", request) }
            if let answerTo { output.field("answer", answerTo) }
            output.field("surveyed", surveyed > position)
            output.field("first", table.range.lowerBound)
            table.read(position..<position &+ 1) { at, line in
                guard at == position else { return }
                var rows = RecordRows()
                rows.add(line, at: at)
                output.field("row")
                output.openObject()
                rows.append(to: &output)
                output.closeObject()
                // A damaged line is not JSON.
                guard (try? JSONValue(line)) != nil else { return }
                output.field("record")
                output.append(bytes: line.extracting(..<Self.lengthWithoutNewline(line)))
            }
        }
    }

    static func lengthWithoutNewline(_ line: RawSpan) -> Int {
        line.withUnsafeBytes { bytes in
            var end = bytes.count
            while end > 0, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
            return end
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
            for conversation in 0..<survey.conversations.count {
                output.openArray()
                for position in survey.conversations.positions(of: conversation) {
                    output.separate()
                    output.append(decimal: UInt64(position))
                }
                output.closeArray()
            }
            output.closeArray()
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
            output.field("errors", survey.findings.count)
            output.field("sessions")
            survey.sessions.append(to: &output)
        }
    }

    /// Returns the errors and warnings, grouped.
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
    package func conversations() -> [UInt8] {
        surveyed { survey, output in
            output.field("conversations")
            survey.conversations.append(to: &output)
        }
    }

    /// Returns messages of a conversation: those before an index, as whole records.
    package func messages(of conversation: Int, before end: Int?, count: Int) -> [UInt8] {
        let positions = survey.withLock { $0.conversations.positions(of: conversation) }
        let end = min(max(0, end ?? positions.count), positions.count)
        let start = max(0, end - min(max(0, count), 500))
        return answer { output in
            output.field("conversation", conversation)
            output.field("items", positions.count)
            output.field("from", start)
            output.field("messages")
            output.openArray()
            var bytes = 0
            table.read(positions[start..<end]) { position, line in
                bytes += line.byteCount
                guard bytes < 4 * Self.maximumBytes else { return }
                output.openObject()
                output.field("at", position)
                output.field("record")
                output.append(bytes: line.extracting(..<Self.lengthWithoutNewline(line)))
                output.closeObject()
            }
            output.closeArray()
        }
    }
}

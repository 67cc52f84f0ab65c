internal import TapRecord

extension Inspection {
    /// Returns all records and answers, for a page that is a file.
    ///
    /// The first line is an object with the answers that a server would give, and the columns of all rows; each further line
    /// is a record.
    ///
    /// - Parameters:
    ///   - view: The view that the page shows first.
    ///   - report: The report of a comparison as a JSON object; nil for none.
    package func export(build: String, view: String, report: String? = nil) -> [UInt8] {
        surveyAll { true }
        let whole = table.range
        let runs = table.runs
        var output = LineBuffer(capacity: 1 << 16)
        output.openObject()
        output.field("state")
        append(state(build: build), and: view, to: &output)
        var rows = RecordRows()
        table.read(whole) { position, line in rows.add(StoredLine(line, runs, at: position), at: position) }
        output.field("rows")
        output.openObject()
        rows.append(to: &output)
        output.closeObject()
        for (name, answer) in [
            ("sessions", sessions()), ("findings", findings()), ("measures", measures()),
            ("conversations", conversations()),
        ] {
            output.field(named: name)
            output.append(bytes: answer)
        }
        if let report {
            output.field("report")
            output.append(bytes: report.utf8Span.span.bytes)
        }
        appendPairs(whole, to: &output)
        output.closeObject()
        output.endLine()
        // A line that is not JSON is left empty, so that the others keep their places.
        table.read(whole) { position, line in
            if let line { _ = StoredLine.append(line, runs, at: position, to: &output) }
            output.endLine()
        }
        return output.bytes
    }

    /// Appends the state with the view to show first.
    private func append(_ state: [UInt8], and view: String, to output: inout LineBuffer) {
        output.append(bytes: Array(state.dropLast()))
        output.field("first_view", view)
        output.closeObject()
    }

    /// Returns a line for each of the first sessions, for readers whose browser runs no scripts, and for searches.
    package func sessionLines(limit: Int) -> [String] {
        withSurvey { $0.sessions.lines(limit: limit) }
    }
}

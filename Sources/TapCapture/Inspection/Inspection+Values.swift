package import TapRecord
package import TapRules

// The answers as values, for a reader in this process. They are those that a page gets as JSON.
extension Inspection {
    /// Rows of a list.
    package struct Rows: Sendable {
        /// The number of the list; indices of another one mean other records.
        package let list: Int
        /// The indices of the whole list.
        package let range: Range<Int>
        /// The index of the first row.
        package let start: Int
        package let rows: [RecordRow]
        /// The position up to which the filter has searched.
        package let scanned: Int
        /// The positions of all records.
        package let whole: Range<Int>
    }

    /// Returns rows of a list.
    ///
    /// - Parameters:
    ///   - count: Number of rows, at most ``maximumRows``.
    ///   - patience: How long to search with a filter.
    package func list(_ filter: RecordFilter?, _ place: Place, count: Int, patience: Duration) -> Rows {
        let part = part(filter, place, count: count, patience: patience)
        let runs = table.runs
        var rows: [RecordRow] = []
        rows.reserveCapacity(part.positions.count)
        table.read(part.positions[...]) { position, line in
            rows.append(row(line, runs, position).row(at: position))
        }
        return Rows(
            list: part.list,
            range: part.range,
            start: part.start,
            rows: rows,
            scanned: part.scanned,
            whole: part.whole
        )
    }

    /// The place of a record in a list.
    package struct Found: Sendable {
        /// The number of the list.
        package let list: Int
        /// The index of the first row at or after the record; the end of the list if there is none.
        package let index: Int
        /// Whether that row is the record's.
        package let isFound: Bool
        /// Whether the search has passed the record.
        package let isKnown: Bool
    }

    /// Returns the place of the record at a position in a list.
    ///
    /// - Parameter patience: How long to search with a filter.
    package func find(_ position: Int, in filter: RecordFilter?, patience: Duration) -> Found {
        let whole = table.range
        guard let filter else {
            let index = min(max(position, whole.lowerBound), whole.upperBound)
            return Found(list: 0, index: index, isFound: whole.contains(position), isKnown: true)
        }
        return withList(of: filter, patience) { list in
            let index = list.index(of: position)
            let isFound = list[index..<index + 1].first == position
            let isKnown = isFound || list.scanned > position || list.scanned >= whole.upperBound
            return Found(list: list.number, index: index, isFound: isFound, isKnown: isKnown)
        }
    }

    /// Returns the position of the nearest match of a filter after a position, or before it.
    ///
    /// - Returns: The position, nil if there is none so far; and whether the search is complete.
    package func nearest(
        _ filter: RecordFilter,
        from position: Int,
        backwards: Bool,
        patience: Duration
    ) -> (position: Int?, isDone: Bool) {
        withList(of: filter, patience) { list in
            let total = table.range.upperBound
            let start = backwards || position == .max ? position : position + 1
            let step = backwards ? -1 : 1
            var index = list.index(of: start) - (backwards ? 1 : 0)
            // Only records match, not the gaps between them.
            while list.range.contains(index), let at = list[index..<index + 1].first, list.isGap(at: at) {
                index += step
            }
            let isDone = list.scanned >= total || backwards && list.scanned >= position
            guard list.range.contains(index), !backwards || list.scanned >= position else { return (nil, isDone) }
            return (list[index..<index + 1].first, true)
        }
    }

    /// A whole record.
    package struct Whole: Sendable {
        /// The row; nil if the table has no such record.
        package let row: RecordRow?
        /// The record; nil for a remark.
        package let line: RecordLine?
        /// The position of the request that the record answers.
        package let request: Int?
        /// The position of the answer to the record.
        package let answer: Int?
        /// Whether requests and answers were paired up to the record.
        package let isPaired: Bool
    }

    /// Returns the record at a position, and the places of its request and answer.
    package func whole(at position: Int) -> Whole {
        let (request, answer, end) = withSurvey { survey in
            (survey.request(of: position), survey.answer(to: position), survey.end)
        }
        let runs = table.runs
        var found: StoredLine?
        if table.range.contains(position) {
            table.read(position..<position + 1) { at, line in found = row(line, runs, at) }
        }
        var line: RecordLine?
        if case .record(let record)? = found { line = record }
        return Whole(
            row: found?.row(at: position),
            line: line,
            request: request,
            answer: answer,
            isPaired: end > position
        )
    }

    /// The sessions, and how far they were counted.
    package struct Sessions: Sendable {
        package let sessions: [InspectedSession]
        /// Number of sessions that are not listed.
        package let omitted: Int
        /// Number of errors: those of stanzas, streams and logins, and records of level error.
        package let errors: UInt64
        /// The position up to which records were counted.
        package let surveyed: Int
        /// The end of all records.
        package let end: Int
    }

    /// Returns the sessions so far.
    ///
    /// - Parameter patience: How long to count more records; zero for none.
    package func sessions(patience: Duration) -> Sessions {
        let end = table.range.upperBound
        return withSurvey(extendedFor: patience) { survey in
            Sessions(
                sessions: survey.sessions.all,
                omitted: survey.sessions.omitted,
                errors: survey.findings.errors,
                surveyed: survey.end,
                end: end
            )
        }
    }

    /// Counts more records, and pairs requests with answers.
    ///
    /// - Parameter patience: How long.
    /// - Returns: Whether there are more.
    package func extendSurvey(patience: Duration) -> Bool {
        let end = withSurvey(extendedFor: patience) { $0.end }
        return end < table.range.upperBound
    }
}

internal import TapRecord
internal import TapRules

/// The positions of the records that match a filter, found step by step.
struct FilteredList {
    /// Number of records after which the time is read again. They can be large, and a reader waits for the answer.
    private static let part = 256

    let filter: RecordFilter
    /// Identifies the list: indices of another one, also of the same filter, mean other records.
    let number: Int
    private let sieve: LineSieve?
    /// The position up to which the table was searched.
    private(set) var scanned: Int
    /// The positions of the matching records that the table still has.
    private(set) var matches: [Int] = []
    /// Number of matching records that the table no longer has.
    private(set) var removed = 0
    /// When the list was used last, as a counter.
    var lastUse = 0

    init(_ filter: RecordFilter, number: Int, from position: Int) {
        self.filter = filter
        self.number = number
        sieve = filter.literals.map(LineSieve.init)
        scanned = position
    }

    /// The indices of the matching records.
    var range: Range<Int> { removed..<removed + matches.count }

    /// Searches more of the table.
    ///
    /// - Parameter deadline: When to stop.
    mutating func extend(in table: RecordTable, until deadline: ContinuousClock.Instant) {
        let range = table.range
        let runs = table.runs
        removeBefore(range.lowerBound)
        scanned = max(scanned, range.lowerBound)
        while scanned < range.upperBound {
            let part = scanned..<min(scanned + Self.part, range.upperBound)
            table.read(part) { position, line in
                guard let line else { return }
                if let sieve, line.withUnsafeBytes({ sieve.firstHit(in: $0, from: 0) == nil }) { return }
                guard case .record(let record) = StoredLine(line, runs, at: position),
                    filter.matches(record.record, content: record.content.span)
                else { return }
                matches.append(position)
            }
            scanned = part.upperBound
            if ContinuousClock.now >= deadline { break }
        }
    }

    private mutating func removeBefore(_ position: Int) {
        guard let first = matches.first, first < position else { return }
        let count = index(of: position) - removed
        matches.removeFirst(count)
        removed += count
    }

    /// Returns the index of the first match at or after a position.
    func index(of position: Int) -> Int {
        var (low, high) = (0, matches.count)
        while low < high {
            let middle = (low + high) / 2
            if matches[middle] < position { low = middle + 1 } else { high = middle }
        }
        return removed + low
    }

    /// Returns the positions of matches by their indices.
    subscript(range: Range<Int>) -> ArraySlice<Int> {
        let some = range.clamped(to: self.range)
        return matches[some.lowerBound - removed..<some.upperBound - removed]
    }
}

internal import TapRecord
internal import TapRules

/// The positions of the records that match a filter, found step by step.
///
/// A remark that records are missing is part of the list if it is between two matching records: otherwise they would look
/// like neighbours.
struct FilteredList {
    /// Number of records after which the time is read again. They can be large, and a reader waits for the answer.
    private static let part = 256

    let filter: RecordFilter
    /// Identifies the list: indices of another one, also of the same filter, mean other records.
    let number: Int
    private let sieve: LineSieve?
    /// The position up to which the table was searched.
    private(set) var scanned: Int
    /// The positions of the rows that the table still has.
    private(set) var matches: [Int] = []
    /// The positions of the rows that are not records, but say that some are missing.
    private(set) var gaps: [Int] = []
    /// Such positions after the last match, which become rows when another record matches.
    private var pendingGaps: [Int] = []
    /// Number of rows that the table no longer has.
    private(set) var removed = 0
    /// When the list was used last, as a counter.
    var lastUse = 0

    init(_ filter: RecordFilter, number: Int, from position: Int) {
        self.filter = filter
        self.number = number
        sieve = filter.literals.map(LineSieve.init)
        scanned = position
    }

    /// The indices of the rows.
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
                if Self.isGap(line, runs, at: position) {
                    if !matches.isEmpty { pendingGaps.append(position) }
                    return
                }
                if let sieve, line.withUnsafeBytes({ sieve.firstHit(in: $0, from: 0) == nil }) { return }
                guard case .record(let record) = StoredLine(line, runs, at: position),
                    filter.matches(record.record, content: record.content.span)
                else { return }
                matches += pendingGaps
                gaps += pendingGaps
                pendingGaps.removeAll()
                matches.append(position)
            }
            scanned = part.upperBound
            if ContinuousClock.now >= deadline { break }
        }
    }

    /// Returns whether a line is a remark that records are missing.
    private static func isGap(_ line: RawSpan, _ runs: borrowing TableRuns, at position: Int) -> Bool {
        guard StoredLine.canBeRemark(line), case .remark(let remark) = StoredLine(line, runs, at: position) else {
            return false
        }
        return remark.kind == .gap
    }

    /// Returns whether the row at a position says that records are missing.
    func isGap(at position: Int) -> Bool { gaps.contains(position) }

    private mutating func removeBefore(_ position: Int) {
        gaps.removeAll { $0 < position }
        pendingGaps.removeAll { $0 < position }
        guard let first = matches.first, first < position else { return }
        let count = index(of: position) - removed
        matches.removeFirst(count)
        removed += count
    }

    /// Returns the index of the first row at or after a position.
    func index(of position: Int) -> Int {
        var (low, high) = (0, matches.count)
        while low < high {
            let middle = (low + high) / 2
            if matches[middle] < position { low = middle + 1 } else { high = middle }
        }
        return removed + low
    }

    /// Returns the positions of rows by their indices.
    subscript(range: Range<Int>) -> ArraySlice<Int> {
        let some = range.clamped(to: self.range)
        return matches[some.lowerBound - removed..<some.upperBound - removed]
    }
}

internal import TapRecord

/// The lines of some records, in order.
public struct FormedLines: Sendable {
    /// The lines.
    var text: LineBuffer
    /// Where those of each record end.
    var ends: [Int] = []

    init(capacity: Int = 1024) { text = LineBuffer(capacity: capacity) }

    /// Appends some of the records of others.
    mutating func append(_ records: Range<Int>, of other: borrowing FormedLines) {
        guard !records.isEmpty else { return }
        let start = records.lowerBound == 0 ? 0 : other.ends[records.lowerBound - 1]
        let shift = text.count - start
        text.append(bytes: other.text.span.extracting(start..<other.ends[records.upperBound - 1]))
        for end in other.ends[records] { ends.append(end + shift) }
    }
}

internal import TapRecord

/// The lines of some records, in order.
///
/// Sendable: one thread fills it, and then another reads it.
public final class FormedLines: @unchecked Sendable {
    /// The lines.
    @exclusivity(unchecked) var text: LineBuffer
    /// Where those of each record end.
    @exclusivity(unchecked) var ends: [Int] = []

    init(capacity: Int = 1024) { text = LineBuffer(capacity: capacity) }

    /// Appends some of the records of others; never of itself.
    func append(_ records: Range<Int>, of other: FormedLines) {
        guard !records.isEmpty, other !== self else { return }
        let start = records.lowerBound == 0 ? 0 : other.ends[records.lowerBound - 1]
        let shift = text.count - start
        text.append(start..<other.ends[records.upperBound - 1], of: other.text)
        for end in other.ends[records] { ends.append(end + shift) }
    }
}

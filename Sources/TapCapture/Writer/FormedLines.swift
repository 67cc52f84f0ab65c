internal import TapRecord

/// The lines of some records, in order, that one thread has formatted.
///
/// Sendable, because it is immutable.
final class FormedLines: Sendable {
    /// The text of all lines.
    let text: LineBuffer
    /// The offsets in `text` at which the lines of each record end.
    let ends: [Int]

    init(_ text: consuming LineBuffer, ends: [Int]) {
        self.text = text
        self.ends = ends
    }
}

/// Lines that several threads have formatted, in the order of their records.
package struct MergedLines: Sendable {
    private struct Piece {
        /// The index of the part with the lines.
        let part: Int
        let records: Range<Int>
    }

    private let parts: [FormedLines]
    private var pieces: [Piece] = []
    /// The number of bytes of all lines.
    private(set) var byteCount = 0
    /// The number of records that have lines.
    private(set) var recordCount = 0

    init(of parts: [FormedLines]) { self.parts = parts }

    /// Appends the lines of some records of a part. The records of a part must be appended in order.
    mutating func append(_ records: Range<Int>, ofPart part: Int) {
        guard !records.isEmpty else { return }
        pieces.append(Piece(part: part, records: records))
        recordCount += records.count
        byteCount += place(records, parts[part]).count
    }

    /// Returns the range of the lines of some records in the text of their part.
    private func place(_ records: Range<Int>, _ part: FormedLines) -> Range<Int> {
        let start = records.lowerBound == 0 ? 0 : part.ends[records.lowerBound - 1]
        return start..<part.ends[records.upperBound - 1]
    }

    /// Appends the lines to `bytes`, and the offset in `bytes` at which each record ends to `ends`.
    func append(to bytes: inout [UInt8], _ ends: inout [Int]) {
        for piece in pieces {
            let part = parts[piece.part]
            let place = place(piece.records, part)
            let shift = bytes.count - place.lowerBound
            part.text.copy(place, to: &bytes)
            for end in part.ends[piece.records] { ends.append(end + shift) }
        }
    }
}

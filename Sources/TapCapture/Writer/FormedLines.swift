internal import TapRecord

/// The lines of some records, in order, that one thread has made.
///
/// Sendable: nothing changes them.
final class FormedLines: Sendable {
    /// The lines.
    let text: LineBuffer
    /// Where those of each record end.
    let ends: [Int]

    init(_ text: consuming LineBuffer, ends: [Int]) {
        self.text = text
        self.ends = ends
    }
}

/// Lines that several threads have made, in the order of their records.
package struct MergedLines: Sendable {
    private struct Piece {
        /// Whose lines they are.
        let part: Int
        let records: Range<Int>
    }

    private let parts: [FormedLines]
    private var pieces: [Piece] = []
    /// Bytes of the lines.
    private(set) var byteCount = 0
    /// Records that have lines.
    private(set) var recordCount = 0

    init(of parts: [FormedLines]) { self.parts = parts }

    /// Goes on with the lines of some records of a part, which come behind those of it that are there already.
    mutating func append(_ records: Range<Int>, ofPart part: Int) {
        guard !records.isEmpty else { return }
        pieces.append(Piece(part: part, records: records))
        recordCount += records.count
        byteCount += place(records, parts[part]).count
    }

    /// The range of some records' lines in those of their part.
    private func place(_ records: Range<Int>, _ part: FormedLines) -> Range<Int> {
        let start = records.lowerBound == 0 ? 0 : part.ends[records.lowerBound - 1]
        return start..<part.ends[records.upperBound - 1]
    }

    /// Appends the lines to `bytes`, and to `ends` where those of each record end there.
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

package import XMPPCore

/// A run of character data or the value of an attribute: what it means, and where each of its bytes is written.
///
/// Reused from run to run. A run that is written as it means, which is nearly every one, keeps no offsets.
package struct WireText {
    /// What the run means: references replaced, CDATA sections joined with the text around them.
    package private(set) var bytes: [UInt8] = []
    /// Where the run stands, markup of CDATA sections included.
    package private(set) var range = ByteRange.empty

    /// For each byte of `bytes` where it is written; empty while `bytes` stands at `range` as it is.
    private var offsets: [Int32] = []
    private var hasOffsets = false
    /// Where each piece of the run stands without markup, if there are several.
    private var pieces: [ByteRange] = []
    private var isBegun = false

    var isEmpty: Bool { !isBegun }

    package init() {}

    package mutating func removeAll() {
        guard isBegun else { return }
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 16)
        offsets.removeAll(keepingCapacity: offsets.capacity <= 1 << 14)
        pieces.removeAll(keepingCapacity: true)
        range = .empty
        isBegun = false
        hasOffsets = false
    }

    /// Adds a piece in which references may stand.
    package mutating func append(text: ByteRange, of item: Span<UInt8>) {
        begin(text, markup: text)
        let raw = item.slice(text)
        guard Self.holdsReference(raw) else { return appendPlain(raw, at: Int(text.start)) }
        spreadOffsets()
        var index = 0
        while index < raw.count {
            var end = index + 1
            if raw[index] == 0x26 {
                while end < raw.count, raw[end - 1] != 0x3B { end += 1 }
            }
            AttributeValue.decodeText(raw.extracting(index..<end), into: &bytes)
            while offsets.count < bytes.count {
                offsets.append(Int32(truncatingIfNeeded: Int(text.start) + index))
            }
            index = end
        }
    }

    /// Adds a CDATA section.
    package mutating func append(section: ByteRange, markup: ByteRange, of item: Span<UInt8>) {
        begin(section, markup: markup)
        spreadOffsets()
        appendPlain(item.slice(section), at: Int(section.start))
    }

    private mutating func begin(_ piece: ByteRange, markup: ByteRange) {
        if isBegun { spreadOffsets() }
        range = isBegun ? ByteRange(Int(range.start), Int(markup.end)) : markup
        pieces.append(piece)
        isBegun = true
    }

    private mutating func appendPlain(_ raw: Span<UInt8>, at start: Int) {
        bytes.append(raw)
        guard hasOffsets else { return }
        for offset in start..<(start + raw.count) { offsets.append(Int32(truncatingIfNeeded: offset)) }
    }

    /// From here on a byte need not stand where the one before it lets expect.
    private mutating func spreadOffsets() {
        guard !hasOffsets else { return }
        hasOffsets = true
        for index in bytes.indices { offsets.append(Int32(truncatingIfNeeded: Int(range.start) + index)) }
    }

    /// Where a part of ``bytes`` is written; nil where the part goes over the border of a CDATA section.
    func place(of part: Range<Int>) -> ByteRange? {
        guard !part.isEmpty, part.upperBound <= bytes.count else { return nil }
        guard hasOffsets else {
            return ByteRange(Int(range.start) + part.lowerBound, Int(range.start) + part.upperBound)
        }
        let start = offsets[part.lowerBound]
        let piece = piece(at: start)
        // Several bytes of one reference stand at one place: what is cut off must end behind all of them.
        var next = part.upperBound
        while next < offsets.count, offsets[next] == offsets[next - 1] { next += 1 }
        guard offsets[next - 1] < piece.end else { return nil }
        return ByteRange(Int(start), next < offsets.count ? min(Int(offsets[next]), Int(piece.end)) : Int(piece.end))
    }

    /// The piece in which an offset lies.
    private func piece(at offset: Int32) -> ByteRange {
        var (low, high) = (0, pieces.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if pieces[middle].start <= offset { low = middle } else { high = middle }
        }
        return low < pieces.count ? pieces[low] : range
    }

    private static func holdsReference(_ raw: Span<UInt8>) -> Bool {
        for index in raw.indices where raw[index] == 0x26 { return true }
        return false
    }
}

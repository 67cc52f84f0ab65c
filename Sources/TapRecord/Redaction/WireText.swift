package import XMPPCore

/// A piece of character data or the value of an attribute: its decoded bytes, and the offset of each in the item.
///
/// One instance is reused for all texts. A text without references and CDATA sections, as nearly all are, stores no
/// offsets.
package struct WireText {
    /// The decoded text: references replaced, CDATA sections joined with the text around them.
    package private(set) var bytes: [UInt8] = []
    /// The range of the text, including markup of CDATA sections.
    package private(set) var range = ByteRange.empty

    /// The offset in the item of each byte of `bytes`; empty while `bytes` equals the item's bytes at `range`.
    private var offsets: [Int32] = []
    private var hasOffsets = false
    /// The ranges of the pieces of the text without markup, if there are several.
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

    /// Adds a piece that may contain references.
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

    /// Begins to store offsets, because later bytes may not be consecutive in the item.
    private mutating func spreadOffsets() {
        guard !hasOffsets else { return }
        hasOffsets = true
        for index in bytes.indices { offsets.append(Int32(truncatingIfNeeded: Int(range.start) + index)) }
    }

    /// Returns the range in the item of a part of ``bytes``; nil if the part crosses the border of a CDATA section.
    func place(of part: Range<Int>) -> ByteRange? {
        guard !part.isEmpty, part.upperBound <= bytes.count else { return nil }
        guard hasOffsets else {
            return ByteRange(Int(range.start) + part.lowerBound, Int(range.start) + part.upperBound)
        }
        let start = offsets[part.lowerBound]
        let piece = piece(at: start)
        // The bytes of one reference share an offset: a range must end after all of them.
        var next = part.upperBound
        while next < offsets.count, offsets[next] == offsets[next - 1] { next += 1 }
        guard offsets[next - 1] < piece.end else { return nil }
        return ByteRange(Int(start), next < offsets.count ? min(Int(offsets[next]), Int(piece.end)) : Int(piece.end))
    }

    /// Returns the piece that contains an offset.
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

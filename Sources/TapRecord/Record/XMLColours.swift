internal import XMPPCore

/// Colours pieces of XML; a piece is a tag or a text.
enum XMLColours {
    private static let maximumValueLength = 160
    private static let keptStart = 80
    private static let keptEnd = 20

    static func append(_ piece: Span<UInt8>, isColoured: Bool, to line: inout LineBuffer) {
        guard piece.count > 1, piece[0] == 0x3C, piece[1] != 0x21 else { return appendValue(piece, to: &line) }
        var offset = 1
        while offset < piece.count, !isDelimiter(piece[offset]) || offset == 1 && piece[1] == 0x2F { offset += 1 }
        paint("\u{1B}[34m", isColoured, to: &line)
        appendValue(piece.extracting(0..<offset), to: &line)
        paint("\u{1B}[0m", isColoured, to: &line)
        while offset < piece.count {
            let quote = piece[offset]
            if quote == 0x22 || quote == 0x27 {
                var end = offset + 1
                while end < piece.count, piece[end] != quote { end += 1 }
                end = min(end + 1, piece.count)
                paint("\u{1B}[33m", isColoured, to: &line)
                appendValue(piece.extracting(offset..<end), to: &line)
                offset = end
            } else {
                var end = offset + 1
                while end < piece.count, piece[end] != 0x22, piece[end] != 0x27 { end += 1 }
                paint("\u{1B}[2m", isColoured, to: &line)
                appendValue(piece.extracting(offset..<end), to: &line)
                offset = end
            }
            paint("\u{1B}[0m", isColoured, to: &line)
        }
    }

    /// Appends a name, a value or a text; the middle of a long one is replaced by its size.
    private static func appendValue(_ text: Span<UInt8>, to line: inout LineBuffer) {
        guard text.count > maximumValueLength else { return line.appendEscaped(text.bytes) }
        let start = text.characterBoundary(notAfter: keptStart)
        let end = text.characterBoundary(notAfter: text.count - keptEnd)
        line.appendEscaped(text.extracting(0..<start).bytes)
        line.append(" … ")
        line.append(size: UInt64(end - start))
        line.append(" … ")
        line.appendEscaped(text.extracting(end...).bytes)
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x09, 0x0A, 0x0D, 0x2F, 0x3E: true
        default: false
        }
    }

    private static func paint(_ sequence: StaticString, _ isColoured: Bool, to line: inout LineBuffer) {
        if isColoured { line.append(sequence) }
    }
}

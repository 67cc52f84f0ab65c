/// The number of terminal columns of a text.
///
/// Characters of East Asian Width W and F (Unicode 14, UAX #11) are wide, emoji among them. Combining marks and joiners
/// take no column. A character after a zero-width joiner is drawn together with the one before. Terminals with
/// different fonts may differ.
package enum Columns {
    /// Returns the columns of UTF-8 text without control characters.
    package static func count(_ text: Span<UInt8>) -> Int {
        var offset = plain(text, atMost: text.count)
        guard offset < text.count else { return offset }
        var counter = Counter(after: &offset)
        while let scalar = scalar(of: text, at: &offset) { counter.add(scalar) }
        return counter.columns
    }

    /// Maximum number of bytes for each column; longer texts are cut, because a character can have any number of marks
    /// or joiners.
    private static let maximumBytesPerColumn = 32

    /// Returns the number of bytes of `text` that fit into `columns`, and the columns that they use.
    static func fitting(_ text: Span<UInt8>, into columns: Int) -> (bytes: Int, columns: Int) {
        // Nearly all text is ASCII.
        var offset = plain(text, atMost: columns < text.count ? columns + 1 : text.count)
        guard offset < text.count, offset <= columns else {
            let fitting = min(offset, max(0, columns))
            return (fitting, fitting)
        }
        var counter = Counter(after: &offset)
        var end = offset
        var taken = offset
        // A long sequence of marks on one character uses no column, and would be written completely.
        let most = (columns + 2) * maximumBytesPerColumn
        while let scalar = scalar(of: text, at: &offset) {
            counter.add(scalar)
            guard counter.columns <= columns, offset <= most else { break }
            end = offset
            taken = counter.columns
        }
        return (end, taken)
    }

    /// Returns how much of a text is kept in `columns`, and the columns that it uses: the whole text if it fits,
    /// otherwise the part that leaves space for an ellipsis.
    fileprivate static func kept(of text: Span<UInt8>, in columns: Int) -> (bytes: Int, columns: Int) {
        // A fast path for texts that do not fit and begin with more than `columns` ASCII characters. A combining mark
        // after these can only join a character that is cut off.
        if columns > 0, columns < text.count, plain(text, atMost: columns + 1) > columns {
            return (columns - 1, columns - 1)
        }
        let whole = fitting(text, into: columns)
        return whole.bytes < text.count ? fitting(text, into: columns - 1) : whole
    }

    /// Returns how many of the first bytes, at most `limit`, are ASCII: each uses one column.
    private static func plain(_ text: Span<UInt8>, atMost limit: Int) -> Int {
        let bytes = text.bytes
        var offset = 0
        // Checks eight bytes at a time.
        while offset <= limit - 8,
            bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        { offset &+= 8 }
        while offset < limit, text[offset] < 0x80 { offset &+= 1 }
        return offset
    }

    /// Returns the character at `offset` and advances `offset`; U+FFFD for an invalid byte.
    private static func scalar(of text: Span<UInt8>, at offset: inout Int) -> UInt32? {
        guard offset < text.count else { return nil }
        let first = text[offset]
        offset += 1
        guard first >= 0x80 else { return UInt32(first) }
        let more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1
        var value = UInt32(first) & (0x3F >> UInt32(more))
        for _ in 0..<more {
            guard offset < text.count, text[offset] & 0xC0 == 0x80 else { return 0xFFFD }
            value = value << 6 | UInt32(text[offset] & 0x3F)
            offset += 1
        }
        return value
    }

    fileprivate struct Counter {
        var columns = 0
        private var last = 0
        private var isJoined = false

        init() {}

        /// Creates a counter for the text after the ASCII characters before `offset`, and moves `offset` back to the
        /// last ASCII character: later characters may change how it is drawn.
        init(after offset: inout Int) {
            offset = max(0, offset - 1)
            columns = offset
        }

        mutating func add(_ scalar: UInt32) {
            if scalar < 0x300 {
                columns += 1
                last = 1
                isJoined = false
                return
            }
            switch scalar {
            case 0x200D: isJoined = true
            // The emoji variation selector draws the previous character as an emoji, which is wide.
            case 0xFE0F:
                columns += last == 1 ? 1 : 0
                last = 0
            default:
                last = isJoined ? 0 : Columns.width(of: scalar)
                columns += last
                isJoined = false
            }
        }
    }

    private static func width(of scalar: UInt32) -> Int {
        // Vowels and final consonants of Hangul join the previous syllable; marks and emoji modifiers also join.
        if (0x1160...0x11FF).contains(scalar) || (0x1F3FB...0x1F3FF).contains(scalar) { return 0 }
        switch Unicode.Scalar(scalar)?.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        var low = 0
        var high = wide.count
        while low < high {
            let middle = (low + high) / 2
            if wide[middle].upperBound < scalar { low = middle + 1 } else { high = middle }
        }
        return low < wide.count && wide[low].contains(scalar) ? 2 : 1
    }

    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x231A...0x231B, 0x2329...0x232A, 0x23E9...0x23EC, 0x23F0...0x23F0, 0x23F3...0x23F3,
        0x25FD...0x25FE, 0x2614...0x2615, 0x2648...0x2653, 0x267F...0x267F, 0x2693...0x2693, 0x26A1...0x26A1,
        0x26AA...0x26AB, 0x26BD...0x26BE, 0x26C4...0x26C5, 0x26CE...0x26CE, 0x26D4...0x26D4, 0x26EA...0x26EA,
        0x26F2...0x26F3, 0x26F5...0x26F5, 0x26FA...0x26FA, 0x26FD...0x26FD, 0x2705...0x2705, 0x270A...0x270B,
        0x2728...0x2728, 0x274C...0x274C, 0x274E...0x274E, 0x2753...0x2755, 0x2757...0x2757, 0x2795...0x2797,
        0x27B0...0x27B0, 0x27BF...0x27BF, 0x2B1B...0x2B1C, 0x2B50...0x2B50, 0x2B55...0x2B55, 0x2E80...0x303E,
        0x3041...0x3247, 0x3250...0x4DBF, 0x4E00...0xA4C6, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAD9,
        0xFE10...0xFE19, 0xFE30...0xFE6B, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18D08, 0x1AFF0...0x1B2FB,
        0x1F004...0x1F004, 0x1F0CF...0x1F0CF, 0x1F18E...0x1F18E, 0x1F191...0x1F19A, 0x1F200...0x1F320,
        0x1F32D...0x1F335, 0x1F337...0x1F37C, 0x1F37E...0x1F393, 0x1F3A0...0x1F3CA, 0x1F3CF...0x1F3D3,
        0x1F3E0...0x1F3F0, 0x1F3F4...0x1F3F4, 0x1F3F8...0x1F43E, 0x1F440...0x1F440, 0x1F442...0x1F4FC,
        0x1F4FF...0x1F53D, 0x1F54B...0x1F54E, 0x1F550...0x1F567, 0x1F57A...0x1F57A, 0x1F595...0x1F596,
        0x1F5A4...0x1F5A4, 0x1F5FB...0x1F64F, 0x1F680...0x1F6C5, 0x1F6CC...0x1F6CC, 0x1F6D0...0x1F6D2,
        0x1F6D5...0x1F6DF, 0x1F6EB...0x1F6EC, 0x1F6F4...0x1F6FC, 0x1F7E0...0x1F7F0, 0x1F90C...0x1F93A,
        0x1F93C...0x1F945, 0x1F947...0x1F9FF, 0x1FA70...0x1FAF6, 0x20000...0x3FFFD,
    ]
}

// Functions for strings without control characters.
extension Columns {
    /// Returns the columns of a text.
    package static func count(_ text: String) -> Int { count(text.utf8Span.span) }

    /// Returns the part of a text that fits, with an ellipsis for the rest.
    package static func cut(_ text: String, to columns: Int) -> String {
        LineBuffer.text { line in
            line.append(string: text)
            line.cut(from: 0, to: columns)
        }
    }

    /// Returns a text padded with spaces.
    package static func padded(_ text: String, to columns: Int) -> String {
        text + String(repeating: " ", count: max(0, columns - count(text)))
    }

    /// Returns the text in ASCII, with similar characters for marks and lines.
    package static func ascii(_ text: String) -> String {
        LineBuffer.text { line in
            line.append(string: text)
            line.makeASCII(from: 0)
        }
    }

    /// Wraps a text between words, not at no-break spaces, which become spaces; initial spaces are kept. A word that is
    /// longer than a line is broken.
    package static func wrapped(_ text: String, to columns: Int) -> [String] {
        let columns = max(1, columns)
        var lines: [String] = []
        var line = String(text.prefix { $0 == " " })
        var taken = count(line)
        var isFirst = true
        for word in text.split(separator: " ") {
            var word = String(word)
            var width = count(word)
            if !isFirst, taken + 1 + width > columns {
                lines.append(line)
                line = ""
                taken = 0
            } else if !isFirst {
                line += " "
                taken += 1
            }
            while taken + width > columns {
                let room = max(1, columns - taken)
                let most = fitting(word.utf8Span.span, into: room).bytes
                guard most > 0, most < word.utf8.count else { break }
                // Breaks after a `:` or `/` of a fingerprint or path, if one is near the end of the line.
                let end = word.utf8.prefix(most).lastIndex { $0 == 0x3A || $0 == 0x2F }
                let part = end.map { word.utf8.distance(from: word.startIndex, to: $0) + 1 } ?? 0
                let start = part > most * 2 / 3 ? part : most
                lines.append(line + String(decoding: word.utf8.prefix(start), as: UTF8.self))
                word = String(decoding: word.utf8.dropFirst(start), as: UTF8.self)
                width = count(word)
                line = ""
                taken = 0
            }
            line += word
            taken += width
            isFirst = false
        }
        return (lines + [line]).map { $0.replacing("\u{A0}", with: " ") }
    }
}

extension LineBuffer {
    /// Cuts the text after `start` to `columns`, with an ellipsis for the rest; the text must not contain control
    /// characters.
    ///
    /// - Returns: The columns that the text uses afterwards.
    @discardableResult
    @inline(__always)
    mutating func cut(from start: Int, to columns: Int) -> Int {
        let more = count - start
        return more <= columns && isPlain(from: start) ? more : cutText(from: start, to: columns)
    }

    private mutating func cutText(from start: Int, to columns: Int) -> Int {
        let kept = Columns.kept(of: utf8.extracting(start...), in: columns)
        guard start + kept.bytes < count else { return kept.columns }
        truncate(to: start + kept.bytes)
        guard columns > 0 else { return 0 }
        append("…")
        return kept.columns + 1
    }

    /// Appends the contents of another buffer.
    mutating func append(_ other: borrowing LineBuffer) { append(bytes: other.span) }

    /// Appends spaces.
    @inline(__always)
    mutating func append(spaces count: Int) {
        guard count > 0 else { return }
        append(atMost: count + 16) { output in
            // Writes blocks of spaces; later bytes overwrite those that are not needed.
            let block = SIMD16<UInt8>(repeating: 0x20)
            var written = 0
            repeat {
                UnsafeMutableRawPointer(output + written).storeBytes(of: block, as: SIMD16<UInt8>.self)
                written &+= 16
            } while written < count
            return count
        }
    }

    /// Replaces characters beyond ASCII after `start` by the same number of columns of ASCII: arrows, marks and lines
    /// by similar characters, others by question marks.
    mutating func makeASCII(from start: Int) {
        let tail = bytes[start...]
        guard tail.contains(where: { $0 >= 0x80 }) else { return }
        truncate(to: start)
        var counter = Columns.Counter()
        for scalar in String(decoding: tail, as: UTF8.self).unicodeScalars {
            let columns = counter.columns
            counter.add(scalar.value)
            switch scalar {
            case "→": append(UInt8(ascii: ">"))
            case "←": append(UInt8(ascii: "<"))
            case "✓": append(UInt8(ascii: "+"))
            case "✗": append(UInt8(ascii: "!"))
            case "─", "–", "·": append(UInt8(ascii: "-"))
            case "…": append(UInt8(ascii: "~"))
            case "≠": append(UInt8(ascii: "#"))
            case "×": append(UInt8(ascii: "x"))
            case "µ": append(UInt8(ascii: "u"))
            case _ where scalar.isASCII: append(UInt8(ascii: scalar))
            default: for _ in columns..<max(columns, counter.columns) { append(UInt8(ascii: "?")) }
            }
        }
    }
}

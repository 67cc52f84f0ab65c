internal import XMPPCore

/// Escaping of text from the wire, so that a record is one line and no byte of it can control a terminal or mislead a
/// reader.
///
/// Escaped in both forms: every control character (C0, DEL, C1: with them ESC, CSI, OSC and DCS), the bidirectional
/// controls (U+061C, U+200E/F, U+202A–E, U+2066–9), the line and paragraph separators U+2028/9, and zero-width
/// characters that no script needs (U+200B, U+2060–5, U+206A–F, U+FEFF, U+FFF9–B, the tags U+E0000–7F). The joiners
/// U+200C/D and variation selectors are not escaped: emoji, Persian and Indic text need them.
///
/// The log form writes `\n`, `\r`, `\t`, `\\`, `\u{1b}` for a character and `\xNN` for a byte that is not UTF-8.
/// Because the backslash itself is escaped, every line can be decoded to the original bytes; XML, which rarely contains
/// a backslash, stays readable. The JSON form (RFC 8259 §7) writes `\uNNNN` instead, in pairs above U+FFFF.
package enum Escape {
    enum Form {
        /// Text logs and terminals.
        case log
        /// The contents of a JSON string.
        case json
    }

    /// Decodes a text in the log form. Text without escapes is unchanged.
    package static func resolved(_ text: ArraySlice<UInt8>) -> [UInt8] {
        guard text.contains(0x5C) else { return Array(text) }
        var bytes: [UInt8] = []
        var rest = text
        func number(_ digits: ArraySlice<UInt8>) -> UInt32? {
            let text = String(decoding: digits, as: UTF8.self)
            return text.allSatisfy(\.isHexDigit) ? UInt32(text, radix: 16) : nil
        }
        while let byte = rest.popFirst() {
            guard byte == 0x5C, let kind = rest.first else {
                bytes.append(byte)
                continue
            }
            let behind = rest.dropFirst()
            switch kind {
            case 0x6E: bytes.append(0x0A)
            case 0x72: bytes.append(0x0D)
            case 0x74: bytes.append(0x09)
            case 0x5C: bytes.append(0x5C)
            case 0x78:
                guard behind.count >= 2, let value = number(behind.prefix(2)).flatMap(UInt8.init(exactly:)) else {
                    bytes.append(byte)
                    continue
                }
                bytes.append(value)
                rest = behind.dropFirst(2)
                continue
            case 0x75:
                let digits = behind.dropFirst().prefix(6).prefix { $0 != 0x7D }
                guard behind.first == 0x7B, behind[digits.endIndex...].first == 0x7D,
                    let scalar = number(digits).flatMap(Unicode.Scalar.init)
                else {
                    bytes.append(byte)
                    continue
                }
                bytes += Array(String(scalar).utf8)
                rest = behind[digits.endIndex...].dropFirst()
                continue
            default:
                bytes.append(byte)
                continue
            }
            rest = behind
        }
        return bytes
    }

    /// Maximum number of input bytes that are escaped after one reservation of output space.
    static let block = 2048

    /// Returns the maximum number of output bytes for `count` input bytes: `\u{1b}` and `\u001b` are six bytes for one;
    /// the last character of a block may extend beyond it, and clean bytes are stored 16 at a time.
    static func worstCase(_ count: Int) -> Int { count * 6 + 32 }

    /// Escapes the characters of `source` that begin in `start..<end`.
    ///
    /// `output` has space for ``worstCase(_:)`` of that range.
    /// - Returns: the offset of the next character, the number of bytes written, and whether all of the text was UTF-8;
    ///   the JSON form stops at the first byte that is not.
    @inline(__always)
    static func escape(
        _ source: UnsafeRawBufferPointer,
        _ start: Int,
        _ end: Int,
        into output: UnsafeMutablePointer<UInt8>,
        _ form: Form
    ) -> (next: Int, written: Int, isValid: Bool) {
        let raw = UnsafeMutableRawPointer(output)
        var offset = start
        var written = 0
        while offset < end {
            // Clean runs, 16 bytes at a time: stored first, then counted up to the first byte that is not clean.
            if offset &+ 16 <= end {
                let block = source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
                raw.storeBytes(of: block, toByteOffset: written, as: SIMD16<UInt8>.self)
                let clean = cleanBytes(block, form)
                offset &+= clean
                written &+= clean
                if clean == 16 { continue }
            }
            // The end of a text is seldom a multiple of 16.
            if offset &+ 8 <= end, case let word = source.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
                isClean(word, form)
            {
                raw.storeBytes(of: word, toByteOffset: written, as: UInt64.self)
                offset &+= 8
                written &+= 8
                continue
            }
            // The last bytes, together with clean ones before them that were copied unchanged.
            if offset &+ 8 > end, end &- start >= 8,
                case let word = source.loadUnaligned(fromByteOffset: end &- 8, as: UInt64.self), isClean(word, form)
            {
                raw.storeBytes(of: word, toByteOffset: written &- (8 &- (end &- offset)), as: UInt64.self)
                written &+= end &- offset
                offset = end
                continue
            }
            // One character at a time: unclean ones, adjacent ones beyond ASCII, and the last few bytes.
            repeat {
                let byte = source[offset]
                if isClean(byte, form) {
                    output[written] = byte
                    written &+= 1
                    offset &+= 1
                    continue
                }
                let (value, length) = UTF8Scan.scalar(in: source, at: offset)
                if length == 0 {
                    guard form == .log else { return (offset, written, false) }
                    written &+= writeByte(byte, to: output + written)
                    offset &+= 1
                    continue
                }
                if isEscaped(value, form) {
                    written &+=
                        form == .log ? writeLog(value, to: output + written) : writeJSON(value, to: output + written)
                } else {
                    for index in 0..<length { output[written &+ index] = source[offset &+ index] }
                    written &+= length
                }
                offset &+= length
            } while offset < end && (offset &+ 8 > end || source[offset] >= 0x80)
        }
        return (offset, written, true)
    }

    /// Returns whether a byte is a character that needs no escape.
    @inline(__always)
    static func isClean(_ byte: UInt8, _ form: Form) -> Bool {
        byte &- 0x20 < 0x5F && byte != 0x5C && (form == .log || byte != 0x22)
    }

    /// Returns whether eight bytes are clean.
    @inline(__always)
    static func isClean(_ word: UInt64, _ form: Form) -> Bool {
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        // The test is exact for bytes below 0x80. Bytes from 0x80 on are never clean, because `marks` contains their
        // highest bit.
        func less(_ word: UInt64, than limit: UInt64) -> UInt64 { (word &- ones &* limit) & ~word }
        var marks = word | less(word, than: 0x20)
        marks |= less(word ^ ones &* 0x5C, than: 1) | less(word ^ ones &* 0x7F, than: 1)
        if form == .json { marks |= less(word ^ ones &* 0x22, than: 1) }
        return marks & highs == 0
    }

    /// Returns whether the bytes of two blocks are clean.
    @inline(__always)
    static func areClean(_ one: SIMD16<UInt8>, _ other: SIMD16<UInt8>, _ form: Form) -> Bool {
        !(unclean(one, form) .| unclean(other, form)).isAny
    }

    @inline(__always)
    private static func unclean(_ block: SIMD16<UInt8>, _ form: Form) -> SIMDMask<SIMD16<Int8>> {
        let marks = block.unusualMarks .| block.marks(0x5C) .| block.marks(0x7F)
        return form == .json ? marks .| block.marks(0x22) : marks
    }

    /// Returns how many bytes at the beginning of a block are clean.
    @inline(__always)
    static func cleanBytes(_ block: SIMD16<UInt8>, _ form: Form) -> Int {
        unclean(block, form).first
    }

    /// Returns whether a character is replaced by an escape.
    @inline(__always)
    static func isEscaped(_ value: UInt32, _ form: Form) -> Bool {
        if value < 0x7F { return value < 0x20 || value == 0x5C || (form == .json && value == 0x22) }
        if value < 0xA0 { return true }
        if value < 0x2000 { return value == 0x061C }
        switch value {
        case 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB, 0xE0000...0xE007F:
            return true
        default: return false
        }
    }

    private static func writeLog(_ value: UInt32, to output: UnsafeMutablePointer<UInt8>) -> Int {
        output[0] = 0x5C
        switch value {
        case 0x0A: output[1] = 0x6E
        case 0x0D: output[1] = 0x72
        case 0x09: output[1] = 0x74
        case 0x5C: output[1] = 0x5C
        default:
            output[1] = 0x75
            output[2] = 0x7B
            let digits = max(1, (35 - value.leadingZeroBitCount) / 4)
            writeHexadecimal(value, digits: digits, to: output + 3)
            output[3 + digits] = 0x7D
            return 4 + digits
        }
        return 2
    }

    private static func writeJSON(_ value: UInt32, to output: UnsafeMutablePointer<UInt8>) -> Int {
        if value > 0xFFFF {
            let offset = value - 0x1_0000
            return writeJSON(0xD800 + offset >> 10, to: output) + writeJSON(0xDC00 + offset & 0x3FF, to: output + 6)
        }
        output[0] = 0x5C
        switch value {
        case 0x22: output[1] = 0x22
        case 0x5C: output[1] = 0x5C
        case 0x08: output[1] = 0x62
        case 0x09: output[1] = 0x74
        case 0x0A: output[1] = 0x6E
        case 0x0C: output[1] = 0x66
        case 0x0D: output[1] = 0x72
        default:
            output[1] = 0x75
            writeHexadecimal(value, digits: 4, to: output + 2)
            return 6
        }
        return 2
    }

    private static func writeByte(_ byte: UInt8, to output: UnsafeMutablePointer<UInt8>) -> Int {
        output[0] = 0x5C
        output[1] = 0x78
        writeHexadecimal(UInt32(byte), digits: 2, to: output + 2)
        return 4
    }

    private static func writeHexadecimal(_ value: UInt32, digits: Int, to output: UnsafeMutablePointer<UInt8>) {
        for index in 0..<digits {
            let digit = UInt8(truncatingIfNeeded: value >> (4 * UInt32(digits - 1 - index)) & 0xF)
            output[index] = digit < 10 ? 0x30 &+ digit : 0x57 &+ digit
        }
    }
}

extension LineBuffer {
    /// Appends text from the wire in the log form of ``Escape``: safe on a terminal, one line, reversible.
    package mutating func appendEscaped(_ text: RawSpan) {
        text.withUnsafeBytes { _ = append($0, .log) }
    }

    /// Appends text from the wire in the log form of ``Escape``.
    package mutating func appendEscaped(_ text: String) {
        appendEscaped(text.utf8Span.span.bytes)
    }

    /// Returns text from the wire in the log form of ``Escape``.
    package static func escaped(_ text: String) -> String { self.text { $0.appendEscaped(text) } }

    /// Appends text as a JSON string with its quotes, if it is UTF-8.
    ///
    /// - Returns: `false`, with nothing appended, if it is not UTF-8; such bytes are recorded as base64.
    package mutating func appendJSONString(_ text: RawSpan) -> Bool {
        let start = count
        append(0x22)
        guard appendJSONContent(text) else {
            truncate(to: start)
            return false
        }
        append(0x22)
        return true
    }

    /// Appends a part of a JSON string, without quotes; stops and returns `false` at a byte that is not UTF-8.
    mutating func appendJSONContent(_ text: RawSpan) -> Bool {
        text.withUnsafeBytes { append($0, .json) }
    }

    /// Appends text as a JSON string with its quotes.
    package mutating func appendJSONString(_ text: String) {
        // A String is always well-formed.
        _ = appendJSONString(text.utf8Span.span.bytes)
    }

    @inline(__always)
    private mutating func append(_ source: UnsafeRawBufferPointer, _ form: Escape.Form) -> Bool {
        if source.count <= 32, appendClean(source, form) { return true }
        return appendAny(source, form)
    }

    /// Appends a text of up to 32 bytes if all of them are clean, as in nearly all addresses, ids and names.
    ///
    /// The text is copied as two parts that may overlap.
    @inline(__always)
    private mutating func appendClean(_ source: UnsafeRawBufferPointer, _ form: Escape.Form) -> Bool {
        let length = source.count
        if length >= 16 {
            let first = source.loadUnaligned(as: SIMD16<UInt8>.self)
            let last = source.loadUnaligned(fromByteOffset: length &- 16, as: SIMD16<UInt8>.self)
            guard Escape.areClean(first, last, form) else { return false }
            append(first, last, of: length)
            return true
        }
        if length >= 8 {
            let first = source.loadUnaligned(as: UInt64.self)
            let last = source.loadUnaligned(fromByteOffset: length &- 8, as: UInt64.self)
            guard Escape.isClean(first, form), Escape.isClean(last, form) else { return false }
            append(first, last, of: length)
            return true
        }
        if length >= 4 {
            let first = source.loadUnaligned(as: UInt32.self)
            let last = source.loadUnaligned(fromByteOffset: length &- 4, as: UInt32.self)
            guard Escape.isClean(UInt64(first) | UInt64(last) &<< 32, form) else { return false }
            append(first, last, of: length)
            return true
        }
        for byte in source {
            guard Escape.isClean(byte, form) else { return false }
        }
        for byte in source { append(byte) }
        return true
    }

    /// Appends `length` bytes; the two parts are their beginning and end.
    @inline(__always)
    private mutating func append<Part: BitwiseCopyable>(_ first: Part, _ last: Part, of length: Int) {
        append(atMost: length) { output in
            let raw = UnsafeMutableRawPointer(output)
            raw.storeBytes(of: first, as: Part.self)
            raw.storeBytes(of: last, toByteOffset: length &- MemoryLayout<Part>.size, as: Part.self)
            return length
        }
    }

    private mutating func appendAny(_ source: UnsafeRawBufferPointer, _ form: Escape.Form) -> Bool {
        var offset = 0
        var isValid = true
        while offset < source.count, isValid {
            let end = min(source.count, offset + Escape.block)
            append(atMost: Escape.worstCase(end - offset)) { output in
                let result =
                    switch form {
                    case .log: Escape.escape(source, offset, end, into: output, .log)
                    case .json: Escape.escape(source, offset, end, into: output, .json)
                    }
                offset = result.next
                isValid = result.isValid
                return result.written
            }
        }
        return isValid
    }
}

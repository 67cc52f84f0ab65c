/// Base64 (RFC 4648 §4): the standard alphabet, padded, without line breaks.
package enum Base64 {
    /// Encodes `bytes`.
    package static func encode(_ bytes: RawSpan) -> String {
        var line = LineBuffer(capacity: encodedCount(bytes.byteCount))
        line.append(base64: bytes)
        return line.text
    }

    /// Encodes `bytes`.
    package static func encode(_ bytes: [UInt8]) -> String {
        encode(bytes.span.bytes)
    }

    /// Decodes `text`; returns `nil` if it is not exactly the output of an encoder.
    ///
    /// Characters outside the alphabet, missing or misplaced padding, and bits set beyond the last byte are errors.
    /// - Parameter ignoringWhitespace: Whether space, TAB, LF and CR are skipped, as RFC 4648 §3.3 permits
    ///   specifications to require and as some XML senders need.
    package static func decode(_ text: RawSpan, ignoringWhitespace: Bool = false) -> [UInt8]? {
        text.withUnsafeBytes { decode($0, ignoringWhitespace: ignoringWhitespace) }
    }

    /// Decodes `text`, or returns `nil`; see ``decode(_:ignoringWhitespace:)-(RawSpan,_)``.
    package static func decode(_ text: String, ignoringWhitespace: Bool = false) -> [UInt8]? {
        var text = text
        return text.withUTF8 { decode(UnsafeRawBufferPointer($0), ignoringWhitespace: ignoringWhitespace) }
    }

    /// Returns the length of the encoding of `count` bytes.
    static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    /// Returns the character for a value below 64.
    @inline(__always)
    fileprivate static func character(_ value: UInt32) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: value & 63)
        return switch value {
        case 0..<26: value &+ 0x41
        case 26..<52: value &+ (0x61 - 26)
        case 52..<62: value &- (52 - 0x30)
        case 62: 0x2B
        default: 0x2F
        }
    }

    /// Returns the value of a character; `nil` outside the alphabet.
    private static func value(_ character: UInt8) -> UInt32? {
        switch character {
        case 0x41...0x5A: UInt32(character) - 0x41
        case 0x61...0x7A: UInt32(character) - 0x61 + 26
        case 0x30...0x39: UInt32(character) - 0x30 + 52
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }

    private static func decode(_ text: UnsafeRawBufferPointer, ignoringWhitespace: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var group: UInt32 = 0
        var digits = 0
        var padding = 0
        for character in text {
            if let value = value(character) {
                guard padding == 0 else { return nil }
                group = group << 6 | value
                digits += 1
                guard digits == 4 else { continue }
                bytes.append(UInt8(truncatingIfNeeded: group >> 16))
                bytes.append(UInt8(truncatingIfNeeded: group >> 8))
                bytes.append(UInt8(truncatingIfNeeded: group))
                (group, digits) = (0, 0)
            } else if character == 0x3D {
                padding += 1
            } else {
                let isSpace = character == 0x20 || character == 0x09 || character == 0x0A || character == 0x0D
                guard ignoringWhitespace, isSpace else { return nil }
            }
        }
        switch (digits, padding) {
        case (0, 0): break
        case (2, 2) where group & 0xF == 0: bytes.append(UInt8(truncatingIfNeeded: group >> 4))
        case (3, 1) where group & 0x3 == 0:
            bytes.append(UInt8(truncatingIfNeeded: group >> 10))
            bytes.append(UInt8(truncatingIfNeeded: group >> 2))
        default: return nil
        }
        return bytes
    }
}

extension LineBuffer {
    /// Appends `bytes` in base64.
    package mutating func append(base64 bytes: RawSpan) {
        bytes.withUnsafeBytes { source in
            append(atMost: Base64.encodedCount(source.count)) { output in
                var written = 0
                var offset = 0
                while offset + 3 <= source.count {
                    let group =
                        UInt32(source[offset]) << 16 | UInt32(source[offset + 1]) << 8 | UInt32(source[offset + 2])
                    output[written] = Base64.character(group >> 18)
                    output[written + 1] = Base64.character(group >> 12)
                    output[written + 2] = Base64.character(group >> 6)
                    output[written + 3] = Base64.character(group)
                    written += 4
                    offset += 3
                }
                let rest = source.count - offset
                guard rest > 0 else { return written }
                let group = UInt32(source[offset]) << 16 | (rest == 2 ? UInt32(source[offset + 1]) << 8 : 0)
                output[written] = Base64.character(group >> 18)
                output[written + 1] = Base64.character(group >> 12)
                output[written + 2] = rest == 2 ? Base64.character(group >> 6) : 0x3D
                output[written + 3] = 0x3D
                return written + 4
            }
        }
    }
}

/// The reason why a JSON text was refused, and the byte.
package struct JSONError: Error, Sendable, Hashable {
    /// The kind of error; the raw value is a human-readable description.
    package enum Code: String, Sendable, Hashable {
        case unexpectedByte = "an unexpected byte"
        case unexpectedEnd = "it ends too early"
        case trailingData = "more after the end of the value"
        case badNumber = "an invalid number"
        case badEscape = "an invalid escape"
        case controlCharacter = "a control character within a text"
        case notUTF8 = "a text that is not UTF-8"
        case tooDeep = "nested too deep"
    }

    /// The kind of error.
    package let code: Code
    /// The byte, counted from 0.
    package let offset: Int

    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }
}

extension JSONError: CustomStringConvertible {
    /// The error, in one human-readable line: `not JSON at byte 17: a control character within a text`.
    package var description: String {
        let reason = code == .tooDeep ? "nested deeper than \(JSONReader.maximumDepth)" : code.rawValue
        return "not JSON at byte \(offset): \(reason)"
    }
}

/// The contents of JSON strings: checked once during the scan, decoded when the value is read.
enum JSONEscapes {
    /// Finds the closing quote of a text that begins at `start`.
    ///
    /// - Returns: The offset of the quote and whether the text has escapes, or the offset of the fault and the fault.
    static func scan(
        _ input: UnsafeRawBufferPointer,
        from start: Int
    ) -> (end: Int, hasEscapes: Bool, fault: JSONError.Code?) {
        var offset = start
        var hasEscapes = false
        while offset < input.count {
            if offset + 16 <= input.count {
                let block = input.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
                let clean = Escape.cleanBytes(block, .json)
                offset += clean
                if clean == 16 { continue }
            }
            let byte = input[offset]
            switch byte {
            case 0x22: return (offset, hasEscapes, nil)
            case 0x5C:
                hasEscapes = true
                let (length, _, fault) = escape(input, at: offset)
                if let fault { return (offset + length, hasEscapes, fault) }
                offset += length
            case 0..<0x20: return (offset, hasEscapes, .controlCharacter)
            case 0x20..<0x80: offset += 1
            default:
                let length = UTF8Scan.scalar(in: input, at: offset).length
                guard length > 0 else { return (offset, hasEscapes, .notUTF8) }
                offset += length
            }
        }
        return (offset, hasEscapes, .unexpectedEnd)
    }

    /// Appends the value of a text that passed ``scan(_:from:)``.
    static func resolve(_ text: UnsafeRawBufferPointer, into bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + text.count)
        var offset = 0
        while offset < text.count {
            let end = text[offset...].firstIndex(of: 0x5C) ?? text.count
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[offset..<end]))
            guard end < text.count else { return }
            let (length, scalar, _) = escape(text, at: end)
            if scalar.isASCII {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
            offset = end + max(1, length)
        }
    }

    /// Decodes the escape with its backslash at `start`: returns its length and scalar, or the length up to the fault.
    private static func escape(
        _ input: UnsafeRawBufferPointer,
        at start: Int
    ) -> (length: Int, scalar: Unicode.Scalar, fault: JSONError.Code?) {
        guard start + 1 < input.count else { return (1, "\0", .unexpectedEnd) }
        switch input[start + 1] {
        case 0x22: return (2, "\"", nil)
        case 0x5C: return (2, "\\", nil)
        case 0x2F: return (2, "/", nil)
        case 0x62: return (2, "\u{8}", nil)
        case 0x66: return (2, "\u{C}", nil)
        case 0x6E: return (2, "\n", nil)
        case 0x72: return (2, "\r", nil)
        case 0x74: return (2, "\t", nil)
        case 0x75: break
        default: return (1, "\0", .badEscape)
        }
        guard let first = unit(input, at: start + 2) else {
            return start + 6 <= input.count ? (0, "\0", .badEscape) : (input.count - start, "\0", .unexpectedEnd)
        }
        if let scalar = Unicode.Scalar(first) { return (6, scalar, nil) }
        // A unit that is not a scalar is half of a pair: a high half must come first, directly followed by a low half.
        guard first < 0xDC00, start + 7 < input.count, input[start + 6] == 0x5C, input[start + 7] == 0x75,
            let second = unit(input, at: start + 8), second >= 0xDC00, second < 0xE000,
            let scalar = Unicode.Scalar(0x1_0000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { return (0, "\0", .badEscape) }
        return (12, scalar, nil)
    }

    /// Returns the value of the four hexadecimal digits at `start`.
    private static func unit(_ input: UnsafeRawBufferPointer, at start: Int) -> UInt32? {
        guard start + 4 <= input.count else { return nil }
        var value: UInt32 = 0
        for index in start..<start + 4 {
            let digit =
                switch input[index] {
                case 0x30...0x39: input[index] - 0x30
                case 0x41...0x46: input[index] - 0x41 + 10
                case 0x61...0x66: input[index] - 0x61 + 10
                default: UInt8.max
                }
            guard digit < 16 else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}

/// Character classes of XML 1.0 (fifth edition) and strict UTF-8 (RFC 3629), on bytes.
enum XMLCharacters {
    // One bit per ASCII character: a test costs a shift, and needs no table in the cache.
    private static let nameLow: UInt64 = 0x07FF_6000_0000_0000  // - . 0-9 :
    private static let nameHigh: UInt64 = 0x07FF_FFFE_87FF_FFFE  // A-Z _ a-z
    private static let startLow: UInt64 = 0x0400_0000_0000_0000  // :

    /// Returns whether an ASCII byte may occur in a name.
    @inline(__always)
    static func isName(_ byte: UInt8) -> Bool {
        let mask = byte < 64 ? nameLow : nameHigh
        return byte < 128 && (mask &>> UInt64(byte & 63)) & 1 == 1
    }

    /// Returns whether an ASCII byte other than `:` may occur in a name.
    @inline(__always)
    static func isUnprefixedName(_ byte: UInt8) -> Bool {
        let mask = byte < 64 ? nameLow ^ startLow : nameHigh
        return byte < 128 && (mask &>> UInt64(byte & 63)) & 1 == 1
    }

    /// Returns whether an ASCII byte may begin a name.
    @inline(__always)
    static func isNameStart(_ byte: UInt8) -> Bool {
        let mask = byte < 64 ? startLow : nameHigh
        return byte < 128 && (mask &>> UInt64(byte & 63)) & 1 == 1
    }

    /// Returns whether a byte is a space, tab, line feed or carriage return.
    @inline(__always)
    static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    /// Returns whether a scalar may occur in a document (production 2).
    static func isCharacter(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x9, 0xA, 0xD, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
        default: false
        }
    }

    /// Returns whether a scalar beyond ASCII may begin a name (production 4).
    static func isNameStart(scalar: UInt32) -> Bool {
        switch scalar {
        case 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D, 0x37F...0x1FFF, 0x200C...0x200D, 0x2070...0x218F,
            0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF, 0xFDF0...0xFFFD, 0x10000...0xEFFFF:
            true
        default: false
        }
    }

    /// Returns whether a scalar beyond ASCII may occur in a name (production 4a).
    static func isName(scalar: UInt32) -> Bool {
        switch scalar {
        case 0xB7, 0x300...0x36F, 0x203F...0x2040: true
        default: isNameStart(scalar: scalar)
        }
    }

    /// The result of decoding a multi-byte sequence at an offset.
    enum Sequence {
        case scalar(UInt32, length: Int)
        /// The bytes so far are well-formed, more are needed.
        case incomplete
        case invalid
    }

    /// Returns the length of the UTF-8 sequences that begin with a byte beyond ASCII, and the range of their second byte
    /// (RFC 3629 §4); nil if none begins with it.
    @inline(__always)
    static func sequence(beginningWith first: UInt8) -> (length: Int, low: UInt8, high: UInt8)? {
        switch first {
        case 0xC2...0xDF: (2, 0x80, 0xBF)
        case 0xE0: (3, 0xA0, 0xBF)
        case 0xED: (3, 0x80, 0x9F)
        case 0xE1...0xEF: (3, 0x80, 0xBF)
        case 0xF0: (4, 0x90, 0xBF)
        case 0xF1...0xF3: (4, 0x80, 0xBF)
        case 0xF4: (4, 0x80, 0x8F)
        default: nil
        }
    }

    /// Decodes the sequence at `index`, whose first byte is not ASCII. Overlong forms, surrogates and scalars beyond
    /// U+10FFFF are invalid, detected as early as possible.
    static func decode(_ bytes: Span<UInt8>, at index: Int) -> Sequence {
        let first = bytes[index]
        guard let sequence = sequence(beginningWith: first) else { return .invalid }
        let length = sequence.length
        var (low, high) = (sequence.low, sequence.high)
        var scalar = UInt32(first & (0x7F >> UInt8(length)))
        for step in 1..<length {
            guard index + step < bytes.count else { return .incomplete }
            let byte = bytes[index + step]
            guard byte >= low, byte <= high else { return .invalid }
            scalar = scalar << 6 | UInt32(byte & 0x3F)
            (low, high) = (0x80, 0xBF)
        }
        return .scalar(scalar, length: length)
    }
}

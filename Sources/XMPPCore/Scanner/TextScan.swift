/// What stopped a scan over character data.
enum TextStop {
    /// The end of the bytes: everything before the offset is accepted; from there more bytes are needed.
    case end(Int)
    /// A byte the caller has to look at: `<`, a quote, or `]`.
    case special(Int)
    case fault(ScanFault.Code, at: Int)
}

/// Scans over character data: text, attribute values and CDATA differ only in the bytes they stop at.
enum TextScan {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    /// Bits set (the top one of a byte) at least where a byte equals `value`; nothing set means there is none.
    @inline(__always)
    private static func equal(_ word: UInt64, _ value: UInt8) -> UInt64 {
        let mixed = word ^ (ones &* UInt64(value))
        return (mixed &- ones) & ~mixed & highs
    }

    /// The first offset from `index` on at which the byte is none of a to z, or the end: of most names the end.
    @inline(__always)
    static func skipSmallLetters(_ bytes: Span<UInt8>, from index: Int) -> Int {
        var index = index
        let raw = bytes.bytes
        while index &+ 8 <= bytes.count {
            let word = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            // Seven bits a byte, so that no sum carries into the next: the top bit tells "a or beyond", "{ or beyond".
            let low = word & ~highs
            let isLetter = (low &+ ones &* (0x80 &- 0x61)) & ~(low &+ ones &* (0x80 &- 0x7B)) & ~word & highs
            guard isLetter == highs else { return index &+ (~isLetter & highs).trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < bytes.count, bytes[index] &- 0x61 < 26 { index &+= 1 }
        return index
    }

    /// The first offset from `index` on at which the byte is none of plain ASCII text, or the end: a control character,
    /// a byte beyond ASCII, `<`, `&` and the quote stop it.
    @inline(__always)
    static func skipPlain(_ bytes: Span<UInt8>, from index: Int, quote: UInt8) -> Int {
        var index = index
        let raw = bytes.bytes
        while index &+ 8 <= bytes.count {
            let found = stops(unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self), quote)
            if found != 0 { return index &+ found.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        return skipPlainBytes(bytes, from: index, quote: quote)
    }

    private static func skipPlainBytes(_ bytes: Span<UInt8>, from index: Int, quote: UInt8) -> Int {
        var index = index
        while index < bytes.count {
            let byte = bytes[index]
            if byte < 0x20 || byte >= 0x80 || byte == 0x3C || byte == 0x26 || byte == quote { break }
            index &+= 1
        }
        return index
    }

    /// The top bits of the bytes that are beyond ASCII, below a space, `<`, `&` or the quote, the lowest one for certain.
    ///
    /// Where all bytes are ASCII only a difference of 0 borrows, and a borrow can mark only bytes behind a true find.
    @inline(__always)
    private static func stops(_ word: UInt64, _ quote: UInt8) -> UInt64 {
        let unusual = word | (word &- ones &* 0x20)
        let markup = ((word ^ ones &* 0x3C) &- ones) | ((word ^ ones &* 0x26) &- ones)
        return (unusual | markup | ((word ^ ones &* UInt64(quote)) &- ones)) & highs
    }

    /// The same for text, which stops at `]`. `mayHoldKey` becomes true where a `#` or `=` was passed, without which text
    /// can hold no key in a URL (`aesgcm://…#`, `;preauth=`).
    @inline(__always)
    private static func skipPlainText(_ bytes: Span<UInt8>, from index: Int, mayHoldKey: inout Bool) -> Int {
        var index = index
        let raw = bytes.bytes
        while index &+ 8 <= bytes.count {
            let word = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            let found = stops(word, 0x5D)
            let keys = (((word ^ ones &* 0x23) &- ones) | ((word ^ ones &* 0x3D) &- ones)) & highs
            // Only those before the lowest stop were passed.
            if keys & ((found & (0 &- found)) &- 1) != 0 { mayHoldKey = true }
            if found != 0 { return index &+ found.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        let end = skipPlainBytes(bytes, from: index, quote: 0x5D)
        while index < end {
            if bytes[index] == 0x23 || bytes[index] == 0x3D { mayHoldKey = true }
            index &+= 1
        }
        return end
    }

    /// Whether accepted text holds `#` or `=`, without which it can hold no key in a URL (`aesgcm://…#`, `;preauth=`).
    @inline(__always)
    static func mayHoldKey(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        var index = start
        let raw = bytes.bytes
        while index &+ 8 <= end {
            let word = raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            if equal(word, 0x23) | equal(word, 0x3D) != 0 { return true }
            index &+= 8
        }
        while index < end {
            if bytes[index] == 0x23 || bytes[index] == 0x3D { return true }
            index &+= 1
        }
        return false
    }

    /// Whether the value of an attribute may hold a key in a URL.
    ///
    /// Hashes in base64 end with `=`, and namespaces hold `#`: neither alone is worth a closer look. Fewer than 12 bytes
    /// hold no URL with a key in it.
    static func attributeMayHoldKey(_ bytes: Span<UInt8>, _ value: ByteRange) -> Bool {
        let (start, end) = (Int(value.start), Int(value.end))
        guard end &- start >= 12, mayHoldKey(bytes, from: start, to: end) else { return false }
        var last = end
        while last > start, bytes[last &- 1] == 0x3D { last &-= 1 }
        for index in start..<last {
            if bytes[index] == 0x3D { return true }
            if bytes[index] | 0x20 == 0x61, isScheme("aesgcm:", bytes, at: index) { return true }
        }
        return false
    }

    /// Whether `name`, in small letters, stands at `index` in whatever case.
    private static func isScheme(_ name: StaticString, _ bytes: Span<UInt8>, at index: Int) -> Bool {
        guard index &+ name.utf8CodeUnitCount <= bytes.count else { return false }
        for offset in 0..<name.utf8CodeUnitCount where bytes[index &+ offset] | 0x20 != name.utf8Start[offset] {
            return false
        }
        return true
    }

    /// Scans the value of an attribute until its closing quote or something that may not stand there.
    static func scanValue(_ bytes: Span<UInt8>, from start: Int, quote: UInt8) -> TextStop {
        var index = start
        while true {
            index = skipPlain(bytes, from: index, quote: quote)
            guard index < bytes.count else { return .end(index) }
            switch bytes[index] {
            case quote, 0x3C: return .special(index)
            case 0x26:
                switch reference(bytes, at: index) {
                case .special(let next): index = next
                case let other: return other
                }
            default:
                switch skipUnusual(bytes, at: index) {
                case .special(let next): index = next
                case let other: return other
                }
            }
        }
    }

    /// Scans text until `<` or `]`. `mayHoldKey` becomes true where a `#` or `=` was passed.
    @inline(__always)
    static func scanText(_ bytes: Span<UInt8>, from start: Int, mayHoldKey: inout Bool) -> TextStop {
        var index = start
        while true {
            index = skipPlainText(bytes, from: index, mayHoldKey: &mayHoldKey)
            guard index < bytes.count else { return .end(index) }
            switch bytes[index] {
            case 0x3C, 0x5D: return .special(index)
            case 0x26:
                switch reference(bytes, at: index) {
                case .special(let next):
                    // `&#61;` may be the sign itself.
                    if bytes[index &+ 1] == 0x23 { mayHoldKey = true }
                    index = next
                case let other: return other
                }
            default:
                switch skipUnusual(bytes, at: index) {
                case .special(let next): index = next
                case let other: return other
                }
            }
        }
    }

    /// Scans a CDATA section until `]`. `mayHoldKey` becomes true where a `#` or `=` was passed.
    static func scanSection(_ bytes: Span<UInt8>, from start: Int, mayHoldKey: inout Bool) -> TextStop {
        var index = start
        while true {
            index = skipPlainText(bytes, from: index, mayHoldKey: &mayHoldKey)
            guard index < bytes.count else { return .end(index) }
            switch bytes[index] {
            case 0x5D: return .special(index)
            case 0x3C, 0x26: index &+= 1
            default:
                switch skipUnusual(bytes, at: index) {
                case .special(let next): index = next
                case let other: return other
                }
            }
        }
    }

    /// Passes white space that is no space, and characters beyond ASCII, as many as there are in a row; the byte at
    /// `start` is a control character or beyond ASCII.
    private static func skipUnusual(_ bytes: Span<UInt8>, at start: Int) -> TextStop {
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            if byte >= 0xC2, byte <= 0xDF, index &+ 1 < bytes.count, bytes[index &+ 1] & 0xC0 == 0x80 {
                // Two bytes make U+0080 to U+07FF, all of them characters.
                index &+= 2
            } else if byte >= 0x80 {
                switch XMLCharacters.decode(bytes, at: index) {
                case .scalar(let scalar, let length):
                    guard XMLCharacters.isCharacter(scalar) else { return .fault(.invalidCharacter, at: index) }
                    index &+= length
                case .incomplete: return .end(index)
                case .invalid: return .fault(.invalidUTF8, at: index)
                }
            } else if byte >= 0x20 {
                break
            } else {
                guard XMLCharacters.isWhitespace(byte) else { return .fault(.invalidCharacter, at: index) }
                index &+= 1
            }
        }
        return .special(index)
    }

    /// Bytes of the longest reference followed: `&#x0010FFFF;` with room for zeros in front, which nobody needs.
    static let longestReference = 32

    /// Checks the reference whose `&` is at `index`; `special` gives the offset behind its `;`.
    static func reference(_ bytes: Span<UInt8>, at index: Int) -> TextStop {
        var end = index &+ 1
        while end < bytes.count, bytes[end] != 0x3B {
            let byte = bytes[end]
            guard XMLCharacters.isName(byte) || byte == 0x23, end &- index < longestReference else {
                return .fault(.invalidReference, at: index)
            }
            end &+= 1
        }
        guard end < bytes.count else { return .end(index) }
        let body = bytes.extracting((index &+ 1)..<end)
        guard let first = body.isEmpty ? nil : body[0] else { return .fault(.invalidReference, at: index) }
        guard first == 0x23 else {
            return Entity(body) != nil ? .special(end &+ 1) : .fault(.entityReference, at: index)
        }
        guard let scalar = characterReference(body) else { return .fault(.invalidReference, at: index) }
        guard XMLCharacters.isCharacter(scalar) else { return .fault(.invalidCharacter, at: index) }
        return .special(end &+ 1)
    }

    /// The scalar of `#65` or `#x41`; nil when malformed. Values too large for a scalar saturate.
    static func characterReference(_ body: Span<UInt8>) -> UInt32? {
        let isHexadecimal = body.count > 1 && body[1] == 0x78
        let digits = body.extracting(min(isHexadecimal ? 2 : 1, body.count)..<body.count)
        guard !digits.isEmpty else { return nil }
        var value: UInt32 = 0
        for index in digits.indices {
            let digit: UInt32
            switch digits[index] {
            case let byte where byte >= 0x30 && byte <= 0x39: digit = UInt32(byte &- 0x30)
            case let byte where isHexadecimal && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66:
                digit = UInt32((byte | 0x20) &- 0x61 &+ 10)
            default: return nil
            }
            value = min(value &* (isHexadecimal ? 16 : 10) &+ digit, 0x110000)
        }
        return value
    }

    /// One of the five entities XML declares itself.
    enum Entity {
        case ampersand, lessThan, greaterThan, apostrophe, quote

        init?(_ name: Span<UInt8>) {
            if name.equals("amp") {
                self = .ampersand
            } else if name.equals("lt") {
                self = .lessThan
            } else if name.equals("gt") {
                self = .greaterThan
            } else if name.equals("apos") {
                self = .apostrophe
            } else if name.equals("quot") {
                self = .quote
            } else {
                return nil
            }
        }

        /// The character it stands for.
        var byte: UInt8 {
            switch self {
            case .ampersand: 0x26
            case .lessThan: 0x3C
            case .greaterThan: 0x3E
            case .apostrophe: 0x27
            case .quote: 0x22
            }
        }
    }
}

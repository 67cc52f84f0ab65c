/// References in text and attribute values: `&amp;`, `&#65;`, `&#x41;`.
enum XMLReference {
    /// Bytes of the longest reference followed: `&#x0010FFFF;` with room for zeros in front, which nobody needs.
    static let longest = 32

    /// Checks the reference whose `&` is at `index`; `special` gives the offset behind its `;`.
    static func check(_ bytes: Span<UInt8>, at index: Int) -> TextStop {
        var end = index &+ 1
        while end < bytes.count, bytes[end] != 0x3B {
            let byte = bytes[end]
            guard XMLCharacters.isName(byte) || byte == 0x23, end &- index < longest else {
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
        guard let scalar = character(body) else { return .fault(.invalidReference, at: index) }
        guard XMLCharacters.isCharacter(scalar) else { return .fault(.invalidCharacter, at: index) }
        return .special(end &+ 1)
    }

    /// The scalar of `#65` or `#x41`; nil when malformed. Values too large for a scalar saturate.
    static func character(_ body: Span<UInt8>) -> UInt32? {
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

/// References in text and attribute values: `&amp;`, `&#65;`, `&#x41;`.
enum XMLReference {
    /// Maximum number of bytes of a reference: `&#x0010FFFF;` with space for leading zeros.
    static let maximumLength = 32

    /// Checks the reference whose `&` is at `index`; `special` contains the offset after its `;`.
    static func check(_ bytes: Span<UInt8>, at index: Int) -> TextStop {
        var end = index &+ 1
        while end < bytes.count, bytes[end] != 0x3B {
            let byte = bytes[end]
            guard XMLCharacters.isName(byte) || byte == 0x23, end &- index < maximumLength else {
                return .fault(.invalidReference, at: index)
            }
            end &+= 1
        }
        guard end < bytes.count else { return .end(index) }
        let body = bytes.extracting((index &+ 1)..<end)
        guard let first = body.isEmpty ? nil : body[0] else { return .fault(.invalidReference, at: index) }
        guard first == 0x23 else {
            return entity(body) != nil ? .special(end &+ 1) : .fault(.entityReference, at: index)
        }
        guard let scalar = character(body) else { return .fault(.invalidReference, at: index) }
        guard XMLCharacters.isCharacter(scalar) else { return .fault(.invalidCharacter, at: index) }
        return .special(end &+ 1)
    }

    /// Returns the scalar of `#65` or `#x41`; nil if malformed. Values too large for a scalar saturate.
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

    /// Returns the character of one of the five predefined entities of XML.
    static func entity(_ name: Span<UInt8>) -> UInt8? {
        switch name.count {
        case 3 where name.equals("amp"): 0x26
        case 2 where name.equals("lt"): 0x3C
        case 2 where name.equals("gt"): 0x3E
        case 4 where name.equals("apos"): 0x27
        case 4 where name.equals("quot"): 0x22
        default: nil
        }
    }
}

/// Decodes attribute values and character data.
package enum AttributeValue {
    /// Appends the decoded attribute value `raw` (XML 1.0 §3.3.3): references replaced, each tab and each line end as a
    /// space.
    ///
    /// `raw` must have passed the scanner; an invalid reference is copied unchanged.
    package static func decode(_ raw: Span<UInt8>, into output: inout [UInt8]) {
        decode(raw, lineEnd: 0x20, into: &output)
    }

    /// Appends the decoded character data `raw` (XML 1.0 §2.11): references replaced, each line end as a line feed.
    package static func decodeText(_ raw: Span<UInt8>, into output: inout [UInt8]) {
        decode(raw, lineEnd: 0x0A, into: &output)
    }

    private static func decode(_ raw: Span<UInt8>, lineEnd: UInt8, into output: inout [UInt8]) {
        var index = 0
        while index < raw.count {
            let byte = raw[index]
            switch byte {
            case 0x26:
                if let end = appendReference(raw, at: index, to: &output) {
                    index = end
                    continue
                }
                output.append(byte)
            case 0x0A: output.append(lineEnd)
            case 0x0D:
                // CR LF is one line end; the LF represents both.
                if index &+ 1 == raw.count || raw[index &+ 1] != 0x0A { output.append(lineEnd) }
            case 0x09: output.append(lineEnd == 0x20 ? 0x20 : byte)
            default:
                // Nearly all bytes need no decoding: append the longest possible run.
                var end = index &+ 1
                while end < raw.count, raw[end] >= 0x20, raw[end] != 0x26 { end &+= 1 }
                output.append(raw.extracting(index..<end))
                index = end
                continue
            }
            index &+= 1
        }
    }

    /// Appends the character of the reference at `index`; returns the offset after its `;`, or nil if it is not a
    /// reference.
    private static func appendReference(_ raw: Span<UInt8>, at index: Int, to output: inout [UInt8]) -> Int? {
        guard case .special(let end) = XMLReference.check(raw, at: index) else { return nil }
        let body = raw.extracting((index &+ 1)..<(end &- 1))
        if let byte = XMLReference.entity(body) {
            output.append(byte)
            return end
        }
        guard let value = XMLReference.character(body), let scalar = Unicode.Scalar(value) else { return nil }
        output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        return end
    }
}

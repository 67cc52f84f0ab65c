/// What an attribute value or character data means, as against the bytes it is written with.
public enum AttributeValue {
    /// Appends what the attribute value `raw` means (XML 1.0 §3.3.3): references replaced, each tab and each line end a
    /// space.
    ///
    /// `raw` has passed the scanner; what is not a reference is taken as it stands.
    public static func decode(_ raw: Span<UInt8>, into output: inout [UInt8]) {
        decode(raw, lineEnd: 0x20, into: &output)
    }

    /// Appends what the character data `raw` means (XML 1.0 §2.11): references replaced, each line end a line feed.
    public static func decodeText(_ raw: Span<UInt8>, into output: inout [UInt8]) {
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
                // CR LF is one line end; the LF stands for both.
                if index &+ 1 == raw.count || raw[index &+ 1] != 0x0A { output.append(lineEnd) }
            case 0x09: output.append(lineEnd == 0x20 ? 0x20 : byte)
            default:
                // Nearly all bytes are what they stand for: they go in as long a run as there is.
                var end = index &+ 1
                while end < raw.count, raw[end] >= 0x20, raw[end] != 0x26 { end &+= 1 }
                output.append(raw.extracting(index..<end))
                index = end
                continue
            }
            index &+= 1
        }
    }

    /// Appends the character that the reference at `index` stands for; the offset behind its `;`, nil where it is none.
    private static func appendReference(_ raw: Span<UInt8>, at index: Int, to output: inout [UInt8]) -> Int? {
        guard case .special(let end) = XMLReference.check(raw, at: index) else { return nil }
        let body = raw.extracting((index &+ 1)..<(end &- 1))
        if let entity = XMLReference.Entity(body) {
            output.append(entity.byte)
            return end
        }
        guard let value = XMLReference.character(body), let scalar = Unicode.Scalar(value) else { return nil }
        output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        return end
    }
}

/// The form in which ids are stored: a UUID in its usual form (RFC 9562 §4, in lower case) as 16 bytes, any other id as text.
enum CompactID {
    /// Appends the bytes of a UUID; returns false for another id.
    static func append(_ id: String, to bytes: inout [UInt8]) -> Bool {
        guard id.utf8.count == 36 else { return false }
        let start = bytes.count
        var position = 0
        var half: UInt8?
        for character in id.utf8 {
            defer { position += 1 }
            if position == 8 || position == 13 || position == 18 || position == 23 {
                if character == 0x2D { continue }
            } else if let digit = digit(character) {
                if let high = half { bytes.append(high << 4 | digit) }
                half = half == nil ? digit : nil
                continue
            }
            bytes.removeSubrange(start...)
            return false
        }
        return true
    }

    /// Returns the UUID with these bytes; nil if they are not 16.
    static func text(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.count == 16 else { return nil }
        return String(unsafeUninitializedCapacity: 36) { text in
            var end = 0
            for (index, byte) in bytes.enumerated() {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    text[end] = 0x2D
                    end += 1
                }
                text[end] = letter(byte >> 4)
                text[end + 1] = letter(byte & 15)
                end += 2
            }
            return end
        }
    }

    private static func letter(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x57 + digit }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}

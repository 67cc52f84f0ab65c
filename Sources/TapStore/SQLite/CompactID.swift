/// The form in which ids are stored: a UUID in its usual form (RFC 9562 §4, in lower case) as 16 bytes, any other id as text.
enum CompactID {
    /// Returns the bytes of a UUID; nil for another id.
    static func bytes(_ id: String) -> [UInt8]? {
        let text = Array(id.utf8)
        guard text.count == 36 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        var index = 0
        while index < 36 {
            if [8, 13, 18, 23].contains(index) {
                guard text[index] == 0x2D else { return nil }
                index += 1
            }
            guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
            index += 2
        }
        return bytes
    }

    /// Returns the UUID with these bytes; nil if they are not 16.
    static func text(_ bytes: [UInt8]) -> String? {
        guard bytes.count == 16 else { return nil }
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(0x2D) }
            for digit in [byte >> 4, byte & 15] { text.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}

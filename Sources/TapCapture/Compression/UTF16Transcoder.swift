internal import XMPPCore

/// Converts UTF-16 text with a byte order mark, as in logs of Windows programs, to UTF-8. An unpaired surrogate
/// becomes U+FFFD.
struct UTF16Transcoder {
    private let isBigEndian: Bool
    /// The bytes of an incomplete character at the end of the last input.
    private var rest: [UInt8] = []

    /// Creates a transcoder for a text with these first bytes; nil if they are not a UTF-16 byte order mark.
    init?(beginning: Span<UInt8>) {
        guard beginning.count >= 2 else { return nil }
        switch (beginning[0], beginning[1]) {
        case (0xFE, 0xFF): isBigEndian = true
        case (0xFF, 0xFE): isBigEndian = false
        default: return nil
        }
    }

    /// Returns the characters that are complete after these bytes, as UTF-8.
    mutating func transcode(_ bytes: Span<UInt8>) -> [UInt8] {
        var all = rest
        all.append(bytes)
        var units: [UInt16] = []
        units.reserveCapacity(all.count / 2)
        for index in stride(from: 0, to: all.count - 1, by: 2) {
            let (one, two) = (UInt16(all[index]), UInt16(all[index + 1]))
            units.append(isBigEndian ? one << 8 | two : two << 8 | one)
        }
        rest = all.count % 2 == 1 ? [all[all.count - 1]] : []
        if let last = units.last, UTF16.isLeadSurrogate(last) {
            units.removeLast()
            rest = Array(all[(units.count * 2)...])
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }
}

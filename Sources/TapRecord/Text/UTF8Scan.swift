/// Strict UTF-8 (Unicode 15, table 3-7): no overlong form, no surrogate, nothing above U+10FFFF.
package enum UTF8Scan {
    /// Returns whether `bytes` are well-formed UTF-8 and can be a JSON string; other bytes are written as base64.
    package static func isValid(_ bytes: RawSpan) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                if offset + 8 <= bytes.count,
                    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
                {
                    offset += 8
                    continue
                }
                let length = scalar(in: bytes, at: offset).length
                guard length > 0 else { return false }
                offset += length
            }
            return true
        }
    }

    /// Returns the scalar at `offset` and its length in bytes; length 0 if the bytes are not UTF-8.
    ///
    /// `offset` must be below `bytes.count`.
    @inline(__always)
    static func scalar(in bytes: UnsafeRawBufferPointer, at offset: Int) -> (value: UInt32, length: Int) {
        let first = UInt32(bytes[offset])
        if first < 0x80 { return (first, 1) }
        let left = bytes.count - offset
        guard first >= 0xC2, left >= 2 else { return (0, 0) }
        let second = UInt32(bytes[offset + 1])
        guard second & 0xC0 == 0x80 else { return (0, 0) }
        if first < 0xE0 { return ((first & 0x1F) << 6 | second & 0x3F, 2) }
        guard left >= 3 else { return (0, 0) }
        let third = UInt32(bytes[offset + 2])
        guard third & 0xC0 == 0x80 else { return (0, 0) }
        if first < 0xF0 {
            let value = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
            return value >= 0x800 && value & 0xF800 != 0xD800 ? (value, 3) : (0, 0)
        }
        guard first < 0xF5, left >= 4 else { return (0, 0) }
        let fourth = UInt32(bytes[offset + 3])
        guard fourth & 0xC0 == 0x80 else { return (0, 0) }
        let value = (first & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F
        return value >= 0x1_0000 && value <= 0x10_FFFF ? (value, 4) : (0, 0)
    }
}

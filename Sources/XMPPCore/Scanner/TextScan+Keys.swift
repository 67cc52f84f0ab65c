// Keys in URLs: text and values that may hold one are looked at more closely.
extension TextScan {
    /// Bits set (the top one of a byte) at least where a byte equals `value`; nothing set means there is none.
    @inline(__always)
    private static func equal(_ word: UInt64, _ value: UInt8) -> UInt64 {
        let mixed = word ^ (ones &* UInt64(value))
        return (mixed &- ones) & ~mixed & highs
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
}

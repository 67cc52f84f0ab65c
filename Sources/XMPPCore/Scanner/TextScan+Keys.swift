// Keys in URLs: text and values that may hold one are looked at more closely.
extension TextScan {
    /// Bits set (the top one of a byte) at least where a byte equals `value`; nothing set means there is none.
    @inline(__always)
    private static func equal(_ word: UInt64, _ value: UInt8) -> UInt64 {
        let mixed = word ^ (ones &* UInt64(value))
        return (mixed &- ones) & ~mixed & highs
    }

    /// Whether one of these bytes of text is a sign of a key in a URL: `#` or `=`, as in `aesgcm://…#` and `;preauth=`, or
    /// the second slash of `//`, behind which a password or a query may stand.
    ///
    /// The first slash may stand in front of `range`, where an earlier read ended.
    static func holdsKeySign(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range {
            switch bytes[index] {
            case 0x23, 0x3D: return true
            case 0x2F: if index > 0, bytes[index &- 1] == 0x2F { return true }
            default: continue
            }
        }
        return false
    }

    /// Whether the value of an attribute may hold a key in a URL.
    ///
    /// Hashes in base64 end with `=`, and namespaces hold `#` and `//`: none of them alone is worth a closer look. A URL
    /// with a query or a password has `?` or `@` beside its `//`, an invitation has its path. Fewer than 8 bytes hold
    /// no URL with a key in it.
    static func attributeMayHoldKey(_ bytes: Span<UInt8>, _ value: ByteRange) -> Bool {
        let (start, end) = (Int(value.start), Int(value.end))
        guard end &- start >= 8 else { return false }
        let raw = bytes.bytes
        var (keys, marks, pairs): (UInt64, UInt64, UInt64) = (0, 0, 0)
        var slashBefore: UInt64 = 0
        var index = start
        while true {
            // The last word overlaps the one before it; the slash carried into it can only cost a closer look.
            index = min(index, end &- 8)
            let word = raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            keys |= equal(word, 0x23) | equal(word, 0x3D)
            marks |= equal(word, 0x3F) | equal(word, 0x40)
            let slashes = equal(word, 0x2F)
            pairs |= slashes & (slashes << 8 | slashBefore)
            slashBefore = slashes >> 56
            if index == end &- 8 { break }
            index &+= 8
        }
        if pairs != 0, marks != 0 || mayLeadToInvitation(bytes, start..<end) { return true }
        guard keys != 0 else { return false }
        var last = end
        while last > start, bytes[last &- 1] == 0x3D { last &-= 1 }
        for index in start..<last {
            if bytes[index] == 0x3D { return true }
            if bytes[index] | 0x20 == 0x61, holds("aesgcm:", bytes, at: index) { return true }
        }
        return false
    }

    /// Whether behind `//` a path may lead to an invitation, whose token is a part of it: `/invit` in whatever case, or a
    /// `%`, which may stand for any letter of it.
    private static func mayLeadToInvitation(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var isInURL = false
        for index in range {
            switch bytes[index] {
            case 0x25: if isInURL { return true }
            case 0x2F:
                if isInURL, holds("invit", bytes, at: index &+ 1) { return true }
                if index > range.lowerBound, bytes[index &- 1] == 0x2F { isInURL = true }
            default: continue
            }
        }
        return false
    }

    /// Whether `name`, in small letters, stands at `index` in whatever case.
    static func holds(_ name: StaticString, _ bytes: Span<UInt8>, at index: Int) -> Bool {
        guard index &+ name.utf8CodeUnitCount <= bytes.count else { return false }
        for offset in 0..<name.utf8CodeUnitCount where bytes[index &+ offset] | 0x20 != name.utf8Start[offset] {
            return false
        }
        return true
    }
}

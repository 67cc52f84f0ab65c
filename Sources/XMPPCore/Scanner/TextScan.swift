/// The reason why a scan over character data stopped.
enum TextStop {
    /// The end of the bytes: everything before the offset is accepted; after it more bytes are needed.
    case end(Int)
    /// A byte that the caller must examine: `<`, a quote, or `]`.
    case special(Int)
    case fault(ScanFault.Code, at: Int)
}

/// Scans character data: text, attribute values and CDATA differ only in the bytes that stop the scan.
enum TextScan {
    /// Returns how many lower-case letters a to z begin at `index`, up to 16. The caller must ensure that 16 bytes
    /// exist.
    @inline(__always)
    static func countSmallLetters(_ bytes: Span<UInt8>, from index: Int) -> Int {
        unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            .otherThanSmallLetters.first
    }

    /// Like ``Swift/Span/skipPlain(from:quote:)`` for text, but stops at `]`. Sets `mayHoldKey` to true if it passes a
    /// sign of a key in a URL: see ``holdsKeySign(_:_:)``.
    @inline(__always)
    private static func skipPlainText(_ bytes: Span<UInt8>, from index: Int, mayHoldKey: inout Bool) -> Int {
        var index = index
        let raw = bytes.bytes
        while index &+ 16 <= bytes.count {
            let block = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            let stops = block.textStops(0x5D).bits
            // Only signs before the first stop count: this mask has exactly the bits below the lowest bit of `stops`.
            let passed = ~stops & (stops &- 1)
            let end = index &+ min(16, stops.trailingZeroBitCount)
            if !mayHoldKey, (block.marks(0x23) .| block.marks(0x3D) .| block.marks(0x2F)).bits & passed != 0 {
                mayHoldKey = holdsKeySign(bytes, index..<end)
            }
            if end < index &+ 16 { return end }
            index = end
        }
        let end = bytes.skipPlainBytes(from: index, quote: 0x5D)
        if !mayHoldKey, holdsKeySign(bytes, index..<end) { mayHoldKey = true }
        return end
    }

    /// Scans the value of an attribute until its closing quote or an invalid byte.
    static func scanValue(_ bytes: Span<UInt8>, from start: Int, quote: UInt8) -> TextStop {
        var index = start
        while true {
            index = bytes.skipPlain(from: index, quote: quote)
            guard index < bytes.count else { return .end(index) }
            switch bytes[index] {
            case quote, 0x3C: return .special(index)
            case 0x26:
                switch XMLReference.check(bytes, at: index) {
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

    /// Scans text until `<` or `]`, in a CDATA section until `]`. Sets `mayHoldKey` to true if it passes a sign of a
    /// key in a URL.
    @inline(__always)
    static func scanText(_ bytes: Span<UInt8>, from start: Int, isSection: Bool, mayHoldKey: inout Bool) -> TextStop {
        var index = start
        while true {
            index = skipPlainText(bytes, from: index, mayHoldKey: &mayHoldKey)
            guard index < bytes.count else { return .end(index) }
            switch bytes[index] {
            case 0x3C where isSection, 0x26 where isSection: index &+= 1
            case 0x3C, 0x5D: return .special(index)
            case 0x26:
                switch XMLReference.check(bytes, at: index) {
                case .special(let next):
                    // `&#61;` may encode the sign itself.
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

    /// Skips consecutive white space other than spaces, and characters beyond ASCII; the byte at `start` is a control
    /// character or beyond ASCII.
    private static func skipUnusual(_ bytes: Span<UInt8>, at start: Int) -> TextStop {
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            if byte >= 0xC2, byte <= 0xDF, index &+ 1 < bytes.count, bytes[index &+ 1] & 0xC0 == 0x80 {
                // Two bytes encode U+0080 to U+07FF, all of them characters.
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
}

// A quick search for signs of keys and tokens in URLs. Texts and values with such signs are then checked more closely.
extension TextScan {
    /// Returns whether one of these bytes of text is a sign of a key in a URL: `#` or `=`, as in `aesgcm://…#` and
    /// `;preauth=`, or the second slash of `://`, after which a password or a query may follow. Base64 contains `//`,
    /// but no colon.
    ///
    /// The bytes before the second slash may precede `range`, if an earlier read ended there.
    private static func holdsKeySign(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range {
            switch bytes[index] {
            case 0x23, 0x3D: return true
            case 0x2F: if index > 1, bytes[index &- 1] == 0x2F, bytes[index &- 2] == 0x3A { return true }
            default: continue
            }
        }
        return false
    }

    /// The signs that require a closer check of a value.
    private struct KeySigns {
        /// Whether `#` or `=` occurs.
        var hasKey = false
        /// Whether `?` or `@` occurs.
        var hasMark = false
        /// Whether two consecutive slashes occur.
        var hasPair = false
        /// Whether `%`, or an `i` after a slash, occurs: possibly an invitation.
        var hasPath = false
    }

    /// Returns the signs among the bytes from `start` to `end`; `end` must be 16 or more.
    private static func keySigns(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> KeySigns {
        var signs = KeySigns()
        _ = findBlock(bytes, start, end) { block, pairs, behind in
            if pairs &>> behind != 0 { signs.hasPair = true }
            if (block.marks(0x23) .| block.marks(0x3D)).bits &>> behind != 0 { signs.hasKey = true }
            if (block.marks(0x3F) .| block.marks(0x40)).bits &>> behind != 0 { signs.hasMark = true }
            let letters = (block | SIMD16<UInt8>(repeating: 0x20)).marks(0x69).bits
            // The slash before the first letter may be in the previous block, so assume one.
            if letters & (block.marks(0x2F).bits &<< 1 | 1) | block.marks(0x25).bits != 0 { signs.hasPath = true }
            return false
        }
        return signs
    }

    /// Returns whether the bytes from `start` on contain one of the signs that require a closer check of a value: `#`,
    /// `=`, or two consecutive slashes. `end` must be 16 or more.
    @inline(__always)
    private static func holdsKeyOrPair(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        findBlock(bytes, start, end) { block, pairs, behind in
            (pairs | (block.marks(0x23) .| block.marks(0x3D)).bits) &>> behind != 0
        }
    }

    /// Calls `isFound` with the bytes from `start` to `end`, 16 at a time, until it returns true; returns whether it
    /// did. `end` must be 16 or more, and not beyond the last byte.
    ///
    /// - Parameter isFound: Receives a block; a bit for each second of two consecutive slashes; and how many bytes at
    ///   its beginning to skip, since the last block may begin inside the previous one, or before `start`.
    @inline(__always)
    private static func findBlock(
        _ bytes: Span<UInt8>,
        _ start: Int,
        _ end: Int,
        _ isFound: (_ block: SIMD16<UInt8>, _ pairs: UInt32, _ behind: UInt32) -> Bool
    ) -> Bool {
        let raw = bytes.bytes
        var slashBefore: UInt32 = 0
        var index = start
        while index < end {
            let place = min(index, end &- 16)
            let block = unsafe raw.unsafeLoadUnaligned(fromByteOffset: place, as: SIMD16<UInt8>.self)
            let slashes = block.marks(0x2F).bits
            let pairs = slashes & (slashes &<< 1 | slashBefore)
            if isFound(block, pairs, UInt32(truncatingIfNeeded: index &- place)) { return true }
            slashBefore = slashes &>> 15
            index = place &+ 16
        }
        return false
    }

    /// Returns whether the value of an attribute may contain a key in a URL.
    ///
    /// Hashes in base64 end with `=`, and namespaces contain `#` and `//`: none of these signs alone requires a closer
    /// check. A URL with a query or a password has `?` or `@` besides its `//`, an invitation has its path. Fewer than
    /// 8 bytes cannot contain a URL with a key.
    static func attributeMayHoldKey(_ bytes: Span<UInt8>, _ value: ByteRange) -> Bool {
        let start = Int(value.start)
        var end = Int(value.end)
        guard end &- start >= 8 else { return false }
        while end > start, bytes[end &- 1] == 0x3D { end &-= 1 }
        // If a value ends within the first 15 bytes of its item, no block of 16 bytes can end with the value.
        if end >= 16, !holdsKeyOrPair(bytes, start, end) { return false }
        let signs = end >= 16 ? keySigns(bytes, start, end) : keySignsByByte(bytes, start, end)
        if signs.hasPair, signs.hasMark || signs.hasPath && mayLeadToInvitation(bytes, start..<end) { return true }
        guard signs.hasKey else { return false }
        for index in start..<end {
            if bytes[index] == 0x3D { return true }
            if bytes[index] | 0x20 == 0x61, holds("aesgcm:", bytes, at: index) { return true }
        }
        return false
    }

    /// Returns the signs of a value byte by byte, for values so near to the beginning of the item that no block of 16
    /// bytes can end with them.
    private static func keySignsByByte(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> KeySigns {
        var signs = KeySigns(hasPath: true)
        for index in start..<end {
            switch bytes[index] {
            case 0x23, 0x3D: signs.hasKey = true
            case 0x3F, 0x40: signs.hasMark = true
            case 0x2F: if index > start, bytes[index &- 1] == 0x2F { signs.hasPair = true }
            default: break
            }
        }
        return signs
    }

    /// Returns whether a path after `//` may lead to an invitation, which contains a token: `/invit` in any case, or a
    /// `%`, which may encode any letter of it.
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

    /// Returns whether `name`, which is in lower case, is at `index`, ignoring case.
    static func holds(_ name: StaticString, _ bytes: Span<UInt8>, at index: Int) -> Bool {
        guard index &+ name.utf8CodeUnitCount <= bytes.count else { return false }
        for offset in 0..<name.utf8CodeUnitCount where bytes[index &+ offset] | 0x20 != name.utf8Start[offset] {
            return false
        }
        return true
    }
}

#if arch(x86_64)
    public import _Builtin_intrinsics.intel
#endif

/// A range of bytes inside an item: offsets from the item's first byte, `end` excluded.
///
/// The range does not contain the bytes; the owner of the item can read them.
public struct ByteRange: Sendable, Hashable, BitwiseCopyable {
    /// Offset of the first byte.
    @usableFromInline package var start: Int32
    /// Offset after the last byte.
    @usableFromInline package var end: Int32

    /// Creates the range from `start` up to `end`.
    @inlinable
    package init(_ start: Int, _ end: Int) {
        self.start = Int32(truncatingIfNeeded: start)
        self.end = Int32(truncatingIfNeeded: end)
    }

    /// The empty range at the beginning.
    package static let empty = ByteRange(0, 0)

    /// Number of bytes.
    @inlinable package var count: Int { Int(end) - Int(start) }
    /// Whether the range is empty.
    @inlinable package var isEmpty: Bool { end <= start }
    /// The range as a range of integers; empty if `end` is before `start`.
    @inlinable package var range: Range<Int> { Int(start)..<Int(max(start, end)) }
}

extension SIMD16<UInt8> {
    /// Marks the bytes equal to `byte`. Uses `<`, which Swift compiles to two instructions, because it compiles `==` of
    /// these vectors to a loop.
    @inlinable
    @inline(__always)
    package func marks(_ byte: UInt8) -> SIMDMask<SIMD16<Int8>> {
        (self ^ SIMD16<UInt8>(repeating: byte)) .< SIMD16<UInt8>(repeating: 1)
    }

    /// The marks of the control characters below the space, and of the bytes beyond ASCII.
    @inlinable
    @inline(__always)
    package var unusualMarks: SIMDMask<SIMD16<Int8>> {
        // As signed numbers, the bytes beyond ASCII are also below a space.
        unsafeBitCast(self, to: SIMD16<Int8>.self) .< SIMD16<Int8>(repeating: 0x20)
    }
}

extension SIMD16<UInt8> {
    /// Returns the marks of the bytes that are beyond ASCII or below a space, and of `<`, `&` and the quote.
    @inline(__always)
    func textStops(_ quote: UInt8) -> SIMDMask<SIMD16<Int8>> {
        unusualMarks .| marks(0x3C) .| marks(0x26) .| marks(quote)
    }

    /// The marks of the bytes that are not lower-case letters a to z.
    @inline(__always)
    var otherThanSmallLetters: SIMDMask<SIMD16<Int8>> {
        (self &- SIMD16<UInt8>(repeating: 0x61)) .> SIMD16<UInt8>(repeating: 25)
    }
}

extension Span where Element == UInt8 {
    /// Returns the first offset from `index` on at which the byte is not plain ASCII text, or the end. A control
    /// character, a byte beyond ASCII, `<`, `&` and the quote are not plain.
    @inline(__always)
    func skipPlain(from index: Int, quote: UInt8) -> Int {
        var index = index
        let raw = bytes
        while index &+ 16 <= count {
            let plain = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self).textStops(quote)
                .first
            index &+= plain
            if plain < 16 { return index }
        }
        return skipPlainBytes(from: index, quote: quote)
    }

    /// Returns the same offset as ``skipPlain(from:quote:)``, but examines each byte separately.
    func skipPlainBytes(from index: Int, quote: UInt8) -> Int {
        var index = index
        while index < count {
            let byte = self[index]
            if byte < 0x20 || byte >= 0x80 || byte == 0x3C || byte == 0x26 || byte == quote { break }
            index &+= 1
        }
        return index
    }
}

extension SIMDMask<SIMD16<Int8>> {
    /// A bit for each marked byte, the lowest for the first byte.
    @inlinable
    @inline(__always)
    package var bits: UInt32 {
        #if arch(x86_64)
            UInt32(truncatingIfNeeded: _mm_movemask_epi8(unsafeBitCast(self, to: SIMD2<Int64>.self)))
        #else
            portableBits
        #endif
    }

    /// ``bits`` without a special instruction.
    @inlinable
    @inline(__always)
    package var portableBits: UInt32 {
        let words = unsafeBitCast(self, to: SIMD2<UInt64>.self)
        // The factor moves the lowest bit of each byte into the top byte, in order.
        func bits(_ word: UInt64) -> UInt64 {
            ((word.littleEndian & 0x0101_0101_0101_0101) &* 0x0102_0408_1020_4080) &>> 56
        }
        return UInt32(truncatingIfNeeded: bits(words[0]) | bits(words[1]) &<< 8)
    }

    /// Whether a byte is marked.
    @inlinable
    @inline(__always)
    package var isAny: Bool { bits != 0 }

    /// The index of the first marked byte; 16 if none is marked.
    @inlinable
    @inline(__always)
    package var first: Int { (bits | 1 &<< 16).trailingZeroBitCount }
}

extension Span where Element == UInt8 {
    /// Returns whether these bytes equal the text.
    @inlinable
    @inline(__always)
    package func equals(_ text: StaticString) -> Bool {
        guard text.utf8CodeUnitCount == count, text.hasPointerRepresentation else { return false }
        let other = UnsafeRawPointer(text.utf8Start)
        return withUnsafeBytes { sameBytes($0.baseAddress, other, $0.count) }
    }

    /// Returns whether these bytes equal `text`, ignoring the case of ASCII letters.
    @inlinable
    @inline(__always)
    package func equalsIgnoringCase(_ text: StaticString) -> Bool {
        guard text.utf8CodeUnitCount == count, text.hasPointerRepresentation else { return false }
        return isSameIgnoringCase(text)
    }

    /// Returns whether these bytes equal `text`, which has the same length, ignoring the case of ASCII letters.
    @usableFromInline
    func isSameIgnoringCase(_ text: StaticString) -> Bool {
        for index in 0..<count {
            let (one, other) = (self[index], text.utf8Start[index])
            guard one != other else { continue }
            guard one ^ other == 0x20, (one | 0x20) &- 0x61 < 26 else { return false }
        }
        return true
    }

    /// Returns whether these bytes equal `other`.
    @inlinable
    @inline(__always)
    package func equals(_ other: borrowing Span<UInt8>) -> Bool {
        guard other.count == count else { return false }
        return withUnsafeBytes { one in
            other.withUnsafeBytes { sameBytes(one.baseAddress, $0.baseAddress, one.count) }
        }
    }

    /// Returns the number of bytes that are equal to `byte`, a space, or a control character below the space.
    package func countSpaces(and byte: UInt8) -> Int {
        let raw = bytes
        var counted = 0
        var index = 0
        while index &+ 16 <= count {
            // Each of the sixteen sums can count 255 blocks.
            let end = Swift.min(count &- 16, index &+ 254 &* 16)
            var sums = SIMD16<UInt8>()
            while index <= end {
                let block = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
                // The bytes are halved, so that those beyond ASCII are not negative.
                let isLow = unsafeBitCast(block &>> 1, to: SIMD16<Int8>.self) .< SIMD16<Int8>(repeating: 0x10)
                let marks = isLow .| block.marks(0x20) .| block.marks(byte)
                sums &+= unsafeBitCast(marks, to: SIMD16<UInt8>.self) & SIMD16<UInt8>(repeating: 1)
                index &+= 16
            }
            for place in 0..<16 { counted &+= Int(sums[place]) }
        }
        while index < count {
            if self[index] <= 0x20 || self[index] == byte { counted &+= 1 }
            index &+= 1
        }
        return counted
    }

    /// Returns the first offset of `byte` from `start` on.
    package func firstIndex(of byte: UInt8, from start: Int = 0) -> Int? {
        let raw = bytes
        var index = Swift.max(0, start)
        while index &+ 16 <= count {
            let place = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self).marks(byte).first
            if place < 16 { return index &+ place }
            index &+= 16
        }
        if count >= 16, index < count {
            // The last block overlaps the previous one.
            let last = count &- 16
            let block = unsafe raw.unsafeLoadUnaligned(fromByteOffset: last, as: SIMD16<UInt8>.self)
            let found = block.marks(byte).bits &>> UInt32(truncatingIfNeeded: index &- last)
            return found == 0 ? nil : index &+ found.trailingZeroBitCount
        }
        while index < count {
            if self[index] == byte { return index }
            index &+= 1
        }
        return nil
    }

    /// Returns whether `other` occurs in these bytes; always true for an empty `other`.
    package func contains(_ other: borrowing Span<UInt8>) -> Bool {
        guard other.count > 0 else { return true }
        guard other.count <= count else { return false }
        for start in 0...(count - other.count)
        where self[start] == other[0] && extracting(start..<(start + other.count)).equals(other) {
            return true
        }
        return false
    }

    /// Returns the bytes of `range`; a part of the range beyond the end is omitted.
    @inlinable
    @inline(__always)
    @_lifetime(copy self)
    package func slice(_ range: ByteRange) -> Span<UInt8> {
        let start = Swift.max(0, Swift.min(Int(range.start), count))
        let end = Swift.max(start, Swift.min(Int(range.end), count))
        return extracting(start..<end)
    }

    /// Decodes the bytes as UTF-8; invalid sequences become U+FFFD.
    package func string() -> String {
        withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}

extension [UInt8] {
    /// Appends the bytes of `span` in one copy.
    @inlinable
    @inline(__always)
    package mutating func append(_ span: borrowing Span<UInt8>) {
        span.withUnsafeBufferPointer { append(contentsOf: $0) }
    }

    mutating func append(_ literal: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }
}

/// Returns whether `count` bytes at both addresses are equal. Inlined, because names and URIs are short: a call would
/// cost more than the comparison.
@usableFromInline
@inline(__always)
func sameBytes(_ one: UnsafeRawPointer?, _ other: UnsafeRawPointer?, _ count: Int) -> Bool {
    guard count > 0, let one, let other else { return count <= 0 }
    // Compares words of 8 bytes; the last word may overlap the previous one.
    guard count >= 8 else { return sameShortBytes(one, other, count) }
    var index = 0
    while index < count &- 8 {
        if word(one, index) != word(other, index) { return false }
        index &+= 8
    }
    return word(one, count &- 8) == word(other, count &- 8)
}

@inline(__always)
private func word(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
}

@inline(__always)
private func sameShortBytes(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int) -> Bool {
    if count >= 4 {
        return one.loadUnaligned(as: UInt32.self) == other.loadUnaligned(as: UInt32.self)
            && one.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
                == other.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
    }
    for index in 0..<count
    where one.load(fromByteOffset: index, as: UInt8.self)
        != other.load(fromByteOffset: index, as: UInt8.self)
    {
        return false
    }
    return true
}

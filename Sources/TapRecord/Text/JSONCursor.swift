internal import XMPPCore

/// Writes JSON to preallocated memory without checking for space at each byte: for output per stanza.
///
/// The caller reserves ``fixed`` bytes for names, numbers and punctuation, and ``room(for:)`` for each text.
struct JSONCursor {
    /// Maximum number of bytes of a record's fields without their texts.
    static let fixed = 1024

    private var next: UnsafeMutablePointer<UInt8>

    /// Creates a cursor at the beginning of the memory.
    init(_ start: UnsafeMutablePointer<UInt8>) { next = start }

    /// Returns the maximum number of bytes of a text of `count` bytes, with its quotes.
    static func room(for count: Int) -> Int { Escape.worstCase(count) + 2 }

    /// Returns the number of bytes written since the beginning of the memory.
    func count(from start: UnsafeMutablePointer<UInt8>) -> Int { next - start }

    @inline(__always)
    mutating func byte(_ byte: UInt8) {
        next[0] = byte
        next += 1
    }

    /// Writes a literal unchanged, such as the name of a field with its punctuation.
    @inline(__always)
    mutating func literal(_ text: StaticString) {
        // The compiler knows the length of a literal, and reduces the copy to a few instructions.
        next.update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        next += text.utf8CodeUnitCount
    }

    mutating func bytes(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            UnsafeMutableRawPointer(next).copyMemory(from: start, byteCount: source.count)
        }
        next += bytes.byteCount
    }

    // MARK: - Numbers

    mutating func decimal(_ value: UInt64) {
        guard value >= 10 else { return byte(0x30 &+ UInt8(truncatingIfNeeded: value)) }
        digits(value, value.decimalDigits)
    }

    mutating func decimal(_ value: Int) {
        if value < 0 { byte(0x2D) }
        decimal(UInt64(value.magnitude))
    }

    /// Writes nanoseconds as decimal seconds, without trailing zeros; see ``LineBuffer/append(seconds:)``.
    mutating func seconds(_ nanoseconds: Int64) {
        if nanoseconds < 0 { byte(0x2D) }
        let (seconds, fraction) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        decimal(seconds)
        guard fraction > 0 else { return }
        byte(0x2E)
        digits(fraction, 9)
        while next[-1] == 0x30 { next -= 1 }
    }

    /// Writes a time in the format of ``TimestampWriter``; `second` is its beginning up to the second.
    mutating func time(second: RawSpan, nanoseconds: UInt64) {
        bytes(second)
        byte(0x2E)
        digits(nanoseconds, 9)
        byte(0x5A)
    }

    /// Writes the last `count` digits of a number.
    @inline(__always)
    mutating func digits(_ value: UInt64, _ count: Int) {
        var rest = value
        var place = count
        while place > 1 {
            let (quotient, pair) = rest.quotientAndRemainder(dividingBy: 100)
            rest = quotient
            place &-= 2
            let tens = pair / 10
            next[place] = 0x30 &+ UInt8(truncatingIfNeeded: tens)
            next[place &+ 1] = 0x30 &+ UInt8(truncatingIfNeeded: pair &- tens &* 10)
        }
        if place == 1 { next[0] = 0x30 &+ UInt8(truncatingIfNeeded: rest % 10) }
        next += count
    }

    // MARK: - Texts

    /// Writes a text from the wire with its quotes. Bytes that are not UTF-8 are replaced by U+FFFD.
    mutating func string(_ text: Span<UInt8>) {
        byte(0x22)
        if !content(text) { _ = content(text.string().utf8Span.span) }
        byte(0x22)
    }

    /// Writes a string with its quotes.
    mutating func string(_ text: String) {
        byte(0x22)
        _ = content(text.utf8Span.span)
        byte(0x22)
    }

    /// Writes a text from the wire without quotes; if it is not UTF-8, writes nothing and returns false.
    mutating func content(_ text: Span<UInt8>) -> Bool {
        text.withUnsafeBytes { source in
            if copyClean(source) { return true }
            let (_, written, isValid) = Escape.escape(source, 0, source.count, into: next, .json)
            if isValid { next += written }
            return isValid
        }
    }

    /// Returns to an earlier position.
    mutating func rewind(to earlier: JSONCursor) { next = earlier.next }

    /// Copies a text in which no byte needs an escape, as in nearly every text; returns false if another byte occurs.
    @inline(__always)
    private mutating func copyClean(_ source: UnsafeRawBufferPointer) -> Bool {
        let count = source.count
        let target = UnsafeMutableRawPointer(next)
        guard count >= 16 else { return copyShort(source, target) }
        // Copies blocks of 16 bytes; the last block overlaps the previous one.
        var offset = 0
        while true {
            let block = source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
            guard Escape.cleanBytes(block, .json) == 16 else { return false }
            target.storeBytes(of: block, toByteOffset: offset, as: SIMD16<UInt8>.self)
            guard offset < count &- 16 else { break }
            offset = min(offset &+ 16, count &- 16)
        }
        next += count
        return true
    }

    @inline(__always)
    private mutating func copyShort(_ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawPointer) -> Bool {
        let count = source.count
        switch count {
        case 8...:
            let words = SIMD2(
                source.loadUnaligned(as: UInt64.self),
                source.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            )
            guard Self.isClean(words) else { return false }
            target.storeBytes(of: words[0], as: UInt64.self)
            target.storeBytes(of: words[1], toByteOffset: count &- 8, as: UInt64.self)
        case 4...:
            let first = source.loadUnaligned(as: UInt32.self)
            let last = source.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
            let both = UInt64(first) | UInt64(last) << 32
            guard Self.isClean(SIMD2(both, both)) else { return false }
            target.storeBytes(of: first, as: UInt32.self)
            target.storeBytes(of: last, toByteOffset: count &- 4, as: UInt32.self)
        default:
            for index in 0..<count {
                let byte = source[index]
                guard byte &- 0x20 < 0x5F, byte != 0x22, byte != 0x5C else { return false }
                next[index] = byte
            }
        }
        next += count
        return true
    }

    @inline(__always)
    private static func isClean(_ words: SIMD2<UInt64>) -> Bool {
        Escape.cleanBytes(unsafeBitCast(words, to: SIMD16<UInt8>.self), .json) == 16
    }
}

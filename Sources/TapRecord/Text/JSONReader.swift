/// A strict pull parser for one JSON text (RFC 8259) over borrowed bytes.
///
/// ``next()`` returns one token at a time without allocating; texts and numbers are slices of the input, which
/// ``string(_:)``, ``integer(_:)`` and similar methods convert to values on request. Strict means: UTF-8 without a byte
/// order mark, no control character in a text, no lone surrogate, no leading zero, no extra comma, nothing after the
/// value. Nesting is limited by ``maximumDepth`` and uses no call stack. Duplicate names within one object are not
/// detected. After an error the reader must not be used.
package struct JSONReader: ~Escapable {
    /// A token of the input.
    package enum Token: Sendable, Hashable {
        /// `{`
        case objectStart
        /// `}`
        case objectEnd
        /// `[`
        case arrayStart
        /// `]`
        case arrayEnd
        /// The name of a field; its value follows.
        case name(Slice)
        case text(Slice)
        case number(Slice)
        /// `true` or `false`.
        case bool(Bool)
        /// `null`.
        case null
        /// The end of the input, after one whole value.
        case end
    }

    /// A text (without its quotes) or a number in the input.
    package struct Slice: Sendable, Hashable {
        /// Byte offsets in the input.
        package let range: Range<Int>
        /// Whether the text contains escapes, so that its bytes differ from its value.
        let hasEscapes: Bool
    }

    /// Maximum nesting of objects and arrays.
    package static let maximumDepth = 64

    private enum Expectation {
        case value, valueOrArrayEnd, name, nameOrObjectEnd, commaOrEnd, end
    }

    private let input: RawSpan
    /// The offset up to which the input has been read.
    package private(set) var offset = 0
    private var expectation = Expectation.value
    /// Number of open objects and arrays.
    package private(set) var depth = 0
    /// One bit for each open level, the innermost lowest: set for an object.
    private var isObject: UInt64 = 0

    /// Creates a reader at the beginning of `input`, which contains one JSON text.
    @_lifetime(copy input)
    package init(_ input: RawSpan) {
        self.input = input
    }

    /// Returns the next token.
    package mutating func next() throws(JSONError) -> Token {
        while true {
            skipSpace()
            guard offset < input.byteCount else {
                guard expectation == .end else { throw JSONError(.unexpectedEnd, at: offset) }
                return .end
            }
            let byte = self.byte(offset)
            switch expectation {
            case .end: throw JSONError(.trailingData, at: offset)
            case .commaOrEnd:
                if byte == 0x2C {
                    offset += 1
                    expectation = isInObject ? .name : .value
                    continue
                }
                return try close(byte)
            case .nameOrObjectEnd where byte == 0x7D, .valueOrArrayEnd where byte == 0x5D: return try close(byte)
            case .name, .nameOrObjectEnd:
                guard byte == 0x22 else { throw JSONError(.unexpectedByte, at: offset) }
                let name = try scanText()
                skipSpace()
                guard offset < input.byteCount else { throw JSONError(.unexpectedEnd, at: offset) }
                guard self.byte(offset) == 0x3A else { throw JSONError(.unexpectedByte, at: offset) }
                offset += 1
                expectation = .value
                return .name(name)
            case .value, .valueOrArrayEnd: return try value(byte)
            }
        }
    }

    /// Skips the next value of any kind, and returns its range.
    package mutating func skipValue() throws(JSONError) -> Range<Int> {
        skipSpace()
        let start = offset
        let outside = depth
        repeat { _ = try next() } while depth > outside
        return start..<offset
    }

    /// Skips the rest of the innermost open object or array.
    package mutating func skipRest() throws(JSONError) {
        let outside = depth - 1
        while depth > outside { _ = try next() }
    }

    private var isInObject: Bool { isObject & 1 == 1 }

    @inline(__always)
    private func byte(_ offset: Int) -> UInt8 {
        input.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    private mutating func skipSpace() {
        while offset < input.byteCount {
            switch byte(offset) {
            case 0x20, 0x09, 0x0A, 0x0D: offset += 1
            default: return
            }
        }
    }

    private mutating func value(_ byte: UInt8) throws(JSONError) -> Token {
        switch byte {
        case 0x7B:
            try open(object: true)
            return .objectStart
        case 0x5B:
            try open(object: false)
            return .arrayStart
        case 0x22: return .text(try finish(scanText()))
        case 0x2D, 0x30...0x39: return .number(try finish(scanNumber()))
        case 0x74: return try literal("true", .bool(true))
        case 0x66: return try literal("false", .bool(false))
        case 0x6E: return try literal("null", .null)
        default: throw JSONError(.unexpectedByte, at: offset)
        }
    }

    private mutating func open(object: Bool) throws(JSONError) {
        guard depth < Self.maximumDepth else { throw JSONError(.tooDeep, at: offset) }
        depth += 1
        isObject = isObject << 1 | (object ? 1 : 0)
        offset += 1
        expectation = object ? .nameOrObjectEnd : .valueOrArrayEnd
    }

    private mutating func close(_ byte: UInt8) throws(JSONError) -> Token {
        guard byte == (isInObject ? 0x7D : 0x5D) else { throw JSONError(.unexpectedByte, at: offset) }
        let token = isInObject ? Token.objectEnd : .arrayEnd
        depth -= 1
        isObject >>= 1
        offset += 1
        expectation = depth == 0 ? .end : .commaOrEnd
        return token
    }

    private mutating func finish(_ slice: Slice) -> Slice {
        expectation = depth == 0 ? .end : .commaOrEnd
        return slice
    }

    private mutating func literal(_ word: StaticString, _ token: Token) throws(JSONError) -> Token {
        for index in 0..<word.utf8CodeUnitCount {
            guard offset + index < input.byteCount else { throw JSONError(.unexpectedEnd, at: input.byteCount) }
            guard byte(offset + index) == word.utf8Start[index] else {
                throw JSONError(.unexpectedByte, at: offset + index)
            }
        }
        offset += word.utf8CodeUnitCount
        expectation = depth == 0 ? .end : .commaOrEnd
        return token
    }

    private mutating func scanText() throws(JSONError) -> Slice {
        let start = offset + 1
        let (end, hasEscapes, fault) = input.withUnsafeBytes { JSONEscapes.scan($0, from: start) }
        if let fault { throw JSONError(fault, at: end) }
        offset = end + 1
        return Slice(range: start..<end, hasEscapes: hasEscapes)
    }

    /// Scans a number: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    private mutating func scanNumber() throws(JSONError) -> Slice {
        let start = offset
        if byte(offset) == 0x2D { offset += 1 }
        if offset < input.byteCount, byte(offset) == 0x30 {
            offset += 1
        } else {
            try scanDigits()
        }
        if offset < input.byteCount, byte(offset) == 0x2E {
            offset += 1
            try scanDigits()
        }
        if offset < input.byteCount, byte(offset) | 0x20 == 0x65 {
            offset += 1
            if offset < input.byteCount, byte(offset) == 0x2B || byte(offset) == 0x2D { offset += 1 }
            try scanDigits()
        }
        // Reports `01` as an invalid number. Otherwise the error at the next byte would be a missing comma or, at the
        // top level, trailing data, which is less specific.
        if offset < input.byteCount, byte(offset) >= 0x30, byte(offset) <= 0x39 {
            throw JSONError(.badNumber, at: offset)
        }
        return Slice(range: start..<offset, hasEscapes: false)
    }

    private mutating func scanDigits() throws(JSONError) {
        let start = offset
        while offset < input.byteCount, byte(offset) >= 0x30, byte(offset) <= 0x39 { offset += 1 }
        if offset == start {
            throw JSONError(offset < input.byteCount ? .badNumber : .unexpectedEnd, at: offset)
        }
    }
}

// The values of texts and numbers.
extension JSONReader {
    /// Returns whether a text is exactly `literal`, which is ASCII.
    package func matches(_ slice: Slice, _ literal: StaticString) -> Bool {
        if slice.hasEscapes { return string(slice) == literal.description }
        guard literal.utf8CodeUnitCount == slice.range.count else { return false }
        for index in 0..<slice.range.count where byte(slice.range.lowerBound + index) != literal.utf8Start[index] {
            return false
        }
        return true
    }

    /// Returns whether a text without escapes is exactly `other`.
    package func matches(_ slice: Slice, _ other: [UInt8]) -> Bool {
        guard !slice.hasEscapes, other.count == slice.range.count else { return false }
        for index in other.indices where byte(slice.range.lowerBound + index) != other[index] { return false }
        return true
    }

    /// Returns the time in a text, if it is in the RFC 3339 form of ``Timestamp/init(rfc3339:)-(RawSpan)``.
    package func timestamp(_ slice: Slice) -> Timestamp? {
        slice.hasEscapes ? Timestamp(rfc3339: string(slice)) : Timestamp(rfc3339: input.extracting(slice.range))
    }

    /// Returns the value of a text.
    package func string(_ slice: Slice) -> String {
        guard slice.hasEscapes else {
            return input.extracting(slice.range).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return String(decoding: bytes(slice), as: UTF8.self)
    }

    /// Returns the value of a text, as UTF-8.
    package func bytes(_ slice: Slice) -> [UInt8] {
        var bytes: [UInt8] = []
        append(slice, to: &bytes)
        return bytes
    }

    /// Appends the value of a text, as UTF-8.
    package func append(_ slice: Slice, to bytes: inout [UInt8]) {
        input.extracting(slice.range).withUnsafeBytes { text in
            if slice.hasEscapes {
                JSONEscapes.resolve(text, into: &bytes)
            } else {
                bytes.append(contentsOf: text)
            }
        }
    }

    /// Returns the unmodified bytes of a part of the input.
    package func raw(_ range: Range<Int>) -> [UInt8] {
        input.extracting(range).withUnsafeBytes { Array($0) }
    }

    /// Returns the value of an integer; `nil` for a number with fraction or exponent, or if it is out of range.
    package func integer(_ slice: Slice) -> Int64? {
        guard byte(slice.range.lowerBound) == 0x2D else { return unsigned(slice).flatMap { Int64(exactly: $0) } }
        // Parsed as text, because the smallest number has no positive counterpart.
        return Int64(string(slice))
    }

    /// Returns the value of an unsigned integer; `nil` for a number with sign, fraction or exponent, or if it is out of
    /// range.
    package func unsigned(_ slice: Slice) -> UInt64? {
        var value: UInt64 = 0
        for index in slice.range {
            let digit = byte(index) &- 0x30
            guard digit < 10 else { return nil }
            let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(UInt64(digit))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }

    /// Returns the exact value in nanoseconds of a number of seconds; digits after the ninth are cut.
    ///
    /// `nil` if it is out of range.
    package func nanoseconds(_ slice: Slice) -> Int64? {
        var rest = slice.range
        let isNegative = byte(rest.lowerBound) == 0x2D
        if isNegative { rest = rest.lowerBound + 1..<rest.upperBound }
        var value: Int64 = 0
        var fractionDigits: Int?
        for index in rest {
            let byte = byte(index)
            if byte == 0x2E {
                fractionDigits = 0
                continue
            }
            guard byte >= 0x30, byte <= 0x39 else { return scaledNanoseconds(rest).map { isNegative ? -$0 : $0 } }
            if let digits = fractionDigits {
                guard digits < 9 else { continue }
                fractionDigits = digits + 1
            }
            guard let next = value.shifted(by: Int64(byte - 0x30)) else { return nil }
            value = next
        }
        for _ in (fractionDigits ?? 0)..<9 {
            guard let next = value.shifted(by: 0) else { return nil }
            value = next
        }
        return isNegative ? -value : value
    }

    /// Returns the value in nanoseconds of an unsigned number of seconds with an exponent, which jq and other programs
    /// write for small numbers; nil if it is out of range.
    private func scaledNanoseconds(_ range: Range<Int>) -> Int64? {
        guard let mark = range.first(where: { byte($0) | 0x20 == 0x65 }), mark + 1 < range.upperBound else {
            return nil
        }
        let sign = byte(mark + 1)
        var exponent = 0
        for index in (sign == 0x2B || sign == 0x2D ? mark + 2 : mark + 1)..<range.upperBound {
            exponent = min(exponent * 10 + Int(byte(index)) - 0x30, 1000)
        }
        let point = (range.lowerBound..<mark).first { byte($0) == 0x2E } ?? mark
        // The power of ten of the next digit, in nanoseconds.
        var power = point - range.lowerBound + 8 + (sign == 0x2D ? -exponent : exponent)
        var value: Int64 = 0
        for index in range.lowerBound..<mark where index != point {
            if power >= 0 {
                guard let next = value.shifted(by: Int64(byte(index)) - 0x30) else { return nil }
                value = next
            }
            power -= 1
        }
        while power >= 0, value != 0 {
            guard let next = value.shifted(by: 0) else { return nil }
            value = next
            power -= 1
        }
        return value
    }
}

extension Int64 {
    /// Returns this number with one more decimal digit; nil if it is out of range.
    fileprivate func shifted(by digit: Int64) -> Int64? {
        let (tens, overflow) = multipliedReportingOverflow(by: 10)
        let (sum, carry) = tens.addingReportingOverflow(digit)
        return overflow || carry ? nil : sum
    }
}

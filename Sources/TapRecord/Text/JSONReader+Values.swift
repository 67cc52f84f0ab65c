// What texts and numbers mean, for who wants to know.
extension JSONReader {
    /// Whether a text is exactly `literal`, which is ASCII.
    public func matches(_ slice: Slice, _ literal: StaticString) -> Bool {
        if slice.hasEscapes { return string(slice) == literal.description }
        guard literal.utf8CodeUnitCount == slice.range.count else { return false }
        for index in 0..<slice.range.count where byte(slice.range.lowerBound + index) != literal.utf8Start[index] {
            return false
        }
        return true
    }

    /// Whether a text without escapes is exactly `other`.
    public func matches(_ slice: Slice, _ other: [UInt8]) -> Bool {
        guard !slice.hasEscapes, other.count == slice.range.count else { return false }
        for index in other.indices where byte(slice.range.lowerBound + index) != other[index] { return false }
        return true
    }

    /// The time that a text says, if it is RFC 3339 as ``Timestamp/init(rfc3339:)-(RawSpan)`` reads it.
    public func timestamp(_ slice: Slice) -> Timestamp? {
        slice.hasEscapes ? Timestamp(rfc3339: string(slice)) : Timestamp(rfc3339: input.extracting(slice.range))
    }

    /// The value of a text.
    public func string(_ slice: Slice) -> String {
        guard slice.hasEscapes else {
            return input.extracting(slice.range).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return String(decoding: bytes(slice), as: UTF8.self)
    }

    /// The value of a text, as UTF-8.
    public func bytes(_ slice: Slice) -> [UInt8] {
        var bytes: [UInt8] = []
        append(slice, to: &bytes)
        return bytes
    }

    /// Appends the value of a text, as UTF-8.
    public func append(_ slice: Slice, to bytes: inout [UInt8]) {
        input.extracting(slice.range).withUnsafeBytes { text in
            if slice.hasEscapes {
                JSONEscapes.resolve(text, into: &bytes)
            } else {
                bytes.append(contentsOf: text)
            }
        }
    }

    /// The bytes of any part of the input as they stand there.
    public func raw(_ range: Range<Int>) -> [UInt8] {
        input.extracting(range).withUnsafeBytes { Array($0) }
    }

    /// The value of a number without fraction and exponent, or `nil` where it has one or is out of range.
    public func integer(_ slice: Slice) -> Int64? {
        guard byte(slice.range.lowerBound) == 0x2D else { return unsigned(slice).flatMap { Int64(exactly: $0) } }
        // Through a text, since the least number has no positive twin.
        return Int64(string(slice))
    }

    /// The value of a number without sign, fraction and exponent, or `nil` where it has one or is out of range.
    public func unsigned(_ slice: Slice) -> UInt64? {
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

    /// The value of a number, rounded to the nearest that can be held; infinite where it is out of range.
    public func double(_ slice: Slice) -> Double {
        Double(string(slice)) ?? .infinity
    }

    /// The value of a number that means seconds, exactly, in nanoseconds; digits beyond the ninth are cut.
    ///
    /// `nil` where it is written with an exponent or out of range.
    public func nanoseconds(_ slice: Slice) -> Int64? {
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
            guard byte >= 0x30, byte <= 0x39 else { return nil }
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
}

extension Int64 {
    /// This number with one more decimal digit, unless that is too large.
    fileprivate func shifted(by digit: Int64) -> Int64? {
        let (tens, overflow) = multipliedReportingOverflow(by: 10)
        let (sum, carry) = tens.addingReportingOverflow(digit)
        return overflow || carry ? nil : sum
    }
}

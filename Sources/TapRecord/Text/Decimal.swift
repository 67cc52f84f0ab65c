/// Numbers in decimal, without a string in between.
extension LineBuffer {
    /// Appends an integer.
    public mutating func append(decimal value: Int) {
        if value < 0 { append(0x2D) }
        append(magnitude: UInt64(value.magnitude))
    }

    /// Appends an integer.
    public mutating func append(decimal value: Int64) {
        if value < 0 { append(0x2D) }
        append(magnitude: value.magnitude)
    }

    /// Appends an integer.
    public mutating func append(decimal value: UInt64) {
        append(magnitude: value)
    }

    /// Appends an integer with leading zeros up to `width` digits; a longer one is not cut.
    public mutating func append(decimal value: UInt64, width: Int) {
        append(magnitude: value, width: width)
    }

    /// Appends nanoseconds as decimal seconds, without trailing zeros: `12.000250000` as `12.00025`.
    ///
    /// ``JSONReader/nanoseconds(_:)`` parses it exactly, unlike a binary fraction.
    public mutating func append(seconds nanoseconds: Int64) {
        if nanoseconds < 0 { append(0x2D) }
        let (seconds, fraction) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        append(magnitude: seconds)
        guard fraction > 0 else { return }
        append(0x2E)
        var width = 9
        var digits = fraction
        while digits.isMultiple(of: 10) {
            digits /= 10
            width -= 1
        }
        append(decimal: digits, width: width)
    }

    @inline(__always)
    private mutating func append(magnitude: UInt64, width: Int = 1) {
        // Most numbers have at most three digits.
        guard width == 1, magnitude < 1000 else { return append(long: magnitude, width: width) }
        let number = UInt32(truncatingIfNeeded: magnitude)
        append(atMost: 3) { start in
            let tens = number / 10
            let last = 0x30 &+ UInt8(truncatingIfNeeded: number &- tens &* 10)
            guard tens > 0 else {
                start[0] = last
                return 1
            }
            let hundreds = tens / 10
            let middle = 0x30 &+ UInt8(truncatingIfNeeded: tens &- hundreds &* 10)
            guard hundreds > 0 else {
                start[0] = middle
                start[1] = last
                return 2
            }
            start[0] = 0x30 &+ UInt8(truncatingIfNeeded: hundreds)
            start[1] = middle
            start[2] = last
            return 3
        }
    }

    private mutating func append(long magnitude: UInt64, width: Int) {
        let count = max(magnitude.decimalDigits, width)
        append(atMost: count) { start in
            var rest = magnitude
            for position in (0..<count).reversed() {
                let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
                start[position] = 0x30 &+ UInt8(truncatingIfNeeded: digit)
                rest = quotient
            }
            return count
        }
    }
}

extension UInt64 {
    /// The number of decimal digits; 1 for zero.
    var decimalDigits: Int {
        var (count, rest) = (1, self / 10)
        while rest > 0 { (count, rest) = (count + 1, rest / 10) }
        return count
    }
}

/// Appends numbers in decimal without creating strings.
extension LineBuffer {
    /// Appends an integer.
    package mutating func append(decimal value: Int) {
        write(atMost: 20) { $0.decimal(value) }
    }

    /// Appends an integer.
    package mutating func append(decimal value: Int64) {
        append(decimal: Int(value))
    }

    /// Appends an integer.
    package mutating func append(decimal value: UInt64) {
        write(atMost: 20) { $0.decimal(value) }
    }

    /// Appends an integer with leading zeros up to `width` digits; a longer number is not cut.
    package mutating func append(decimal value: UInt64, width: Int) {
        let count = max(value.decimalDigits, width)
        write(atMost: count) { $0.digits(value, count) }
    }

    /// Appends nanoseconds as decimal seconds, without trailing zeros: `12.000250000` as `12.00025`.
    ///
    /// ``JSONReader/nanoseconds(_:)`` parses it exactly, unlike a binary fraction.
    package mutating func append(seconds nanoseconds: Int64) {
        write(atMost: 32) { $0.seconds(nanoseconds) }
    }

    @inline(__always)
    private mutating func write(atMost capacity: Int, _ body: (inout JSONCursor) -> Void) {
        append(atMost: capacity) { start in
            var cursor = JSONCursor(start)
            body(&cursor)
            return cursor.count(from: start)
        }
    }
}

extension UInt64 {
    /// The number of decimal digits; 1 for zero.
    var decimalDigits: Int {
        var count = 1
        var power: UInt64 = 10
        while count < 20, self >= power {
            power = power &* 10
            count += 1
        }
        return count
    }
}

/// Sizes and durations for people, in the text log: one decimal below ten, whole numbers from ten.
extension LineBuffer {
    /// Appends a size in bytes: `0 B`, `345 B`, `1.2 kB`, `38 MB`; decimal units (1 kB is 1000 B).
    package mutating func append(size bytes: UInt64) {
        if bytes < 1000 {
            append(decimal: bytes)
            return append(" B")
        }
        let units: [StaticString] = [" kB", " MB", " GB", " TB", " PB", " EB"]
        var scale: UInt64 = 1000
        var unit = 0
        // 999,500 rounds to 1000 kB, which is 1.0 MB.
        while unit + 1 < units.count, Self.rounded(bytes, by: scale) >= 1000 {
            scale *= 1000
            unit += 1
        }
        append(bytes, in: scale)
        append(units[unit])
    }

    /// Appends a duration: `420 µs`, `38 ms`, `1.2 s`, `2 min 5 s`, `3 h 12 min`.
    ///
    /// A negative duration, possible only after a clock was set back, is written with its sign.
    package mutating func append(duration nanoseconds: Int64) {
        if nanoseconds < 0 { append(0x2D) }
        let value = nanoseconds.magnitude
        if value == 0 {
            append("0 s")
        } else if Self.rounded(value, by: 1000) < 1000 {
            append(value, in: 1000)
            append(" µs")
        } else if Self.rounded(value, by: 1_000_000) < 1000 {
            append(value, in: 1_000_000)
            append(" ms")
        } else {
            let seconds = Self.rounded(value, by: 1_000_000_000)
            if seconds < 120 {
                append(value, in: 1_000_000_000)
                append(" s")
            } else if seconds < 7200 {
                append(seconds / 60, " min", seconds % 60, " s")
            } else {
                append(seconds / 3600, " h", seconds % 3600 / 60, " min")
            }
        }
    }

    /// Returns a duration in the format of ``append(duration:)``.
    package static func duration(_ nanoseconds: Int64) -> String { text { $0.append(duration: nanoseconds) } }

    private mutating func append(_ first: UInt64, _ unit: StaticString, _ second: UInt64, _ subunit: StaticString) {
        append(decimal: first)
        append(unit)
        guard second > 0 else { return }
        append(0x20)
        append(decimal: second)
        append(subunit)
    }

    /// Appends `value / scale`, with one decimal if the result is below ten.
    private mutating func append(_ value: UInt64, in scale: UInt64) {
        let tenths = Self.rounded(value, by: scale / 10)
        if tenths < 100 {
            append(decimal: tenths / 10)
            append(0x2E)
            append(decimal: tenths % 10)
        } else {
            append(decimal: Self.rounded(value, by: scale))
        }
    }

    /// Returns `value / scale`, rounded half up.
    private static func rounded(_ value: UInt64, by scale: UInt64) -> UInt64 {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: scale)
        return remainder >= scale - remainder ? quotient + 1 : quotient
    }
}

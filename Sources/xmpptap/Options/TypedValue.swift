/// Parses durations as typed: `20s`, `500ms`, `2m`, `1h`, `7d`.
enum TimeSpan {
    private static let day: Int64 = 86_400_000_000_000
    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000),
        ("h", 3_600_000_000_000), ("d", day),
    ]

    /// Returns the duration in nanoseconds, from 100 ms to a day; a number without a unit means seconds.
    static func parse(_ text: String) throws(Failure) -> Int64 { try parse(text, atMost: day) }

    /// Parses the age of a file, up to ten years.
    static func age(_ text: String) throws(Failure) -> Duration { .nanoseconds(try parse(text, atMost: 3650 * day)) }

    /// Parses a duration up to a maximum, which is a whole number of minutes, in nanoseconds.
    static func parse(_ text: String, atMost longest: Int64) throws(Failure) -> Int64 {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let name = digits.endIndex == text.endIndex ? "s" : text[digits.endIndex...]
        guard let number = Int64(digits), let unit = units.first(where: { $0.name == name }) else {
            throw .usage("write a whole number with a unit, as in 20s, 500ms or 2m")
        }
        let (time, isTooLong) = number.multipliedReportingOverflow(by: unit.nanoseconds)
        guard !isTooLong, (100_000_000...longest).contains(time) else {
            let most = longest > day ? "\(longest / day)d" : "\(longest / 60_000_000_000)m"
            throw .usage("write a time from 100ms to \(most)")
        }
        return time
    }
}

enum Number {
    /// Returns whether a text consists of decimal digits.
    static func isWhole(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Parses a whole number in a range.
    static func parse(_ text: String, in range: ClosedRange<Int>) throws(Failure) -> Int {
        guard isWhole(text), let number = Int(text), range.contains(number) else {
            throw .usage("write a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

extension RawRepresentable where Self: CaseIterable, RawValue == String {
    static func typed(_ text: String) throws(Failure) -> Self {
        guard let value = Self(rawValue: text) else {
            let names = allCases.map(\.rawValue)
            throw .usage("write \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")")
        }
        return value
    }
}

/// A size as typed: `100MB`, `64KiB`, `5000`.
struct ByteSize: Hashable {
    let bytes: UInt64

    /// The units: powers of 1000 (`kB MB GB TB`) and of 1024 (`KiB MiB GiB TiB`). Upper and lower case are equivalent,
    /// and the `B` of decimal units is optional.
    private static let units: [(names: [String], bytes: UInt64)] = [
        (["", "b"], 1), (["kb", "k"], 1000), (["mb", "m"], 1_000_000), (["gb", "g"], 1_000_000_000),
        (["tb", "t"], 1_000_000_000_000), (["kib"], 1 << 10), (["mib"], 1 << 20), (["gib"], 1 << 30),
        (["tib"], 1 << 40),
    ]

    /// Creates a size from a number of bytes.
    init(bytes: UInt64) { self.bytes = bytes }

    init(_ text: String) throws(Failure) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let name = text[digits.endIndex...].drop { $0 == " " }.lowercased()
        guard let number = UInt64(digits), let unit = Self.units.first(where: { $0.names.contains(name) }) else {
            throw .usage("write a whole number with a unit, as in 100MB, 64KiB or 2GB")
        }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: unit.bytes)
        guard !isTooLarge else { throw .usage("the size is too large; write a smaller number") }
        self.bytes = bytes
    }
}

extension ByteSize: CustomStringConvertible {
    /// The text form that the initialiser accepts, with the largest decimal unit that needs no fraction.
    var description: String {
        let decimal = Self.units.prefix(5).last { bytes >= $0.bytes && bytes.isMultiple(of: $0.bytes) }
        guard let decimal, let name = decimal.names.first, decimal.bytes > 1 else { return "\(bytes)B" }
        return "\(bytes / decimal.bytes)\(name == "kb" ? "kB" : name.uppercased())"
    }
}

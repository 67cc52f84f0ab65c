/// Whole numbers as typed.
enum Number {
    /// Whether `text` consists of digits.
    static func isWhole(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Parses a number in `range`.
    static func parse(_ text: String, in range: ClosedRange<Int>) throws(Failure) -> Int {
        guard isWhole(text), let number = Int(text), range.contains(number) else {
            throw .usage("write a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

extension RawRepresentable where Self: CaseIterable, RawValue == String {
    /// The case that was typed.
    static func typed(_ text: String) throws(Failure) -> Self {
        guard let value = Self(rawValue: text) else {
            let names = allCases.map(\.rawValue)
            throw .usage("write \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")")
        }
        return value
    }
}

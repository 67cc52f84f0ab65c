/// Why a part of an address cannot be brought into the form in which it is compared.
enum PreparationFault: Error {
    /// A code point that the part's class does not hold.
    case disallowed(Unicode.Scalar, why: String)
    /// A code point that the Unicode of ``UnicodeData`` does not know.
    case unassigned(Unicode.Scalar)
    /// A code point that is allowed only in certain company (RFC 5892 appendix A).
    case outOfContext(Unicode.Scalar)
    /// A condition of the Bidi rule, by its number (RFC 5893 §2), and the number of the label in a domain.
    case bidi(condition: Int, label: Int?)
    /// A label of the domain, by its number, and what is wrong with it.
    case label(Int, String)
    /// A label of the domain, by its number, that has no character.
    case emptyLabel(Int)
    /// Applying the rules again and again gives ever another text (RFC 8264 §7).
    case unstable
    /// Nothing is left, or nothing was there.
    case empty

    /// The error for a part; `written` is the part before preparation, in which an offending code point is looked for.
    func error(in part: JIDError.Part, written: Substring) -> JIDError {
        switch self {
        case .disallowed(let scalar, let why):
            JIDError(.forbiddenCharacter, in: part, "\(scalar.place(in: written)) is not allowed there: \(why)")
        case .unassigned(let scalar):
            JIDError(
                .unassignedCharacter,
                in: part,
                "\(scalar.place(in: written)) is not assigned in Unicode \(UnicodeData.version)"
            )
        case .outOfContext(let scalar):
            JIDError(.contextRule, in: part, "\(scalar.place(in: written)) is not allowed among its neighbours")
        case .bidi(let condition, let label):
            JIDError(
                .bidiRule,
                in: part,
                "\(label.map { "label \($0)" } ?? "it") breaks condition \(condition) of the Bidi rule"
            )
        case .label(let number, let why): JIDError(.badLabel, in: part, "label \(number) \(why)")
        case .emptyLabel(let number): JIDError(.empty, in: part, "label \(number) is empty")
        case .unstable: JIDError(.forbiddenCharacter, in: part, "its preparation does not come to an end")
        case .empty: JIDError(.empty, in: part, "it is empty")
        }
    }
}

extension Unicode.Scalar {
    /// `U+` and at least four digits.
    var codePoint: String {
        let digits = String(value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    }

    /// The code point and where it stands in a part, or the one that is mapped to it.
    fileprivate func place(in written: Substring) -> String {
        let tables = UnicodeTables.shared
        var offset = 0
        for scalar in written.unicodeScalars {
            if scalar == self { return "\(codePoint) at byte \(offset)" }
            if tables.composed(tables.lowerCased([tables.width[scalar] ?? scalar])).contains(self) {
                return "\(scalar.codePoint) at byte \(offset), mapped to \(codePoint),"
            }
            offset += scalar.utf8.count
        }
        return codePoint
    }
}

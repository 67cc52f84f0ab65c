/// The PRECIS profiles of local part and resource (RFC 8265), on the classes of RFC 8264.
///
/// The rules are applied in the order of RFC 8264 §7: mappings first, and the class is asked about what they give. So a
/// KELVIN SIGN in a local part becomes a `k`, though the sign itself is none of its characters.
struct Precis {
    let tables: UnicodeTables

    /// UsernameCaseMapped (RFC 8265 §3.3): width, lower case, NFC, Bidi rule, IdentifierClass.
    func usernameCaseMapped(_ text: [Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar] {
        try settled(text) { text throws(PreparationFault) in
            let mapped = tables.composed(tables.lowerCased(tables.narrowed(text)))
            if BidiRule.applies(to: mapped, tables), let condition = BidiRule.brokenCondition(by: mapped, tables) {
                throw .bidi(condition: condition, label: nil)
            }
            try check(mapped, isIdentifier: true)
            return mapped
        }
    }

    /// OpaqueString (RFC 8265 §4.2): spaces become U+0020, NFC, FreeformClass.
    func opaqueString(_ text: [Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar] {
        try settled(text) { text throws(PreparationFault) in
            let mapped = tables.composed(text.map { tables[$0].isSpace ? " " : $0 })
            try check(mapped, isIdentifier: false)
            return mapped
        }
    }

    /// Applies rules until the text stays as it is; RFC 8264 §7 allows three more attempts.
    private func settled(
        _ text: [Unicode.Scalar],
        _ apply: ([Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar]
    ) throws(PreparationFault) -> [Unicode.Scalar] {
        guard !text.isEmpty else { throw .empty }
        var text = text
        for _ in 0...3 {
            let next = try apply(text)
            if next == text { return text }
            text = next
        }
        throw .unstable
    }

    /// Whether each code point is in the IdentifierClass (RFC 8264 §4.2) or the FreeformClass (§4.3).
    func check(_ text: [Unicode.Scalar], isIdentifier: Bool) throws(PreparationFault) {
        var context: ContextRules?
        for (position, scalar) in text.enumerated() {
            let precisClass = tables[scalar].precisClass
            switch precisClass {
            case .valid: break
            case .unassigned: throw .unassigned(scalar)
            case .contextJ, .contextO:
                let rules = context ?? ContextRules(text, tables)
                context = rules
                guard rules.allows(at: position) else { throw .outOfContext(scalar) }
            case .compatibility, .otherLetterDigit, .space, .symbol, .punctuation:
                if isIdentifier { throw .disallowed(scalar, why: precisClass.reason) }
            case .exception, .oldHangulJamo, .ignorable, .control, .other:
                throw .disallowed(scalar, why: precisClass.reason)
            }
        }
    }
}

extension UnicodeTables {
    /// Half-width and full-width characters replaced by the usual ones (RFC 8264 §5.2.1).
    func narrowed(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        // All of them lie there.
        text.map { $0.value >= 0x3000 ? width[$0] ?? $0 : $0 }
    }

    /// The Unicode operation toLowercase (the Unicode Standard §3.13, R2), of no language in particular.
    func lowerCased(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var result: [Unicode.Scalar] = []
        result.reserveCapacity(text.count)
        for (position, scalar) in text.enumerated() {
            switch scalar.value {
            // The two of SpecialCasing.txt that hold in every language.
            case 0x130: result += ["i", "\u{307}"]
            case 0x3a3: result.append(isFinalSigma(text, at: position) ? "\u{3c2}" : "\u{3c3}")
            case 0x41...0x5a: result.append(Unicode.Scalar(UInt8(truncatingIfNeeded: scalar.value | 0x20)))
            case ..<0x80: result.append(scalar)
            default: result.append(self[scalar].isMapped ? lowerCase[scalar] ?? scalar : scalar)
            }
        }
        return result
    }

    /// Whether a sigma ends a word: a cased letter before it, none after (the Unicode Standard, table 3-17).
    private func isFinalSigma(_ text: [Unicode.Scalar], at position: Int) -> Bool {
        let before = text[..<position].last { !self[$0].isCaseIgnorable }
        let after = text[(position + 1)...].first { !self[$0].isCaseIgnorable }
        return before.map { self[$0].isCased } ?? false && !(after.map { self[$0].isCased } ?? false)
    }
}

extension CodePointProperties.Class {
    /// Why a code point of this category is in neither class, or not in the IdentifierClass; for errors.
    fileprivate var reason: String {
        switch self {
        case .valid: "it is allowed"
        case .contextJ, .contextO: "it is allowed in other company only"
        case .unassigned: "it is not assigned"
        case .exception: "RFC 5892 excepts it"
        case .oldHangulJamo: "it is a letter of old Hangul"
        case .ignorable: "it is ignorable"
        case .control: "it is a control character"
        case .compatibility: "it stands for other characters"
        case .otherLetterDigit: "it is no plain letter or digit"
        case .space: "it is a space"
        case .symbol: "it is a symbol"
        case .punctuation: "it is punctuation"
        case .other: "it is none of letter, digit, mark, symbol and punctuation"
        }
    }
}

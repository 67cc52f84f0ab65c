/// The rules for code points that are allowed only in certain company (RFC 5892 appendix A, for PRECIS by RFC 8264 §9.8
/// and §9.9), for one label or one string.
struct ContextRules {
    private let tables: UnicodeTables
    private let text: [Unicode.Scalar]
    /// Found once a text: rules that ask about all of it would otherwise cost the square of its length.
    private let hasJapanese: Bool
    private let hasArabicIndicDigits: Bool
    private let hasExtendedArabicIndicDigits: Bool

    init(_ text: [Unicode.Scalar], _ tables: UnicodeTables) {
        self.text = text
        self.tables = tables
        hasJapanese = text.contains { [.hiragana, .katakana, .han].contains(tables[$0].script) }
        hasArabicIndicDigits = text.contains { Self.arabicIndicDigits ~= $0.value }
        hasExtendedArabicIndicDigits = text.contains { Self.extendedArabicIndicDigits ~= $0.value }
    }

    private static let arabicIndicDigits: ClosedRange<UInt32> = 0x660...0x669
    private static let extendedArabicIndicDigits: ClosedRange<UInt32> = 0x6f0...0x6f9

    /// Whether the code point at a position, of category contextJ or contextO, may stand there.
    func allows(at position: Int) -> Bool {
        switch text[position].value {
        // A.1 and A.2: the joiners follow a virama; the non-joiner also parts two letters that would join.
        case 0x200c: follows(position) { $0.isVirama } || partsJoiningLetters(at: position)
        case 0x200d: follows(position) { $0.isVirama }
        // A.3: the middle dot of Catalan.
        case 0xb7:
            position > 0 && text[position - 1] == "l" && position + 1 < text.count && text[position + 1] == "l"
        // A.4: the keraia stands before a Greek letter.
        case 0x375: position + 1 < text.count && tables[text[position + 1]].script == .greek
        // A.5 and A.6: geresh and gershayim follow a Hebrew one.
        case 0x5f3, 0x5f4: follows(position) { $0.script == .hebrew }
        // A.7: the middle dot of katakana.
        case 0x30fb: hasJapanese
        // A.8 and A.9: one kind of Arabic digits only.
        case Self.arabicIndicDigits: !hasExtendedArabicIndicDigits
        case Self.extendedArabicIndicDigits: !hasArabicIndicDigits
        default: false
        }
    }

    private func follows(_ position: Int, _ isWanted: (CodePointProperties) -> Bool) -> Bool {
        position > 0 && isWanted(tables[text[position - 1]])
    }

    /// `(L|D) T* ZWNJ T* (R|D)` in joining types.
    private func partsJoiningLetters(at position: Int) -> Bool {
        guard let before = text[..<position].last(where: { tables[$0].joining != .transparent }),
            let after = text[(position + 1)...].first(where: { tables[$0].joining != .transparent })
        else { return false }
        let left = tables[before].joining
        let right = tables[after].joining
        return (left == .left || left == .dual) && (right == .right || right == .dual)
    }
}

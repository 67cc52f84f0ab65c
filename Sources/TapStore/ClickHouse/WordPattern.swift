/// Regular expressions that find the words of ``Words`` in texts that are not folded.
enum WordPattern {
    /// The number of characters of a word that an expression contains at most: the size of a statement is limited.
    private static let limit = 32

    /// The characters that can have another form. Between them are large scripts without case and diacritics, such as those of China and
    /// ancient Egypt: to fold all of their characters would take longer than a search.
    static let examined: [ClosedRange<UInt32>] = [
        0...0x33FF, 0xA640...0xABFF, 0xF900...0x1_1FFF, 0x1_6E00...0x1_6FFF, 0x1_D000...0x1_D7FF, 0x1_E800...0x1_EFFF,
        0x2_F800...0x2_FA1D,
    ]

    /// The characters that fold into one other character, by that; and all those into which a character folds together with others.
    private static let table: (variants: [Unicode.Scalar: [Unicode.Scalar]], parts: Set<Unicode.Scalar>) = {
        var variants: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        var parts: Set<Unicode.Scalar> = []
        for value in examined.joined() {
            guard let scalar = Unicode.Scalar(value), scalar.properties.generalCategory != .unassigned else { continue }
            let folded = FoldedScalars.foldSlowly(scalar)
            if folded.count == 1, let letter = folded.first, letter != scalar {
                variants[letter, default: []].append(scalar)
            }
            if folded.count > 1 { parts.formUnion(folded) }
        }
        return (variants, parts)
    }()

    /// Returns an expression of RE2 that matches all texts with a word that begins so or contains it, and perhaps others; nil if there is
    /// none.
    static func containing(_ word: String) -> String? {
        var pattern = ""
        var isBroken = false
        for scalar in word.unicodeScalars.prefix(limit) {
            // The syllables of Hangul fold into several characters, as do some vowels of Indian scripts.
            guard !(0x1100...0x11FF).contains(scalar.value), !table.parts.contains(scalar) else {
                isBroken = true
                continue
            }
            if isBroken, !pattern.isEmpty { pattern += "(?s:.*)" }
            isBroken = false
            let all = [scalar] + (table.variants[scalar] ?? [])
            pattern += "[\(all.map(escaped).joined())]\\p{Mn}*"
        }
        return pattern.isEmpty ? nil : pattern
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String { "\\x{\(String(scalar.value, radix: 16))}" }
}

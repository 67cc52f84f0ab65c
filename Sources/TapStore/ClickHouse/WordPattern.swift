/// Regular expressions that find the words of ``Words`` in texts that are not folded.
enum WordPattern {
    /// The number of characters of a word that an expression contains at most: the size of a statement is limited.
    private static let limit = 32

    /// The characters that fold into one other character, by that; and all those into which a character folds together with others.
    private static let table: (variants: [Unicode.Scalar: [Unicode.Scalar]], parts: Set<Unicode.Scalar>) = {
        var variants: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        var parts: Set<Unicode.Scalar> = []
        // Beyond these, no character has another form.
        for value in [UInt32(0)...0x1_FFFF, 0x2_F800...0x2_FA1D].joined() {
            guard let scalar = Unicode.Scalar(value), !(0xAC00...0xD7A3).contains(value) else { continue }
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

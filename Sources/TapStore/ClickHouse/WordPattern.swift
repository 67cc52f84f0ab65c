/// Regular expressions that find the words of ``Words`` in texts that are not folded.
enum WordPattern {
    /// The characters that fold into one other character, by that.
    private static let variants: [Unicode.Scalar: [Unicode.Scalar]] = {
        var variants: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        // Beyond, characters with variants are of scripts that are no longer in use.
        for value in UInt32(0)...0x1_FFFF {
            guard let scalar = Unicode.Scalar(value), !(0xAC00...0xD7A3).contains(value) else { continue }
            let folded = FoldedScalars.foldSlowly(scalar)
            if folded.count == 1, let letter = folded.first, letter != scalar {
                variants[letter, default: []].append(scalar)
            }
        }
        return variants
    }()

    /// Returns an expression of RE2 that matches all texts with a word that begins so or contains it, and perhaps others; nil if there is
    /// none.
    static func containing(_ word: String) -> String? {
        var pattern = ""
        for scalar in word.unicodeScalars {
            // The syllables of Hangul fold into several characters.
            guard !(0x1100...0x11FF).contains(scalar.value) else { return nil }
            let all = [scalar] + (variants[scalar] ?? [])
            pattern += "[\(all.map(escaped).joined())]\\p{Mn}*"
        }
        return pattern
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String { "\\x{\(String(scalar.value, radix: 16))}" }
}

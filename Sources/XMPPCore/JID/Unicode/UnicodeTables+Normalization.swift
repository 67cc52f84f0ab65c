extension UnicodeTables {
    /// A text in Normalization Form C (UAX #15).
    func composed(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        isComposed(text) ? text : compose(decomposed(text))
    }

    /// The quick check of UAX #15 §9; false also means "perhaps".
    private func isComposed(_ text: [Unicode.Scalar]) -> Bool {
        var last: UInt8 = 0
        for scalar in text {
            // Nothing below combines, and nothing below is composed of anything that is not in NFC.
            guard scalar.value >= 0x300 else {
                last = 0
                continue
            }
            let properties = self[scalar]
            let current = properties.combiningClass
            guard !properties.mayChangeInNFC, current == 0 || last <= current else { return false }
            last = current
        }
        return true
    }

    /// Decomposed to the end, marks in canonical order (D108, D109 of the Unicode Standard §3.11).
    private func decomposed(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var result: [Unicode.Scalar] = []
        result.reserveCapacity(text.count)
        for scalar in text { appendDecomposition(of: scalar, to: &result) }

        var start = 0
        while start < result.count {
            var end = start
            while end < result.count, self[result[end]].combiningClass != 0 { end += 1 }
            if end - start > 1 {
                // A stable sort: the place is part of what is compared.
                let sorted = (start..<end).map { (self[result[$0]].combiningClass, $0, result[$0]) }
                    .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
                result.replaceSubrange(start..<end, with: sorted.lazy.map(\.2))
            }
            start = end + 1
        }
        return result
    }

    private func appendDecomposition(of scalar: Unicode.Scalar, to result: inout [Unicode.Scalar]) {
        if let jamo = Hangul.decomposition(of: scalar) { return result.append(contentsOf: jamo) }
        guard let (first, second) = canonical.decomposition(of: scalar) else { return result.append(scalar) }
        appendDecomposition(of: first, to: &result)
        if let second { appendDecomposition(of: second, to: &result) }
    }

    /// The canonical composition algorithm (D117): each character joins the last starter unless something between blocks it.
    private func compose(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var result: [Unicode.Scalar] = []
        result.reserveCapacity(text.count)
        var starter: Int?
        var last: UInt8 = 0
        for scalar in text {
            let current = self[scalar].combiningClass
            if let place = starter {
                let isAdjacent = place == result.count - 1
                if isAdjacent || last != 0 && last < current, let composite = composite(of: result[place], scalar) {
                    result[place] = composite
                    continue
                }
            }
            if current == 0 { starter = result.count }
            last = current
            result.append(scalar)
        }
        return result
    }

    private func composite(of first: Unicode.Scalar, _ second: Unicode.Scalar) -> Unicode.Scalar? {
        Hangul.composite(of: first, second) ?? canonical.composite(of: first, second)
    }
}

/// Syllables and their letters are reckoned, not looked up (the Unicode Standard §3.12).
private enum Hangul {
    private static let syllables: UInt32 = 0xac00
    private static let leading: UInt32 = 0x1100
    private static let vowels: UInt32 = 0x1161
    /// One before the first trailing consonant: a syllable without one has it as its number zero.
    private static let trailing: UInt32 = 0x11a7
    private static let leadingCount: UInt32 = 19
    private static let vowelCount: UInt32 = 21
    private static let trailingCount: UInt32 = 28
    private static let syllableCount = leadingCount * vowelCount * trailingCount

    static func decomposition(of scalar: Unicode.Scalar) -> [Unicode.Scalar]? {
        let index = scalar.value &- syllables
        guard index < syllableCount else { return nil }
        let block = vowelCount * trailingCount
        var letters = [leading + index / block, vowels + index % block / trailingCount]
        if index % trailingCount != 0 { letters.append(trailing + index % trailingCount) }
        return letters.compactMap(Unicode.Scalar.init)
    }

    static func composite(of first: Unicode.Scalar, _ second: Unicode.Scalar) -> Unicode.Scalar? {
        let lead = first.value &- leading
        let vowel = second.value &- vowels
        if lead < leadingCount, vowel < vowelCount {
            return Unicode.Scalar(syllables + (lead * vowelCount + vowel) * trailingCount)
        }
        let syllable = first.value &- syllables
        let trail = second.value &- trailing
        guard syllable < syllableCount, syllable % trailingCount == 0, 1..<trailingCount ~= trail else { return nil }
        return Unicode.Scalar(first.value + trail)
    }
}

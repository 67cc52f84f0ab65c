/// Finds the intended word for a mistyped one.
package enum Spelling {
    /// Maximum number of letters of a word; longer words are not compared.
    private static let maximumLength = 32

    /// Returns the known word nearest to a mistyped one.
    ///
    /// - Parameters:
    ///   - word: The mistyped word; upper case counts as lower case.
    ///   - known: The known words, in lower case.
    /// - Returns: The nearest word; nil if none differs by at most two letters, or if too little of the word would
    ///   remain.
    package static func nearest(to word: String, among known: [String]) -> String? {
        let near = known.map { ($0, distance(word.lowercased(), $0)) }.min { $0.1 < $1.1 }
        guard let near, near.1 <= 2, near.1 < near.0.count - 1 else { return nil }
        return near.0
    }

    /// Returns how many letters must be inserted, removed, replaced or swapped with the next to convert one word to the
    /// other.
    private static func distance(_ word: String, _ other: String) -> Int {
        guard word.count <= maximumLength else { return .max }
        let letters = Array(word)
        let others = Array(other)
        var rows = [Array(0...others.count)]
        for index in letters.indices {
            var row = [index + 1]
            for column in others.indices {
                let replaced = rows[index][column] + (letters[index] == others[column] ? 0 : 1)
                var best = min(replaced, row[column] + 1, rows[index][column + 1] + 1)
                if index > 0, column > 0, letters[index] == others[column - 1], letters[index - 1] == others[column] {
                    best = min(best, rows[index - 1][column - 1] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[letters.count][others.count]
    }
}

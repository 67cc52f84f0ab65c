internal import Foundation

/// The words of a text, as they are compared: without case and diacritics.
///
/// A word is a run of letters and digits. Text in scripts that are written without spaces (Chinese, Japanese, Thai and others)
/// is divided into pairs of neighbouring characters instead; its last character is a word, too.
///
/// Stores keep the words in their index. A change of them needs another version of the schema.
package enum Words {
    /// Returns the words of a body, in the order of the text.
    package static func of(_ text: String) -> [String] { divide(text, isQuery: false).words }

    /// Appends the words of a body, each followed by a space.
    static func append(of text: String, to words: inout [UInt8]) {
        var text = text
        let isPlain = text.withUTF8 { bytes in
            guard bytes.allSatisfy({ $0 < 0x80 }) else { return false }
            var isInWord = false
            for byte in bytes {
                let lower = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
                if lower >= 0x61 && lower <= 0x7A || lower >= 0x30 && lower <= 0x39 {
                    words.append(lower)
                    isInWord = true
                } else if isInWord {
                    words.append(0x20)
                    isInWord = false
                }
            }
            if isInWord { words.append(0x20) }
            return true
        }
        guard !isPlain else { return }
        for word in divide(text, isQuery: false).words {
            words += word.utf8
            words.append(0x20)
        }
    }

    /// Returns the words to look for, and the runs of characters without spaces, which must occur as they are.
    static func ofQuery(_ text: String) -> (words: [String], runs: [String]) { divide(text, isQuery: true) }

    private static func divide(_ text: String, isQuery: Bool) -> (words: [String], runs: [String]) {
        var runs: [String] = []
        var words: [String] = []
        var word = String.UnicodeScalarView()
        var run: [Unicode.Scalar] = []
        func endWord() {
            if !word.isEmpty { words.append(String(word)) }
            word = String.UnicodeScalarView()
        }
        func endRun() {
            for index in run.indices.dropFirst() {
                words.append(String(String.UnicodeScalarView([run[index - 1], run[index]])))
            }
            if let last = run.last, !isQuery || run.count == 1 { words.append(String(Character(last))) }
            if !run.isEmpty { runs.append(String(String.UnicodeScalarView(run))) }
            run.removeAll(keepingCapacity: true)
        }
        for scalar in folded(text) {
            if isUnspaced(scalar) {
                endWord()
                run.append(scalar)
            } else if isPartOfWord(scalar) {
                endRun()
                word.append(scalar)
            } else {
                endWord()
                endRun()
            }
        }
        endWord()
        endRun()
        return (words, runs)
    }

    /// Returns a text without case and diacritics.
    static func fold(_ text: String) -> String { String(folded(text)) }

    private static func folded(_ text: String) -> String.UnicodeScalarView {
        let isPlain = text.utf8.allSatisfy { $0 < 0x80 }
        guard !isPlain else { return text.lowercased().unicodeScalars }
        var folded = String.UnicodeScalarView()
        for scalar in text.lowercased().decomposedStringWithCanonicalMapping.unicodeScalars
        where scalar.properties.generalCategory != .nonspacingMark {
            folded.append(scalar)
        }
        return folded
    }

    private static func isPartOfWord(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x80 {
            return (0x30...0x39).contains(scalar.value) || (0x61...0x7A).contains(scalar.value)
        }
        return switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .spacingMark,
            .decimalNumber, .letterNumber, .otherNumber:
            true
        default: false
        }
    }

    /// Returns whether a letter belongs to a script without spaces between words.
    private static func isUnspaced(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0EFF, 0x0F00...0x0FFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF,
            0x4E00...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFF:
            isPartOfWord(scalar)
        default: false
        }
    }
}

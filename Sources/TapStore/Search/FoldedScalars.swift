internal import Foundation

/// Characters without case and diacritics, and their place in words.
enum FoldedScalars {
    enum Kind: UInt32 {
        /// A character between words.
        case separator = 0
        /// A character of a word.
        case letter
        /// A letter of a script without spaces between words.
        case unspaced
    }

    /// The characters of the first table: all alphabets in daily use, and Kana.
    private static let alphabets: Range<UInt32> = 0..<0x3100
    /// The characters of the second table: emoji and other pictures.
    private static let pictures: Range<UInt32> = 0x1F000..<0x1FB00
    /// The bits of an entry that contain the character; those above contain the ``Kind``.
    private static let scalarBits: UInt32 = 24
    /// The entry of a character that folds into none or several, and of one that is in neither table.
    private static let irregular = UInt32.max

    private static let alphabetTable = table(of: alphabets)
    private static let pictureTable = table(of: pictures)

    /// Returns the folded character and its kind, for each character of a range.
    private static func table(of range: Range<UInt32>) -> [UInt32] { range.map(entry) }

    private static func entry(_ value: UInt32) -> UInt32 {
        guard let scalar = Unicode.Scalar(value) else { return irregular }
        let folded = foldSlowly(scalar)
        guard folded.count == 1, let letter = folded.first else { return irregular }
        return kind(of: letter).rawValue << scalarBits | letter.value
    }

    /// Calls `body` with each character into which a character folds.
    @inline(__always)
    static func forEach(_ scalar: Unicode.Scalar, _ body: (Unicode.Scalar, Kind) -> Void) {
        let value = scalar.value
        if value < 0x80 {
            // Lower case, letters and digits.
            let lower = value >= 0x41 && value <= 0x5A ? value | 0x20 : value
            let isLetter = lower >= 0x61 && lower <= 0x7A || lower >= 0x30 && lower <= 0x39
            return body(Unicode.Scalar(UInt8(truncatingIfNeeded: lower)), isLetter ? .letter : .separator)
        }
        if value >= 0x4E00, value <= 0x9FFF { return body(scalar, .unspaced) }
        let known =
            if value < alphabets.upperBound {
                alphabetTable[Int(value)]
            } else if pictures.contains(value) {
                pictureTable[Int(value - pictures.lowerBound)]
            } else {
                irregular
            }
        if known != irregular, let letter = Unicode.Scalar(known & (1 << scalarBits - 1)),
            let kind = Kind(rawValue: known >> scalarBits)
        {
            return body(letter, kind)
        }
        for letter in foldSlowly(scalar) { body(letter, kind(of: letter)) }
    }

    /// Returns the characters into which a character folds, by the tables of Unicode.
    static func foldSlowly(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        String(scalar).lowercased().decomposedStringWithCanonicalMapping.unicodeScalars.filter {
            $0.properties.generalCategory != .nonspacingMark
        }
    }

    private static func kind(of scalar: Unicode.Scalar) -> Kind {
        guard isPartOfWord(scalar) else { return .separator }
        return isUnspaced(scalar) ? .unspaced : .letter
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
            true
        default: false
        }
    }
}

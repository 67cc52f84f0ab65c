internal import Foundation

/// SASLprep (RFC 4013): prepares user names and passwords for comparison and hashing.
package enum SASLprep {
    /// Returns the prepared text; nil if RFC 4013 §2.3 or §2.4 prohibits it.
    ///
    /// Printable ASCII is returned unchanged. In other text, some characters are removed, spaces are replaced by
    /// U+0020, and the result is normalised to NFKC. Code points assigned after RFC 3454 are allowed, as RFC 3454 §7
    /// permits for queries.
    package static func prepare(_ text: String) -> String? {
        guard !text.utf8.allSatisfy({ 0x20..<0x7f ~= $0 }) else { return text }
        var mapped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where !isMappedToNothing(scalar) {
            mapped.append(isNonASCIISpace(scalar) ? " " : scalar)
        }
        let normalized = String(mapped).precomposedStringWithCompatibilityMapping
        guard !normalized.unicodeScalars.contains(where: isProhibited), isBidirectionallySound(normalized) else {
            return nil
        }
        return normalized
    }
}

/// Returns whether SASLprep removes a character (RFC 3454 table B.1).
private func isMappedToNothing(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x00ad, 0x034f, 0x1806, 0x180b...0x180d, 0x200b...0x200d, 0x2060, 0xfe00...0xfe0f, 0xfeff: true
    default: false
    }
}

/// Returns whether a character is a space outside ASCII (RFC 3454 table C.1.2).
private func isNonASCIISpace(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x00a0, 0x1680, 0x2000...0x200b, 0x202f, 0x205f, 0x3000: true
    default: false
    }
}

/// Returns whether a character is prohibited (RFC 3454 tables C.2 to C.9): controls, private use, non-characters,
/// characters inappropriate for plain text, tags.
private func isProhibited(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f...0x9f, 0x06dd, 0x070f, 0x180e, 0x200c...0x200f, 0x2028...0x202e, 0x2060...0x2063,
        0x206a...0x206f, 0x2ff0...0x2ffb, 0x0340, 0x0341, 0xfeff, 0xfff9...0xfffd, 0x1d173...0x1d17a,
        0xe0001, 0xe0020...0xe007f, 0xfdd0...0xfdef, 0xe000...0xf8ff, 0xf0000...0xffffd, 0x100000...0x10fffd:
        true
    case let value where value & 0xfffe == 0xfffe: true
    default: isNonASCIISpace(scalar)
    }
}

/// Returns whether a text satisfies RFC 3454 §6: text with a right-to-left character contains no left-to-right
/// character, and begins and ends with a right-to-left character.
private func isBidirectionallySound(_ text: String) -> Bool {
    let scalars = text.unicodeScalars
    guard scalars.contains(where: isRightToLeft) else { return true }
    guard let first = scalars.first, let last = scalars.last, isRightToLeft(first), isRightToLeft(last) else {
        return false
    }
    return !scalars.contains { $0.properties.isAlphabetic && !isRightToLeft($0) && !isCombining($0) }
}

/// Returns whether a character is right-to-left (RFC 3454 table D.1). The gaps within scripts are unassigned code
/// points.
private func isRightToLeft(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x05be, 0x05c0, 0x05c3, 0x05d0...0x05f4, 0x061b...0x064a, 0x066d...0x066f, 0x0671...0x06d5, 0x06dd,
        0x06e5, 0x06e6, 0x06fa...0x070d, 0x0710, 0x0712...0x072c, 0x0780...0x07a5, 0x07b1, 0x200f, 0xfb1d,
        0xfb1f...0xfb28, 0xfb2a...0xfd3d, 0xfd50...0xfdfc, 0xfe70...0xfefc:
        true
    default: false
    }
}

/// Returns whether a character is a combining mark, which has the direction of its base letter.
private func isCombining(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: true
    default: false
    }
}

/// Properties of code points for PRECIS (RFC 8264), IDNA2008 (RFC 5892) and the Bidi rule (RFC 5893).
///
/// The standard library provides most of them. It lacks HasCompat, width mappings, Bidi classes and joining types,
/// which are listed here as of Unicode 15.0; tests compare them with the Unicode Character Database.
enum UnicodeVersion {
    /// The Unicode version that determines which code points are assigned, independent of the standard library.
    static let supported = (major: 15, minor: 0)
}

/// The category that assigns a code point to PRECIS classes (RFC 8264 §8, §9).
enum PrecisCategory: Sendable {
    case valid, unassigned, contextJ, contextO, exception, oldHangulJamo, ignorable, control, compatibility
    case otherLetterDigit, space, symbol, punctuation, other
}

/// The Bidi_Class of a code point; classes that the Bidi rule does not distinguish are combined.
enum BidiClass: Sendable {
    case leftToRight
    /// R and AL.
    case rightToLeft
    case arabicNumber
    case europeanNumber
    case nonspacingMark
    /// ES, CS, ET, ON and BN.
    case neutral
}

extension Unicode.Scalar {
    /// The category of RFC 8264 §9, determined in the order of §8.
    var precisCategory: PrecisCategory {
        if let exception { return exception }
        let properties = properties
        guard isAssigned || properties.isNoncharacterCodePoint else { return .unassigned }
        if 0x21...0x7e ~= value { return .valid }
        if properties.isJoinControl { return .contextJ }
        if isOldHangulJamo { return .oldHangulJamo }
        if properties.isDefaultIgnorableCodePoint || properties.isNoncharacterCodePoint { return .ignorable }
        let category = properties.generalCategory
        if category == .control { return .control }
        if hasCompat { return .compatibility }
        if isLetterDigit { return .valid }
        return switch category {
        case .titlecaseLetter, .letterNumber, .otherNumber, .enclosingMark: .otherLetterDigit
        case .spaceSeparator: .space
        case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol: .symbol
        case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
            .finalPunctuation, .otherPunctuation:
            .punctuation
        default: .other
        }
    }

    /// Whether IDNA allows the code point in labels: PVALID, CONTEXTJ or CONTEXTO (RFC 5892 §3).
    var isLabelCharacter: Bool {
        if let exception { return exception != .exception }
        switch value {
        case 0x2d, 0x30...0x39, 0x61...0x7a: return true
        // ASCII characters other than letters, digits and hyphens (LDH), and IgnorableBlocks (RFC 5892 §2.4).
        case ..<0x80, 0x20d0...0x20ff, 0x1d100...0x1d24f: return false
        default: break
        }
        let properties = properties
        guard isAssigned else { return false }
        if properties.isJoinControl { return true }
        // NFKC_Casefold changes code points that RFC 5892 §2.2 calls unstable, and all default-ignorable ones.
        guard !properties.changesWhenNFKCCaseFolded, !properties.isNoncharacterCodePoint, !isOldHangulJamo else {
            return false
        }
        return isLetterDigit
    }

    /// LetterDigits (RFC 5892 §2.1, RFC 8264 §9.1).
    private var isLetterDigit: Bool {
        switch properties.generalCategory {
        case .lowercaseLetter, .uppercaseLetter, .otherLetter, .decimalNumber, .modifierLetter, .nonspacingMark,
            .spacingMark:
            true
        default: false
        }
    }

    /// Code points with a fixed category (RFC 5892 §2.6, RFC 8264 §9.6).
    private var exception: PrecisCategory? {
        switch value {
        case 0xdf, 0x3c2, 0x6fd, 0x6fe, 0xf0b, 0x3007: .valid
        case 0xb7, 0x375, 0x5f3, 0x5f4, 0x660...0x669, 0x6f0...0x6f9, 0x30fb: .contextO
        case 0x640, 0x7fa, 0x302e, 0x302f, 0x3031...0x3035, 0x303b: .exception
        default: nil
        }
    }

    private var isAssigned: Bool {
        guard value >= 0x80, let age = properties.age else { return value < 0x80 }
        return (age.major, age.minor) <= UnicodeVersion.supported
    }

    /// Hangul_Syllable_Type L, V or T (RFC 8264 §9.9).
    private var isOldHangulJamo: Bool {
        switch value {
        case 0x1100...0x11ff, 0xa960...0xa97c, 0xd7b0...0xd7c6, 0xd7cb...0xd7fb: true
        default: false
        }
    }

    /// Whether NFKC changes the code point (RFC 8264 §9.17); only valid for code points that are not default-ignorable.
    private var hasCompat: Bool {
        guard properties.changesWhenCaseFolded else { return properties.changesWhenNFKCCaseFolded }
        return switch value {
        case 0xb5, 0x132, 0x13f, 0x149, 0x17f, 0x1c4, 0x1c5, 0x1c7, 0x1c8, 0x1ca, 0x1cb, 0x1f1, 0x1f2, 0x3d0, 0x3d1,
            0x3d5, 0x3d6, 0x3f0, 0x3f1, 0x3f4, 0x3f5, 0x3f9, 0x587, 0x1e9a, 0x1e9b, 0x1fbb, 0x1fc9, 0x1fcb, 0x1fdb,
            0x1feb, 0x1ff9, 0x1ffb, 0x2126, 0x212a, 0x212b, 0x2160...0x216f, 0x24b6...0x24cf, 0xfb00...0xfb17,
            0xff21...0xff3a:
            true
        default: false
        }
    }

    /// Whether the code point is an assigned character of General_Category M.
    var isMark: Bool {
        switch properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: isAssigned
        default: false
        }
    }

    /// The Bidi class; exact for code points of the IdentifierClass and of labels. Others, except letters and numbers,
    /// count as neutral, so that they are refused by their class instead of the Bidi rule.
    var bidiClass: BidiClass {
        switch value {
        case 0x30...0x39, 0x6f0...0x6f9: return .europeanNumber
        case 0x600...0x605, 0x660...0x669, 0x66b...0x66c, 0x6dd, 0x890...0x891, 0x8e2, 0x10d30...0x10d39,
            0x10e60...0x10e7e:
            return .arabicNumber
        case 0x2b9...0x2ba, 0x2c6...0x2cf, 0x2ec, 0x2e2f, 0xa67f, 0xa717...0xa71f, 0xa788: return .neutral
        case 0xcbf, 0xcc6, 0xf0b, 0x11a07...0x11a08, 0x11c3f: return .leftToRight
        case 0x5f3...0x5f4, 0x6fd...0x6fe: return .rightToLeft
        default: break
        }
        guard isAssigned else { return .neutral }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return .nonspacingMark
        case .lowercaseLetter, .uppercaseLetter, .titlecaseLetter, .otherLetter, .modifierLetter, .spacingMark,
            .decimalNumber, .letterNumber, .otherNumber:
            break
        default: return .neutral
        }
        return switch value {
        case 0x590...0x8ff, 0xfb1d...0xfdff, 0xfe70...0xfeff, 0x10800...0x10fff, 0x1e800...0x1efff: .rightToLeft
        default: .leftToRight
        }
    }

    // MARK: Joining_Type

    /// Joining_Type T: marks and format characters, with few exceptions.
    var isTransparentToJoining: Bool {
        switch value {
        case ..<0x80, 0x600...0x605, 0x6dd, 0x890...0x891, 0x8e2, 0x180e, 0x200c...0x200d, 0x2066...0x2069, 0x110bd,
            0x110cd:
            return false
        case 0x1e94b: return true
        default: break
        }
        return switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: true
        default: false
        }
    }

    /// Joining_Type L or D: joins the following letter.
    var joinsNext: Bool {
        switch value {
        case 0x620, 0x626, 0x628, 0x62a...0x62e, 0x633...0x63f, 0x641...0x647, 0x649...0x64a, 0x66e...0x66f,
            0x678...0x687, 0x69a...0x6bf, 0x6c1...0x6c2, 0x6cc, 0x6ce, 0x6d0...0x6d1, 0x6fa...0x6fc, 0x6ff,
            0x712...0x714, 0x71a...0x71d, 0x71f...0x727, 0x729, 0x72b, 0x72d...0x72e, 0x74e...0x758, 0x75c...0x76a,
            0x76d...0x770, 0x772, 0x775...0x777, 0x77a...0x77f, 0x7ca...0x7ea, 0x841...0x845, 0x848, 0x84a...0x853,
            0x855, 0x860, 0x862...0x865, 0x868, 0x886, 0x889...0x88d, 0x8a0...0x8a9, 0x8af...0x8b0, 0x8b3...0x8b8,
            0x8ba...0x8c8, 0x1807, 0x1820...0x1878, 0x1887...0x18a8, 0x18aa, 0xa840...0xa872, 0x10ac0...0x10ac4,
            0x10acd, 0x10ad3...0x10adc, 0x10ade...0x10ae0, 0x10aeb...0x10aee, 0x10b80, 0x10b82, 0x10b86...0x10b88,
            0x10b8a...0x10b8b, 0x10b8d, 0x10b90, 0x10bad...0x10bae, 0x10d00...0x10d21, 0x10d23, 0x10f30...0x10f32,
            0x10f34...0x10f44, 0x10f51...0x10f53, 0x10f70...0x10f73, 0x10f76...0x10f81, 0x10fb0, 0x10fb2...0x10fb3,
            0x10fb8, 0x10fbb...0x10fbc, 0x10fbe...0x10fbf, 0x10fc1, 0x10fc4, 0x10fca...0x10fcb, 0x1e900...0x1e943:
            true
        default: false
        }
    }

    /// Joining_Type R or D: joins the preceding letter.
    var joinsPrevious: Bool {
        switch value {
        case 0x620, 0x622...0x63f, 0x641...0x64a, 0x66e...0x66f, 0x671...0x673, 0x675...0x6d3, 0x6d5, 0x6ee...0x6ef,
            0x6fa...0x6fc, 0x6ff, 0x710, 0x712...0x72f, 0x74d...0x77f, 0x7ca...0x7ea, 0x840...0x858, 0x860,
            0x862...0x865, 0x867...0x882, 0x886, 0x889...0x88e, 0x8a0...0x8ac, 0x8ae...0x8c8, 0x1807, 0x1820...0x1878,
            0x1887...0x18a8, 0x18aa, 0xa840...0xa871, 0x10ac0...0x10ac5, 0x10ac7, 0x10ac9...0x10aca,
            0x10ace...0x10ad6, 0x10ad8...0x10ae1, 0x10ae4, 0x10aeb...0x10aef, 0x10b80...0x10b91, 0x10ba9...0x10bae,
            0x10d01...0x10d23, 0x10f30...0x10f44, 0x10f51...0x10f54, 0x10f70...0x10f81, 0x10fb0, 0x10fb2...0x10fb6,
            0x10fb8...0x10fbf, 0x10fc1...0x10fc4, 0x10fc9...0x10fca, 0x1e900...0x1e943:
            true
        default: false
        }
    }

    // MARK: Mappings

    /// The language-independent lower case. Unassigned characters are not changed, so that they are refused.
    var lowercase: String.UnicodeScalarView {
        properties.changesWhenLowercased && isAssigned
            ? properties.lowercaseMapping.unicodeScalars : String(self).unicodeScalars
    }

    /// The decomposition of a half-width or full-width character (types wide and narrow, RFC 8264 §5.2.1); otherwise
    /// the character itself.
    var narrowed: Unicode.Scalar {
        let usual: UInt32? =
            switch value {
            case 0x3000: 0x20
            case 0xff01...0xff5e: value - 0xff01 + 0x21
            case 0xff5f...0xff60: value - 0xff5f + 0x2985
            case 0xff61...0xff9f: Self.katakana[Int(value - 0xff61)].value
            case 0xffa0: 0x3164
            case 0xffa1...0xffbe: value - 0xffa1 + 0x3131
            case 0xffc2...0xffc7: value - 0xffc2 + 0x314f
            case 0xffca...0xffcf: value - 0xffca + 0x3155
            case 0xffd2...0xffd7: value - 0xffd2 + 0x315b
            case 0xffda...0xffdc: value - 0xffda + 0x3161
            case 0xffe0...0xffe1: value - 0xffe0 + 0xa2
            case 0xffe2: 0xac
            case 0xffe3: 0xaf
            case 0xffe4: 0xa6
            case 0xffe5: 0xa5
            case 0xffe6: 0x20a9
            case 0xffe8: 0x2502
            case 0xffe9...0xffec: value - 0xffe9 + 0x2190
            case 0xffed: 0x25a0
            case 0xffee: 0x25cb
            default: nil
            }
        return usual.flatMap(Unicode.Scalar.init) ?? self
    }

    /// The decompositions of the half-width forms U+FF61 to U+FF9F.
    private static let katakana = Array(
        "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u{3099}\u{309a}"
            .unicodeScalars
    )

    // MARK: Text

    /// The code point as `U+` and at least four hexadecimal digits.
    var codePoint: String {
        let digits = String(value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    }
}

/// The properties of one code point that preparation looks at.
///
/// Layout of the bits and order of all cases are those that generate.py writes.
struct CodePointProperties: Sendable {
    let bits: UInt32

    /// The category of RFC 8264 §9 by which PRECIS places a code point into its classes (§8).
    enum Class: UInt8 {
        case valid
        case unassigned
        case contextJ
        case contextO
        case exception
        case oldHangulJamo
        case ignorable
        case control
        case compatibility
        case otherLetterDigit
        case space
        case symbol
        case punctuation
        case other
    }

    /// Bidi_Class; those that the Bidi rule of RFC 5893 does not name are `other`.
    enum Bidi: UInt8 {
        case other
        case leftToRight
        case rightToLeft
        case arabicLetter
        case arabicNumber
        case europeanNumber
        case europeanSeparator
        case commonSeparator
        case europeanTerminator
        case otherNeutral
        case boundaryNeutral
        case nonspacingMark
    }

    /// Joining_Type; those that RFC 5892 appendix A.1 does not name are `other`.
    enum Joining: UInt8 {
        case other
        case left
        case right
        case dual
        case transparent
    }

    /// Script, of those that context rules name (RFC 5892 appendix A).
    enum Script: UInt8 {
        case other
        case greek
        case hebrew
        case hiragana
        case katakana
        case han
    }

    /// The PRECIS category. Two bits that are none cannot come out of the tables.
    var precisClass: Class { Class(rawValue: UInt8(bits & 15)) ?? .other }
    /// Whether IDNA allows it in a label, alone or by a context rule: PVALID, CONTEXTJ or CONTEXTO (RFC 5892 §3).
    var isLabelCharacter: Bool { bits >> 4 & 1 != 0 }
    var bidi: Bidi { Bidi(rawValue: UInt8(bits >> 5 & 15)) ?? .other }
    var joining: Joining { Joining(rawValue: UInt8(bits >> 9 & 7)) ?? .other }
    var script: Script { Script(rawValue: UInt8(bits >> 12 & 7)) ?? .other }
    /// General_Category M.
    var isMark: Bool { bits >> 15 & 1 != 0 }
    /// NFC_Quick_Check is not Yes: NFC may change a text that has it.
    var mayChangeInNFC: Bool { bits >> 16 & 1 != 0 }
    /// Whether there is a mapping to lower case or of width.
    var isMapped: Bool { bits >> 17 & 1 != 0 }
    var isCased: Bool { bits >> 18 & 1 != 0 }
    var isCaseIgnorable: Bool { bits >> 19 & 1 != 0 }
    var combiningClass: UInt8 { UInt8(bits >> 20 & 0xff) }
    /// General_Category Zs.
    var isSpace: Bool { bits >> 28 & 1 != 0 }

    /// Canonical_Combining_Class Virama.
    var isVirama: Bool { combiningClass == 9 }
}

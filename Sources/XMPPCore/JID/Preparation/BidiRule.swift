/// The Bidi rule (RFC 5893 §2).
enum BidiRule {
    /// Whether a text has a character that is written from right to left, so that the rule is due.
    static func applies(to text: [Unicode.Scalar], _ tables: UnicodeTables) -> Bool {
        text.contains { scalar in
            // The first such character is a letter of Hebrew.
            guard scalar.value >= 0x590 else { return false }
            return switch tables[scalar].bidi {
            case .rightToLeft, .arabicLetter, .arabicNumber: true
            default: false
            }
        }
    }

    /// The number of the first condition that a label breaks, or `nil`.
    static func brokenCondition(by text: [Unicode.Scalar], _ tables: UnicodeTables) -> Int? {
        guard let first = text.first else { return nil }
        let classes = text.map { tables[$0].bidi }
        let end = classes.last { $0 != .nonspacingMark }
        switch tables[first].bidi {
        case .rightToLeft, .arabicLetter:
            let isAllowed = classes.allSatisfy {
                switch $0 {
                case .leftToRight, .other: false
                default: true
                }
            }
            guard isAllowed else { return 2 }
            guard [.rightToLeft, .arabicLetter, .europeanNumber, .arabicNumber].contains(end) else { return 3 }
            return classes.contains(.europeanNumber) && classes.contains(.arabicNumber) ? 4 : nil
        case .leftToRight:
            let isAllowed = classes.allSatisfy {
                switch $0 {
                case .rightToLeft, .arabicLetter, .arabicNumber, .other: false
                default: true
                }
            }
            guard isAllowed else { return 5 }
            return [.leftToRight, .europeanNumber].contains(end) ? nil : 6
        default: return 1
        }
    }
}

/// Why a text is not an XMPP address: which rule of RFC 7622 is broken, in which part.
public struct JIDError: Error, Sendable {
    /// The rule that is broken. More may be added; compare with the values that interest you.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the code, for records.
        public let description: String

        /// The part is there but has no character, or the domain is missing (RFC 7622 §3.1).
        public static let empty = Code(description: "empty")
        /// The part is longer than 1023 bytes of UTF-8 (RFC 7622 §3.1).
        public static let tooLong = Code(description: "too-long")
        /// A character that no part, or not this part, may hold (RFC 7622 §3.2 to §3.4).
        public static let forbiddenCharacter = Code(description: "forbidden-character")
        /// A character that Unicode, in the version that xmpptap knows, does not assign (RFC 8264 §9.10).
        public static let unassignedCharacter = Code(description: "unassigned-character")
        /// A character that is allowed only beside certain others (RFC 5892 appendix A).
        public static let contextRule = Code(description: "context-rule")
        /// Characters written from right to left, mixed in a way that could not be read (RFC 5893 §2).
        public static let bidiRule = Code(description: "bidi-rule")
        /// A label of the domain that IDNA does not allow: hyphens, Punycode, a mark at its beginning, its length (RFC
        /// 5891 §4.2).
        public static let badLabel = Code(description: "bad-label")
        /// The domain begins with `[` and is no IPv6 address in brackets (RFC 6874 for the zone).
        public static let badAddressLiteral = Code(description: "bad-address-literal")
        /// The bytes are not UTF-8.
        public static let notUTF8 = Code(description: "not-utf-8")
    }

    /// A part of an address.
    public enum Part: String, Sendable {
        /// Before the `@`.
        case local
        /// Between `@` and `/`.
        case domain
        /// After the first `/`.
        case resource
    }

    /// The rule that is broken.
    public let code: Code
    /// The part that breaks it.
    public let part: Part
    /// What exactly is wrong, in words; every character of the address is shown as a code point, never raw.
    public var reason: String {
        switch words {
        case .known(let reason): reason
        case .fault(let fault, let written): fault.reason(in: written)
        }
    }

    /// Words that most callers never ask for are put together when somebody does.
    private enum Words: Sendable {
        case known(String)
        /// `written` is the part before preparation, in which an offending code point is looked for.
        case fault(PreparationFault, written: Substring)
    }

    private let words: Words

    init(_ code: Code, in part: Part, _ reason: String) {
        self.code = code
        self.part = part
        words = .known(reason)
    }

    init(_ fault: PreparationFault, in part: Part, written: Substring) {
        code = fault.code
        self.part = part
        words = .fault(fault, written: written)
    }
}

extension JIDError: Equatable {
    /// Compares code and part; the words may change.
    public static func == (left: JIDError, right: JIDError) -> Bool {
        left.code == right.code && left.part == right.part
    }
}

extension JIDError: CustomStringConvertible {
    /// One line: the part and what is wrong with it.
    public var description: String { "\(part.rawValue) part: \(reason)" }
}

// MARK: - Preparation

/// Why a part of an address cannot be brought into the form in which it is compared.
enum PreparationFault: Error {
    /// A code point that the part's class does not hold.
    case disallowed(Unicode.Scalar, why: String)
    /// A code point that Unicode does not assign, in the version of ``UnicodeVersion``.
    case unassigned(Unicode.Scalar)
    /// A code point that is allowed only in certain company (RFC 5892 appendix A).
    case outOfContext(Unicode.Scalar)
    /// A condition of the Bidi rule, by its number (RFC 5893 §2), and the number of the label in a domain.
    case bidi(condition: Int, label: Int?)
    /// A label of the domain, by its number, and what is wrong with it.
    case label(Int, String)
    /// A label of the domain, by its number, that has no character.
    case emptyLabel(Int)
    /// Applying the rules again and again gives ever another text (RFC 8264 §7).
    case unstable
    /// Nothing is left, or nothing was there.
    case empty

    /// The rule that is broken.
    var code: JIDError.Code {
        switch self {
        case .disallowed, .unstable: .forbiddenCharacter
        case .unassigned: .unassignedCharacter
        case .outOfContext: .contextRule
        case .bidi: .bidiRule
        case .label: .badLabel
        case .emptyLabel, .empty: .empty
        }
    }

    /// What is wrong, in words; `written` is the part before preparation, in which an offending code point is looked for.
    func reason(in written: Substring) -> String {
        switch self {
        case .disallowed(let scalar, let why): return "\(scalar.place(in: written)) is not allowed there: \(why)"
        case .unassigned(let scalar):
            let version = UnicodeVersion.supported
            return "\(scalar.place(in: written)) is not assigned in Unicode \(version.major).\(version.minor)"
        case .outOfContext(let scalar): return "\(scalar.place(in: written)) is not allowed between its neighbours"
        case .bidi(let condition, let label):
            return "\(label.map { "label \($0)" } ?? "it") breaks condition \(condition) of the Bidi rule"
        case .label(let number, let why): return "label \(number) \(why)"
        case .emptyLabel(let number): return "label \(number) is empty"
        case .unstable: return "its preparation gives another result each time"
        case .empty: return "it is empty"
        }
    }
}

extension Unicode.Scalar {
    /// The code point and where it stands in a part, or the one that is mapped to it.
    fileprivate func place(in written: Substring) -> String {
        var offset = 0
        for scalar in written.unicodeScalars {
            if scalar == self { return "\(codePoint) at byte \(offset)" }
            if composed(lowercased([scalar.narrowed])).contains(self) {
                return "\(scalar.codePoint) at byte \(offset), mapped to \(codePoint),"
            }
            offset += scalar.utf8.count
        }
        return codePoint
    }
}

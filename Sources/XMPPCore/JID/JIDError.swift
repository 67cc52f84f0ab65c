/// The reason why a text is not an XMPP address: the violated rule of RFC 7622, and the part.
package struct JIDError: Error, Sendable {
    /// The violated rule. More codes may be added later.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the code, for records.
        package let description: String

        /// The part is present but empty, or the domain is missing (RFC 7622 §3.1).
        package static let empty = Code(description: "empty")
        /// The part is longer than 1023 bytes of UTF-8 (RFC 7622 §3.1).
        package static let tooLong = Code(description: "too-long")
        /// The part contains a character that is not allowed in it (RFC 7622 §3.2 to §3.4).
        package static let forbiddenCharacter = Code(description: "forbidden-character")
        /// The part contains a character that is unassigned in the supported Unicode version (RFC 8264 §9.10).
        package static let unassignedCharacter = Code(description: "unassigned-character")
        /// A character is not allowed next to its neighbours (RFC 5892 appendix A).
        package static let contextRule = Code(description: "context-rule")
        /// The part violates the Bidi rule for right-to-left text (RFC 5893 §2).
        package static let bidiRule = Code(description: "bidi-rule")
        /// IDNA does not allow a label of the domain, because of hyphens, Punycode, an initial mark or its length (RFC
        /// 5891 §4.2).
        package static let badLabel = Code(description: "bad-label")
        /// The domain begins with `[`, but is not an IPv6 address in brackets (RFC 6874 for the zone).
        package static let badAddressLiteral = Code(description: "bad-address-literal")
        /// The bytes are not UTF-8.
        package static let notUTF8 = Code(description: "not-utf-8")
    }

    /// A part of an address.
    package enum Part: String, Sendable {
        /// Before the `@`.
        case local
        /// Between `@` and `/`.
        case domain
        /// After the first `/`.
        case resource
    }

    /// The violated rule.
    package let code: Code
    /// The part that violates it.
    package let part: Part
    /// The error, as a human-readable clause; characters of the address are shown as code points.
    package var reason: String {
        switch detail {
        case .known(let reason): reason
        case .fault(let fault, let written): fault.reason(in: written)
        }
    }

    /// The reason; formatted only on request, because most callers do not need it.
    private enum Detail: Sendable {
        case known(String)
        /// `written` is the part before preparation, which is searched for the code point.
        case fault(PreparationFault, written: Substring)
    }

    private let detail: Detail

    init(_ code: Code, in part: Part, _ reason: String) {
        self.code = code
        self.part = part
        detail = .known(reason)
    }

    init(_ fault: PreparationFault, in part: Part, written: Substring) {
        code = fault.code
        self.part = part
        detail = .fault(fault, written: written)
    }
}

extension JIDError: Equatable {
    /// Compares code and part, but not the text.
    package static func == (left: JIDError, right: JIDError) -> Bool {
        left.code == right.code && left.part == right.part
    }
}

extension JIDError: CustomStringConvertible {
    /// The error as one line: the part and the reason.
    package var description: String { "\(part.rawValue) part: \(reason)" }
}

// MARK: - Preparation

/// The reason why a part of an address cannot be prepared.
enum PreparationFault: Error {
    /// A code point that is not in the class of the part.
    case disallowed(Unicode.Scalar, why: String)
    /// A code point that is unassigned in the version of ``UnicodeVersion``.
    case unassigned(Unicode.Scalar)
    /// A code point that is not allowed next to its neighbours (RFC 5892 appendix A).
    case outOfContext(Unicode.Scalar)
    /// A violated condition of the Bidi rule (RFC 5893 §2), and the number of the label in a domain.
    case bidi(condition: Int, label: Int?)
    /// An invalid label of the domain, by number, with the reason.
    case label(Int, String)
    /// An empty label of the domain, by number.
    case emptyLabel(Int)
    /// Repeated application of the rules does not reach a stable text (RFC 8264 §7).
    case unstable
    /// The text is empty, before or after preparation.
    case empty

    /// The violated rule.
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

    /// Returns the error, as a human-readable clause; `written` is the part before preparation, which is searched for
    /// the code point.
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
    /// Returns the code point with its position in a part; if it is the result of a mapping, the original code point
    /// with its position.
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

/// Prepares an address for comparison (RFC 7622 §3.2.1, §3.3.1, §3.4.1).
///
/// The domain loses a trailing dot, is mapped to lower case, and its A-labels become U-labels. The local part is mapped
/// to lower case. The resource is case-sensitive. Only called for addresses that may change: plain ASCII in lower case
/// is already prepared.
func prepare(_ written: JID.Form, _ mappings: Mappings) throws(JIDError) -> JID.Form {
    var text = ""
    var localLength = 0
    if let local = written.local {
        text += try prepareLocal(local, mappings)
        localLength = text.utf8.count
        text += "@"
    }
    let domain = try prepareDomain(written.domain, mappings)
    text += domain
    if let resource = written.resource {
        text += "/"
        text +=
            mappings.contains(.resourceUnicode)
            ? try prepare(resource, .resource, Precis.opaqueString) : String(resource)
    }
    return JID.Form(text: text, localLength: localLength, domainLength: domain.utf8.count)
}

private func prepareLocal(_ local: Substring, _ mappings: Mappings) throws(JIDError) -> String {
    guard mappings.contains(.localUnicode) else {
        return mappings.contains(.localCase) ? local.lowercased() : String(local)
    }
    return try prepare(local, .local) { text throws(PreparationFault) in
        let prepared = try Precis.usernameCaseMapped(text)
        // Width mapping may produce characters that a local part excludes.
        for scalar in prepared where scalar.isASCII && isExcludedFromLocal(UInt8(truncatingIfNeeded: scalar.value)) {
            throw .disallowed(scalar, why: "a local part must not contain it")
        }
        return prepared
    }
}

private func prepareDomain(_ domain: Substring, _ mappings: Mappings) throws(JIDError) -> String {
    if mappings.contains(.domainUnicode) { return try prepare(domain, .domain, DomainName.prepared) }
    guard mappings.contains(.domainCase) else { return String(domain) }
    return (domain.utf8.last == UInt8(ascii: ".") ? domain.dropLast() : domain).lowercased()
}

/// Applies the rules of a part to its text.
private func prepare(
    _ written: Substring,
    _ part: JIDError.Part,
    _ rules: ([Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar]
) throws(JIDError) -> String {
    let prepared: [Unicode.Scalar]
    do throws(PreparationFault) {
        prepared = try rules(Array(written.unicodeScalars))
    } catch {
        throw JIDError(error, in: part, written: written)
    }
    var text = String(String.UnicodeScalarView(prepared))
    text.makeContiguousUTF8()
    guard text.utf8.count <= JID.maximumPartLength else {
        throw JIDError(
            .tooLong,
            in: part,
            "\(text.utf8.count) bytes when prepared, \(JID.maximumPartLength) are allowed"
        )
    }
    return text
}

// MARK: - Profiles

/// The PRECIS profiles of local part and resource (RFC 8265), based on the classes of RFC 8264.
///
/// Mappings are applied before the class is checked (RFC 8264 §7): a KELVIN SIGN in a local part becomes a `k`,
/// although the sign itself is not allowed.
enum Precis {
    /// Applies UsernameCaseMapped (RFC 8265 §3.3): width, lower case, NFC, Bidi rule, IdentifierClass.
    static func usernameCaseMapped(_ text: [Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar] {
        try settled(text) { text throws(PreparationFault) in
            let mapped = composed(lowercased(text.map(\.narrowed)))
            if BidiRule.applies(to: mapped), let condition = BidiRule.brokenCondition(by: mapped) {
                throw .bidi(condition: condition, label: nil)
            }
            try check(mapped, isIdentifier: true)
            return mapped
        }
    }

    /// Applies OpaqueString (RFC 8265 §4.2): spaces become U+0020, NFC, FreeformClass.
    static func opaqueString(_ text: [Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar] {
        try settled(text) { text throws(PreparationFault) in
            let mapped = composed(text.map { $0.properties.generalCategory == .spaceSeparator ? " " : $0 })
            try check(mapped, isIdentifier: false)
            return mapped
        }
    }

    /// Applies rules until the text is stable; RFC 8264 §7 allows three more applications.
    private static func settled(
        _ text: [Unicode.Scalar],
        _ apply: ([Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar]
    ) throws(PreparationFault) -> [Unicode.Scalar] {
        guard !text.isEmpty else { throw .empty }
        var text = text
        for _ in 0...3 {
            let next = try apply(text)
            if next == text { return text }
            text = next
        }
        throw .unstable
    }

    /// Checks that each code point is in the IdentifierClass (RFC 8264 §4.2) or the FreeformClass (§4.3).
    static func check(_ text: [Unicode.Scalar], isIdentifier: Bool) throws(PreparationFault) {
        var context: ContextRules?
        for (position, scalar) in text.enumerated() {
            let category = scalar.precisCategory
            switch category {
            case .valid: break
            case .unassigned: throw .unassigned(scalar)
            case .contextJ, .contextO:
                let rules = context ?? ContextRules(text)
                context = rules
                guard rules.allows(at: position) else { throw .outOfContext(scalar) }
            case .compatibility, .otherLetterDigit, .space, .symbol, .punctuation:
                if isIdentifier { throw .disallowed(scalar, why: category.reason) }
            case .exception, .oldHangulJamo, .ignorable, .control, .other:
                throw .disallowed(scalar, why: category.reason)
            }
        }
    }
}

/// Returns a text in Normalization Form C (UAX #15).
///
/// The standard library provides this form only through an underscored property. It uses a later Unicode version, but a
/// new version never changes the form of characters that are already assigned (UAX #15 §3, stability).
func composed(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
    // Text with only smaller code points is always in NFC.
    guard text.contains(where: { $0.value >= 0x300 }) else { return text }
    return Array(String(decoding: String(String.UnicodeScalarView(text))._nfcCodeUnits, as: UTF8.self).unicodeScalars)
}

/// Applies the language-independent toLowercase (the Unicode Standard §3.13, R2).
func lowercased(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
    var result: [Unicode.Scalar] = []
    result.reserveCapacity(text.count)
    for (position, scalar) in text.enumerated() {
        // A final sigma follows a cased letter and precedes none (the Unicode Standard, table 3-17).
        if scalar == "Σ" {
            let before = text[..<position].last { !$0.properties.isCaseIgnorable }
            let after = text[(position + 1)...].first { !$0.properties.isCaseIgnorable }
            let isFinal = before?.properties.isCased == true && after?.properties.isCased != true
            result.append(isFinal ? "ς" : "σ")
        } else {
            result += scalar.lowercase
        }
    }
    return result
}

extension PrecisCategory {
    /// The reason why a code point of this category is not allowed, for errors.
    fileprivate var reason: String {
        switch self {
        case .valid: "it is allowed"
        case .contextJ, .contextO: "it is allowed only next to certain other characters"
        case .unassigned: "it is not assigned"
        case .exception: "RFC 5892 excepts it"
        case .oldHangulJamo: "it is an Old Hangul letter"
        case .ignorable: "it is ignorable"
        case .control: "it is a control character"
        case .compatibility: "it is a compatibility form of other characters"
        case .otherLetterDigit: "it is not a plain letter or digit"
        case .space: "it is a space"
        case .symbol: "it is a symbol"
        case .punctuation: "it is punctuation"
        case .other: "it is not a letter, digit, mark, symbol or punctuation"
        }
    }
}

// MARK: - Context rules

/// The Bidi rule (RFC 5893 §2).
enum BidiRule {
    /// Returns whether a text contains right-to-left characters, so that the rule applies.
    static func applies(to text: [Unicode.Scalar]) -> Bool {
        // The first right-to-left character is a Hebrew letter.
        text.contains { $0.value >= 0x590 && [.rightToLeft, .arabicNumber].contains($0.bidiClass) }
    }

    /// Returns the number of the first violated condition; nil if there is none.
    static func brokenCondition(by text: [Unicode.Scalar]) -> Int? {
        let classes = text.map(\.bidiClass)
        guard let first = classes.first else { return nil }
        let end = classes.last { $0 != .nonspacingMark }
        switch first {
        case .rightToLeft:
            guard !classes.contains(.leftToRight) else { return 2 }
            guard [.rightToLeft, .europeanNumber, .arabicNumber].contains(end) else { return 3 }
            return classes.contains(.europeanNumber) && classes.contains(.arabicNumber) ? 4 : nil
        case .leftToRight:
            guard !classes.contains(.rightToLeft), !classes.contains(.arabicNumber) else { return 5 }
            return [.leftToRight, .europeanNumber].contains(end) ? nil : 6
        default: return 1
        }
    }
}

/// The rules for code points that need certain neighbours (RFC 5892 appendix A, for PRECIS RFC 8264 §9.6 and §9.8), for
/// one label or string.
struct ContextRules {
    private let text: [Unicode.Scalar]
    /// Computed once per text: rules that depend on the whole text would otherwise take quadratic time.
    private let hasJapanese: Bool
    private let hasArabicIndicDigits: Bool
    private let hasExtendedArabicIndicDigits: Bool

    init(_ text: [Unicode.Scalar]) {
        self.text = text
        hasJapanese =
            text.contains("\u{30fb}")
            && String(String.UnicodeScalarView(text)).contains(
                #/[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/#.matchingSemantics(.unicodeScalar)
            )
        hasArabicIndicDigits = text.contains { Self.arabicIndicDigits ~= $0.value }
        hasExtendedArabicIndicDigits = text.contains { Self.extendedArabicIndicDigits ~= $0.value }
    }

    private static let arabicIndicDigits: ClosedRange<UInt32> = 0x660...0x669
    private static let extendedArabicIndicDigits: ClosedRange<UInt32> = 0x6f0...0x6f9

    /// Returns whether the code point at a position, of category contextJ or contextO, is allowed there.
    func allows(at position: Int) -> Bool {
        let before = position > 0 ? text[position - 1] : nil
        let after = position + 1 < text.count ? text[position + 1] : nil
        return switch text[position].value {
        // A.1 and A.2: both joiners may follow a virama; the non-joiner may also separate letters that would join.
        case 0x200c: before?.isVirama == true || partsJoiningLetters(at: position)
        case 0x200d: before?.isVirama == true
        // A.3: the middle dot of Catalan.
        case 0xb7: before == "l" && after == "l"
        // A.4: the keraia precedes a Greek letter.
        case 0x375: after?.isGreek == true
        // A.5 and A.6: geresh and gershayim follow a Hebrew letter.
        case 0x5f3, 0x5f4: before?.isHebrew == true
        // A.7: the middle dot of katakana.
        case 0x30fb: hasJapanese
        // A.8 and A.9: only one kind of Arabic digits.
        case Self.arabicIndicDigits: !hasExtendedArabicIndicDigits
        case Self.extendedArabicIndicDigits: !hasArabicIndicDigits
        default: false
        }
    }

    /// Returns whether the context is `(L|D) T* ZWNJ T* (R|D)` in joining types.
    private func partsJoiningLetters(at position: Int) -> Bool {
        guard let before = text[..<position].last(where: { !$0.isTransparentToJoining }),
            let after = text[(position + 1)...].first(where: { !$0.isTransparentToJoining })
        else { return false }
        return before.joinsNext && after.joinsPrevious
    }
}

extension Unicode.Scalar {
    fileprivate var isVirama: Bool { properties.canonicalCombiningClass == .virama }

    /// Whether the code point is in the script Greek, as listed in Scripts.txt of Unicode 15.0.
    var isGreek: Bool {
        switch value {
        case 0x370...0x373, 0x375...0x377, 0x37a...0x37d, 0x37f, 0x384, 0x386, 0x388...0x38a, 0x38c,
            0x38e...0x3a1, 0x3a3...0x3e1, 0x3f0...0x3ff, 0x1d26...0x1d2a, 0x1d5d...0x1d61, 0x1d66...0x1d6a,
            0x1dbf, 0x1f00...0x1f15, 0x1f18...0x1f1d, 0x1f20...0x1f45, 0x1f48...0x1f4d, 0x1f50...0x1f57,
            0x1f59, 0x1f5b, 0x1f5d, 0x1f5f...0x1f7d, 0x1f80...0x1fb4, 0x1fb6...0x1fc4, 0x1fc6...0x1fd3,
            0x1fd6...0x1fdb, 0x1fdd...0x1fef, 0x1ff2...0x1ff4, 0x1ff6...0x1ffe, 0x2126, 0xab65,
            0x10140...0x1018e, 0x101a0, 0x1d200...0x1d245:
            true
        default: false
        }
    }

    /// Whether the code point is in the script Hebrew, as listed in Scripts.txt of Unicode 15.0.
    var isHebrew: Bool {
        switch value {
        case 0x591...0x5c7, 0x5d0...0x5ea, 0x5ef...0x5f4, 0xfb1d...0xfb36, 0xfb38...0xfb3c, 0xfb3e,
            0xfb40...0xfb41, 0xfb43...0xfb44, 0xfb46...0xfb4f:
            true
        default: false
        }
    }
}

internal import TapRecord
internal import XMPPCore

/// Why an expression is not a ``RecordFilter``.
public struct FilterFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where, in characters from 1.
    public let column: Int
    /// `column COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    public let description: String

    init(_ fault: RuleFault) {
        column = fault.column
        description = fault.words(behind: "column \(fault.column)")
    }
}

/// A filter as it was written.
indirect enum FilterExpression: Sendable {
    case condition(FilterCondition)
    case not(FilterExpression)
    case all([FilterExpression])
    case any([FilterExpression])

    /// Whether a condition looks into the XML of items.
    var readsXML: Bool {
        switch self {
        case .condition(.xml), .condition(.text): true
        case .condition(.item(let test)): test.readsXML
        case .condition: false
        case .not(let inner): inner.readsXML
        case .all(let parts), .any(let parts): parts.contains { $0.readsXML }
        }
    }
}

/// What a filter asks of a record.
indirect enum FilterCondition: Sendable {
    /// An item of one of these kinds, or another record of one of those.
    case kind(RuleKinds, Set<Record.Kind>)
    /// At least so severe.
    case level(Level)
    case part(Set<Part>)
    case code(Set<String>)
    case action(Set<String>)
    /// A part of `FILE:LINE` of the rule that acted.
    case rule(String)
    /// Of the login, or of the session behind it.
    case handshake(Bool)
    case payload(StanzaPath.Step)
    case id([UInt8])
    /// In the XML of the item.
    case xml(TextSearch)
    /// In a text of the item.
    case text(StanzaPath, TextSearch)
    /// What rules ask.
    case item(RuleTest)
}

/// How a text is looked for.
enum TextSearch: Sendable {
    case contains([UInt8])
    case equals([UInt8])
    case matches(RegularExpression)

    func matches(_ text: Span<UInt8>) throws(PatternTooComplex) -> Bool {
        switch self {
        case .contains(let wanted): return text.contains(wanted.span)
        case .equals(let wanted): return text.equals(wanted.span)
        case .matches(let expression):
            var bytes: [UInt8] = []
            bytes.append(text)
            return try expression.firstMatch(in: bytes) != nil
        }
    }
}

extension RuleTest {
    /// Whether the head of an item is not enough.
    var readsXML: Bool {
        switch self {
        case .inspect: true
        case .exactly(_, let text): text.literal == nil
        case .element(let step): step.namespace != nil
        default: false
        }
    }
}

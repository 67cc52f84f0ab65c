internal import TapRecord
internal import XMPPCore

/// The error of an expression that cannot be parsed as a ``RecordFilter``.
package struct FilterFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The column of the error, in characters from 1.
    package let column: Int
    /// `column COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    package let description: String

    init(_ fault: RuleFault) {
        column = fault.column
        description = fault.description(after: "column \(fault.column)")
    }
}

/// The syntax tree of a filter.
indirect enum FilterExpression: Sendable {
    case condition(FilterCondition)
    case not(FilterExpression)
    case all([FilterExpression])
    case any([FilterExpression])

    /// Whether a condition reads the XML of the record.
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

/// A condition of a filter on a record.
indirect enum FilterCondition: Sendable {
    /// A stanza or element of one of the ``RuleKinds``, or a record of one of the ``Record/Kind`` values.
    case kind(RuleKinds, Set<Record.Kind>)
    /// The minimum level.
    case level(Level)
    case part(Set<Part>)
    case code(Set<String>)
    /// The condition of a stanza, stream or SASL error.
    case errorCondition(Set<String>)
    case action(Set<String>)
    /// A substring of the `FILE:LINE` of the rule that applied.
    case rule(String)
    /// Records of the login if true; records after the login if false.
    case handshake(Bool)
    case payload(StanzaPath.Step)
    case id([UInt8])
    /// A search in the whole XML of the item.
    case xml(TextSearch)
    /// A search in the text at a path of the item.
    case text(StanzaPath, TextSearch)
    /// A condition that rule files support as well.
    case item(RuleTest)
}

/// A comparison of a text with a string or a pattern.
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
    /// Whether evaluating the condition needs the element tree, because the stanza's attributes are not sufficient.
    var readsXML: Bool {
        switch self {
        case .inspect: true
        case .exactly(_, let text): text.literal == nil
        case .element(let step): step.namespace != nil
        default: false
        }
    }
}

internal import Synchronization
package import TapRecord
internal import XMPPCore

/// A filter expression that selects records. Its conditions are those of rule files.
///
/// ```
/// message and (with:juliet@example.org or not payload:{urn:xmpp:ping}ping) and body~"hello"
/// ```
///
/// A condition on a property that a record does not have is false, so its negation is true: `not presence` also selects
/// records that are not about stanzas. Conditions do not see redacted content.
package struct RecordFilter: Sendable {
    /// The expression as entered.
    package let text: String
    /// Whether a condition reads the XML of items; records without XML do not match such a condition.
    package let readsXML: Bool
    /// Byte strings of which at least one appears verbatim in the JSON line of each matching record; nil if there are
    /// none. Lines with a character reference (`&#…;`), a CDATA section or a `\u` escape can match without containing
    /// any of them.
    package let literals: [[UInt8]]?

    /// Conditions that are valid but probably a mistake, a sentence each.
    package let warnings: [String]
    /// The first condition on what becomes known after a stanza has arrived, such as `action:`; nil if there is none.
    /// Such a filter cannot select stanzas on arrival.
    package let laterCondition: FilterFault?

    private let expression: FilterExpression
    private let rules: RuleSet
    private let reader = Reader()

    /// Parses items into element trees.
    private final class Reader: Sendable {
        private let checker = Mutex(ItemChecker())

        func element(_ bytes: [UInt8]) -> Element? {
            checker.withLock { try? $0.check(bytes, content: .client) }
        }
    }

    /// Maximum nesting depth of parentheses and `not`.
    package static var maximumDepth: Int { FilterParser.maximumDepth }

    /// Parses an expression.
    ///
    /// - Throws: ``FilterFault`` with the column of the first error.
    package init(_ text: String) throws(FilterFault) {
        self.text = text
        do throws(RuleFault) {
            var parser = FilterParser(text)
            expression = try parser.parse()
            rules = RuleSet(parser.rules)
            warnings = parser.warnings
            laterCondition = parser.laterCondition.map { FilterFault($0) }
        } catch {
            throw FilterFault(error)
        }
        readsXML = expression.readsXML
        literals = expression.literals
    }

    /// Returns whether a record matches. Can be called from any thread.
    ///
    /// - Parameter content: The bytes that the ranges of the record refer to.
    package func matches(_ record: Record, content: Span<UInt8>) -> Bool {
        var tree = Tree()
        // A pattern that is too complex makes the whole expression false, even if the condition is negated.
        return (try? holds(expression, record, content, &tree)) ?? false
    }

    /// Returns the expression that matches if both expressions match.
    package static func joined(_ first: String, _ second: String) -> String { "(\(first)) and (\(second))" }

    /// The element tree of the record, parsed on first use.
    private struct Tree {
        var element: Element?
        var isRead = false
    }

    private func holds(
        _ expression: FilterExpression,
        _ record: Record,
        _ content: Span<UInt8>,
        _ tree: inout Tree
    ) throws(PatternTooComplex) -> Bool {
        switch expression {
        case .condition(let condition): return try holds(condition, record, content, &tree)
        case .not(let inner): return try !holds(inner, record, content, &tree)
        case .all(let parts):
            for part in parts { guard try holds(part, record, content, &tree) else { return false } }
            return true
        case .any(let parts):
            for part in parts { if try holds(part, record, content, &tree) { return true } }
            return false
        }
    }

    private func holds(
        _ condition: FilterCondition,
        _ record: Record,
        _ content: Span<UInt8>,
        _ tree: inout Tree
    ) throws(PatternTooComplex) -> Bool {
        switch condition {
        case .kind(let kinds, let records):
            if records.contains(record.kind) { return true }
            return RuleKinds(record, content.slice(record.name ?? .empty)).map { kinds.contains($0) } ?? false
        case .level(let level): return record.level <= level
        case .part(let parts): return parts.contains(record.part)
        case .code(let codes):
            guard let code = record.code else { return false }
            // A failed login has the code of its cause, too.
            let cause = code == Record.Code.loginFailed ? record.details?[Record.Detail.cause]?.text : nil
            return codes.contains(code) || cause.map { codes.contains($0) } ?? false
        case .errorCondition(let conditions): return record.condition.map { conditions.contains($0) } ?? false
        case .action(let actions): return record.action.map { actions.contains($0) } ?? false
        case .rule(let place):
            guard let named = record.rule ?? record.details?["rule"]?.text else { return false }
            // The line of a rule is at the end: `:4` is not the beginning of `:40`.
            let isLine = place.last?.isNumber == true && place.drop { $0 != ":" }.isEmpty == false
            return isLine ? named.hasSuffix(place) : named.contains(place)
        case .handshake(let isWanted):
            guard record.session > 0 else { return false }
            // The response to resource binding has a JID already, but is part of the login.
            let isLogin = record.jid == nil || record.part == .sasl || record.payloadNamespace == .bind
            return isLogin == isWanted
        case .payload(let step):
            guard record.isElement, let name = record.payloadName else { return false }
            if step.name.map({ content.slice(name).equals($0.span) }) ?? true,
                record.payload(isIn: step.namespace, content)
            {
                return true
            }
            return element(record, content, &tree)?.firstChild { child in
                (step.name.map { child.isNamed($0) } ?? true) && (step.namespace.map { child.isIn($0) } ?? true)
            } != nil
        case .id(let id): return record.id.map { content.slice($0).equals(id.span) } ?? false
        case .xml(let search):
            guard let xml = record.xml else { return false }
            return try search.matches(content.slice(xml))
        case .text(let path, let search):
            guard record.isElement, let element = element(record, content, &tree), let found = path.text(in: element)
            else { return false }
            return try search.matches(found.span)
        case .item(let test): return try holds(test, record, content, &tree)
        }
    }

    /// Evaluates a condition that rule files support as well. Conditions on the session apply to all records of the
    /// session, conditions on addresses only to stanzas.
    private func holds(_ test: RuleTest, _ record: Record, _ content: Span<UInt8>, _ tree: inout Tree)
        throws(PatternTooComplex) -> Bool
    {
        switch test {
        case .direction(let direction): return record.direction == direction
        case .session(let numbers): return numbers.contains(record.session)
        case .sessionAddress(let pattern):
            guard let owner = record.owner else { return false }
            return try pattern.matches(RuleAddress(owner))
        case .size(let comparison, let size):
            return record.direction != nil && comparison.holds(record.length, UInt64(clamping: size))
        case .roundTrip(let comparison, let time): return record.roundTrip.map { comparison.holds($0, time) } ?? false
        case .origin(let origin): return record.direction != nil && record.origin == origin
        case .element(let step):
            guard record.isElement, let name = record.name else { return false }
            guard step.name.map({ content.slice(name).equals($0.span) }) ?? true else { return false }
            return step.namespace.map { element(record, content, &tree)?.isIn($0) ?? false } ?? true
        case .inspect: guard record.isElement else { return false }
        default: guard record.kind == .stanza else { return false }
        }
        guard let direction = record.direction else { return false }
        var context = RuleContext()
        context.jid = record.jid
        context.clientAddress = record.remote.map(RuleContext.host)
        let read = test.readsXML ? element(record, content, &tree) : nil
        // The state is discarded, because conditions that count are not allowed in filters.
        var state = RuleState(seed: 0)
        var judgement = RuleEvaluation(rules, RuleItem(direction, StanzaHead(record, content), content), context)
        return try judgement.holds(test, { read }, &state)
    }

    private func element(_ record: Record, _ content: Span<UInt8>, _ tree: inout Tree) -> Element? {
        guard !tree.isRead else { return tree.element }
        tree.isRead = true
        guard let xml = record.xml, !record.isTruncated else { return nil }
        var bytes: [UInt8] = []
        bytes.append(content.slice(xml))
        tree.element = reader.element(bytes)
        return tree.element
    }
}

extension RecordFilter: Hashable {
    /// Returns whether both filters have the same text.
    package static func == (left: RecordFilter, right: RecordFilter) -> Bool { left.text == right.text }

    /// Hashes the text.
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension Record {
    fileprivate var isElement: Bool { kind == .stanza || kind == .element }

    fileprivate func payload(isIn namespace: NamespaceKey?, _ content: Span<UInt8>) -> Bool {
        guard let namespace else { return true }
        guard payloadNamespace == namespace.namespace else { return false }
        return payloadNamespace != .other || content.slice(payloadURI ?? .empty).equals(namespace.uri.span)
    }

    /// The JID of the session; before resource binding, the user name and domain known so far.
    fileprivate var owner: String? {
        if let jid { return jid }
        guard let user, !user.utf8.contains(UInt8(ascii: "@")), let domain else { return user ?? domain }
        return "\(user)@\(domain)"
    }
}

extension RuleKinds {
    /// Creates the kind of the recorded item; nil if the record is not about an item.
    fileprivate init?(_ record: Record, _ name: Span<UInt8>) {
        switch record.kind {
        case .element: self = .nonza
        case .stanza: self = name.equals("message") ? .message : name.equals("presence") ? .presence : .iq
        default: return nil
        }
    }
}

extension StanzaHead {
    /// Creates the head of a recorded stanza. The attributes of records are decoded already.
    fileprivate init(_ record: Record, _ content: Span<UInt8>) {
        self.init()
        switch RuleKinds(record, content.slice(record.name ?? .empty)) {
        case .message?: kind = .message
        case .presence?: kind = .presence
        case .iq?: kind = .iq
        default: kind = .nonza
        }
        name = record.name ?? .empty
        id = record.id.map { Attribute(decoded: $0) }
        type = record.type.map { Attribute(decoded: $0) }
        from = record.from.map { Attribute(decoded: $0) }
        to = record.to.map { Attribute(decoded: $0) }
    }
}

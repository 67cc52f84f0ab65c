internal import TapRules
internal import XMPPCore

/// Rules for the differences to ignore when two sessions are compared by meaning: first the rules of noise files, then
/// the built-in rules.
///
/// A line of a noise file contains a ``Locator`` and an action; `#` begins a comment line.
///
///     # The server's version is of no interest here.
///     iq/{jabber:iq:version}query/version/text() present
///     message/body/text() regex ^Your code is [0-9]{6}$
///     iq/{urn:example:load}load/@value number ± 0.5
///     message/{urn:example:trace}trace ignore
///     **/{urn:example:ticket}ticket/@id bind token
///     message/{urn:example:trace}trace may be absent
///     message/@xml:lang may be absent
///     iq[@type=get][{urn:example:poll}query] any number
package struct NoiseRules: Sendable {
    /// The action for a value or element.
    package enum Action: Sendable {
        /// Ignore it, whether or not it is present.
        case ignore
        /// A value must be present, and any value is accepted.
        case present
        /// A value must be present, and any value is accepted; a client sends the live value to which the recorded one
        /// was first bound.
        case follow(ValueClass)
        /// Both sides must match a regular expression, as for `body~` in rule files.
        case matches(Expression)
        /// Both numbers may differ by at most `within`.
        case number(within: Double)
        /// The value differs between sessions, but must correspond consistently wherever it occurs.
        case bind(ValueClass)
        /// Like `bind` for the part after the last `#`; a value without `#` is compared literally.
        case bindSuffix(ValueClass)
        /// A JID: account and domain are mapped, the resource differs between sessions.
        case address
        /// How often, and in which order, an element or attribute may occur.
        case occurs(Occurrence)
    }

    /// The number and order in which an element may occur in a stanza, or in which a server may send a stanza other
    /// than an answer.
    package enum Occurrence: String, Sendable, Hashable, CaseIterable {
        /// The element, attribute or stanza is optional.
        case mayBeAbsent = "may be absent"
        /// The element or stanza is optional, and may occur more often than recorded.
        case anyNumber = "any number"
        /// For a stanza, its position among the stanzas of its sender does not matter. For an element, the order of its
        /// children does not matter.
        case anyOrder = "any order"
    }

    /// A regular expression with its text.
    package struct Expression: Sendable {
        /// The expression as it was written.
        package let text: String
        private let compiled: RegularExpression

        init(_ text: String) throws(PatternFault) {
            compiled = try RegularExpression(Array(text.utf8))
            self.text = text
        }

        /// Returns whether a value matches; false if matching exceeds the complexity limit.
        func matches(_ value: [UInt8]) -> Bool { (try? compiled.matches(value)) ?? false }
    }

    /// A place in a stanza, and the action for it.
    package struct Rule: Sendable {
        /// The place.
        package let locator: Locator
        /// The action.
        package let action: Action
        /// The source of the rule, such as `XEP-0199 §4.1`: the comment at the end of its line; nil if there is none.
        package let source: String?

        package init(_ locator: Locator, _ action: Action, source: String? = nil) {
            self.locator = locator
            self.action = action
            self.source = source
        }
    }

    /// The occurrence rules for a stanza.
    struct Occurrences {
        var mayBeAbsent = false
        var isAnyNumber = false
        var isAnyOrder = false
        /// The source of the first rule about the number of occurrences.
        var source: String?
    }

    /// The rules in order; the first rule for a place applies.
    package var rules: [Rule] { shared.tables.rules }
    /// Whether a rule allows stanzas in any order.
    var hasAnyOrder: Bool { shared.tables.hasAnyOrder }

    private final class Shared: Sendable {
        let tables: NoiseTables

        init(_ own: [Rule]) { tables = NoiseTables(own) }
    }

    /// The tables, shared by all copies, because comparisons copy the rules often.
    private let shared: Shared

    /// Creates the list of rules: first those of noise files, which are given, then the built-in rules.
    package init(_ own: [Rule] = []) { shared = Shared(own) }

    static let elementTarget: UInt64 = 1
    static let textTarget: UInt64 = 2
    static let occurrenceTarget: UInt64 = 3

    /// Returns the lookup key of a target.
    static func key(_ target: Locator.Target) -> UInt64 {
        switch target {
        case .element: elementTarget
        case .text: textTarget
        case .attribute(let uri, let name): key(name.span, uri.span)
        }
    }

    /// Returns the key with which the occurrence of an attribute is looked up, from the attribute's own key.
    static func occurrenceKey(_ key: UInt64) -> UInt64 { Hash.mix(key, occurrenceTarget) }

    /// Returns the lookup key of an attribute.
    static func key(_ name: Span<UInt8>, _ uri: Span<UInt8>) -> UInt64 {
        Hash.mix(Hash.of(name, seed: 3), uri.isEmpty ? 0 : Hash.of(uri, seed: 4))
    }

    /// Finds the rules for the last element of `path`, which starts with the stanza. Pass the result to
    /// ``action(for:_:)``.
    ///
    /// - Parameter name: Hash of the element's name with ``Hash/nameSeed``.
    func fill(_ found: inout [Int], for path: [Element], name: UInt64) {
        found.removeAll(keepingCapacity: true)
        guard let element = path.last else { return }
        let space = element.isContent ? Namespace.client : element.namespace
        add(shared.tables.byNamespace[Int(space.rawValue)].candidates(name), path, to: &found)
        guard !shared.tables.anywhere.isEmpty else { return }
        let count = found.count
        add(shared.tables.anywhere.candidates(name), path, to: &found)
        if count > 0, found.count > count { found.sort() }
    }

    /// Finds the rules for the last element of `path`, and hashes its name.
    func fill(_ found: inout [Int], for path: [Element]) {
        let name = path.last?.withName { Hash.of($0, seed: Hash.nameSeed) }
        fill(&found, for: path, name: name ?? 0)
    }

    private func add(_ candidates: [NoiseTables.Candidate], _ path: [Element], to found: inout [Int]) {
        for candidate in candidates {
            let isMeant =
                switch candidate.reach {
                case .anywhere: true
                case .client: path.last?.namespace == .client
                case .stanza: path.count == 1
                case .conditional:
                    path.count == 1 && shared.tables.rules[candidate.index].locator.hasConditions(path[0])
                case .path: shared.tables.rules[candidate.index].locator.matches(path)
                }
            if isMeant { found.append(candidate.index) }
        }
    }

    /// Returns the first rule, with its index, for an attribute (given as ``key(_:_:)``), the text or the element; nil
    /// if there is none.
    func action(for target: UInt64, _ found: [Int]) -> (Int, Action)? {
        for index in found where shared.tables.targets[index] == target {
            return (index, shared.tables.rules[index].action)
        }
        return nil
    }

    /// Returns the occurrence rules for a stanza. Built-in rules apply only to stanzas that the server itself sends,
    /// not to stanzas that it relays.
    func occurrences(of stanza: Element) -> Occurrences {
        var occurrences = Occurrences()
        guard shared.tables.stanzaNames.mayHold(stanza) else { return occurrences }
        var found: [Int] = []
        fill(&found, for: [stanza])
        guard !found.isEmpty else { return occurrences }
        let isOfServer = stanza.isOfServer
        for index in found
        where shared.tables.targets[index] == Self.occurrenceTarget && (index < shared.tables.ownCount || isOfServer) {
            guard case .occurs(let occurrence) = shared.tables.rules[index].action else { continue }
            switch occurrence {
            case .anyOrder: occurrences.isAnyOrder = true
            case .anyNumber: (occurrences.mayBeAbsent, occurrences.isAnyNumber) = (true, true)
            case .mayBeAbsent: occurrences.mayBeAbsent = true
            }
            if occurrence != .anyOrder { occurrences.source = occurrences.source ?? shared.tables.rules[index].source }
        }
        return occurrences
    }

    /// Returns the rule that makes an element of a stanza optional; nil if there is none.
    ///
    /// - Parameter path: The elements that contain it, from the stanza on.
    func optional(_ element: Element, in path: [Element]) -> Rule? {
        if path.count == 1, Self.isRepeated(element, in: path[0]) { return Self.repeated }
        guard shared.tables.elementNames.mayHold(element) else { return nil }
        var found: [Int] = []
        fill(&found, for: path + [element])
        let place = found.first { shared.tables.targets[$0] == Self.occurrenceTarget }
        guard let place, case .occurs(let occurrence) = shared.tables.rules[place].action, occurrence != .anyOrder
        else { return nil }
        return shared.tables.rules[place]
    }

    /// Returns the child by which a stanza is classified, independent of the order of the children: the body of a
    /// message, otherwise a required child that is chosen by its name; nil if there is none.
    func payload(of stanza: Element) -> Element? {
        guard stanza.elementCount > 1 else {
            return stanza.firstChild.flatMap { optional($0, in: [stanza]) == nil ? $0 : nil }
        }
        var chosen: (element: Element, key: UInt64)?
        stanza.forEachElement { child in
            guard optional(child, in: [stanza]) == nil else { return true }
            let isBody = child.isNamed("body") && child.isContent
            let name = child.withName { Hash.of($0, seed: 1) }
            let key = isBody ? 0 : Hash.mix(name, child.withNamespaceURI { Hash.of($0, seed: 2) })
            if key < chosen?.key ?? .max { chosen = (child, key) }
            return true
        }
        return chosen?.element
    }

    /// Returns the occurrence rule for the last element of a path within a stanza; nil if there is none.
    func occurrence(_ found: [Int], _ path: [Element]) -> Occurrence? {
        if !found.isEmpty, case .occurs(let occurrence)? = action(for: Self.occurrenceTarget, found)?.1 {
            return occurrence
        }
        return path.count == 2 && Self.isRepeated(path[1], in: path[0]) ? .mayBeAbsent : nil
    }

    /// Returns the rule that makes an attribute (given as ``key(_:_:)``) optional; nil if there is none.
    func optional(attribute key: UInt64, _ found: [Int]) -> Rule? {
        guard !found.isEmpty, let (index, _) = action(for: Self.occurrenceKey(key), found) else { return nil }
        return shared.tables.rules[index]
    }

    /// Returns whether a rule makes an attribute (given as ``key(_:_:)``) optional.
    func isOptional(attribute key: UInt64, _ found: [Int]) -> Bool {
        guard !found.isEmpty else { return false }
        let target = Self.occurrenceKey(key)
        return found.contains { shared.tables.targets[$0] == target }
    }

    /// Makes the content of the refused stanza optional in an error, in all namespaces.
    private static let repeated: Rule? = (try? Locator("*")).map {
        Rule($0, .occurs(.mayBeAbsent), source: "RFC 6120 §8.3.1: an error may repeat the refused stanza")
    }

    private static func isRepeated(_ element: Element, in stanza: Element) -> Bool {
        !(element.isContent && element.isNamed("error")) && stanza.isContent && stanza.attribute("type", is: "error")
    }
}

extension Element {
    /// Whether a server sent the stanza on its own behalf or on that of an account (RFC 6120 §8.1.2.1): its `from` is
    /// absent, has no resource, or equals its `to`. Clients send requests and messages with their full JIDs.
    var isOfServer: Bool {
        guard let from = attribute("from") else { return true }
        return !from.contains("/") || attribute("to") == from
    }
}

internal import TapCore
internal import XMPPCore

/// Rules for differences to ignore between sessions with the same meaning: those of noise files, then the built-in
/// ones.
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
public struct NoiseRules: Sendable {
    /// The action for a value or element.
    public enum Action: Sendable {
        /// Ignore it, whether or not it is present.
        case ignore
        /// It must be present, with any value.
        case present
        /// It must be present, with any value; a client sends the live value to which the recorded one was first bound.
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

    /// The number and the order in which an element of a stanza may occur, or a stanza of the server other than an answer.
    public enum Occurrence: String, Sendable, Hashable, CaseIterable {
        /// It is optional.
        case mayBeAbsent = "may be absent"
        /// It is optional, and may occur more often than recorded.
        case anyNumber = "any number"
        /// Its position among the stanzas of its sender does not matter; within a stanza, the order of its children.
        case anyOrder = "any order"
    }

    /// A regular expression with its text.
    public struct Expression: Sendable {
        /// The expression as it was written.
        public let text: String
        private let compiled: RegularExpression

        init(_ text: String) throws(PatternFault) {
            compiled = try RegularExpression(Array(text.utf8))
            self.text = text
        }

        /// Returns whether a value matches; false if matching exceeds the complexity limit.
        func matches(_ value: [UInt8]) -> Bool { (try? compiled.matches(value)) ?? false }
    }

    /// A place and the action for it.
    public struct Rule: Sendable {
        /// The place.
        public let locator: Locator
        /// The action.
        public let action: Action
        /// The source of the rule, such as `XEP-0199 §4.1`: the comment at the end of its line; nil without one.
        public let source: String?

        /// Creates a rule.
        public init(_ locator: Locator, _ action: Action, source: String? = nil) {
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
        /// The source of the first rule for the number.
        var source: String?
    }

    /// The rules in order; the first rule for a place applies.
    public private(set) var rules: [Rule] = []
    /// A rule prepared for lookup by hashes, which makes elements without rules cheap.
    private struct Candidate: BitwiseCopyable {
        enum Reach: BitwiseCopyable {
            /// Applies to every element with the name and namespace.
            case anywhere
            /// Applies to the stanza itself.
            case stanza
            /// Applies to the stanza itself if it fulfils the conditions.
            case conditional
            /// Applies if the path matches.
            case path
        }

        let index: Int
        /// Hash of the element's name; 0 matches any name.
        let name: UInt64
        let reach: Reach
    }

    /// Candidates by the namespace of the last element; stream content is listed under ``Namespace/client``.
    private var byNamespace: [[Candidate]] = Array(repeating: [], count: 256)
    /// Candidates whose last element's namespace is not in the table.
    private var anywhere: [Candidate] = []
    /// The target of each rule: an attribute as ``key(_:_:)``, or one of the two constants below.
    private var targets: [UInt64] = []

    static let elementTarget: UInt64 = 1
    static let textTarget: UInt64 = 2
    static let occurrenceTarget: UInt64 = 3

    /// The names of stanzas, and of elements within stanzas, for which there are occurrence rules.
    private var (stanzaNames, elementNames) = (NameHashes(), NameHashes())
    /// Whether a rule frees the order of stanzas.
    private(set) var hasAnyOrder = false
    /// Number of rules of noise files; the built-in ones follow.
    private let ownCount: Int

    /// Creates rules from those of noise files, followed by the built-in ones.
    public init(_ own: [Rule] = []) {
        ownCount = own.count
        for rule in own + BuiltInNoise.rules { add(rule) }
    }

    private mutating func add(_ rule: Rule) {
        let index = rules.count
        rules.append(rule)
        switch (rule.action, rule.locator.target) {
        case (.occurs(let occurrence), .element):
            targets.append(Self.occurrenceTarget)
            if occurrence == .anyOrder, rule.locator.isOfStanza { hasAnyOrder = true }
            stanzaNames.insert(rule.locator)
            if !rule.locator.isOfStanza { elementNames.insert(rule.locator) }
        case (.occurs, let target): targets.append(Self.occurrenceKey(Self.key(target)))
        case (_, let target): targets.append(Self.key(target))
        }
        var name: UInt64 = 0
        var reach = Candidate.Reach.path
        if case .element(let space, .one(let bytes)) = rule.locator.steps.last {
            name = Hash.of(bytes.span, seed: Hash.nameSeed)
            switch (space, rule.locator.steps.count) {
            case (.content, 1): reach = rule.locator.conditions.isEmpty ? .stanza : .conditional
            case _ where !rule.locator.conditions.isEmpty: break
            case (.one(let key), 2)
            where rule.locator.steps[0] == .depth && key.namespace != .other && key.namespace != .client:
                reach = .anywhere
            default: break
            }
        }
        let candidate = Candidate(index: index, name: name, reach: reach)
        switch rule.locator.lastNamespace {
        case .content: byNamespace[Int(Namespace.client.rawValue)].append(candidate)
        case .one(let key) where key.namespace != .other: byNamespace[Int(key.namespace.rawValue)].append(candidate)
        case .one, .any: anywhere.append(candidate)
        }
    }

    /// The hashes of the last names of locators: most elements have no such name, and need not be compared with them.
    private struct NameHashes {
        private var hashes: [UInt64] = []
        /// Whether a locator ends with any name.
        private var hasAny = false

        mutating func insert(_ locator: Locator) {
            guard case .element(_, .one(let name)) = locator.steps.last else { return hasAny = true }
            let hash = Hash.of(name.span, seed: Hash.nameSeed)
            if !hashes.contains(hash) { hashes.append(hash) }
        }

        func mayHold(_ element: Element) -> Bool {
            hasAny || hashes.contains(element.withName { Hash.of($0, seed: Hash.nameSeed) })
        }
    }

    /// Returns the lookup key of a target.
    static func key(_ target: Locator.Target) -> UInt64 {
        switch target {
        case .element: elementTarget
        case .text: textTarget
        case .attribute(let uri, let name): key(name.span, uri.span)
        }
    }

    /// Returns the lookup key of the occurrence of an attribute with a key.
    private static func occurrenceKey(_ key: UInt64) -> UInt64 { Hash.mix(key, occurrenceTarget) }

    /// Returns the lookup key of an attribute.
    static func key(_ name: Span<UInt8>, _ uri: Span<UInt8>) -> UInt64 {
        Hash.mix(Hash.of(name, seed: 3), uri.isEmpty ? 0 : Hash.of(uri, seed: 4))
    }

    /// Finds the rules for the last element of `path`, which starts with the stanza; the result is for
    /// ``action(for:_:)``.
    ///
    /// - Parameter name: Hash of the element's name with ``Hash/nameSeed``.
    func fill(_ found: inout [Int], for path: [Element], name: UInt64) {
        found.removeAll(keepingCapacity: true)
        guard let element = path.last else { return }
        let space = element.isContent ? Namespace.client : element.namespace
        add(byNamespace[Int(space.rawValue)], path, name, to: &found)
        guard !anywhere.isEmpty else { return }
        let count = found.count
        add(anywhere, path, name, to: &found)
        if count > 0, found.count > count { found.sort() }
    }

    /// Finds the rules for the last element of `path`, and hashes its name.
    func fill(_ found: inout [Int], for path: [Element]) {
        let name = path.last?.withName { Hash.of($0, seed: Hash.nameSeed) }
        fill(&found, for: path, name: name ?? 0)
    }

    private func add(_ candidates: [Candidate], _ path: [Element], _ name: UInt64, to found: inout [Int]) {
        for candidate in candidates where candidate.name == name || candidate.name == 0 {
            let isMeant =
                switch candidate.reach {
                case .anywhere: true
                case .stanza: path.count == 1
                case .conditional: path.count == 1 && rules[candidate.index].locator.hasConditions(path[0])
                case .path: rules[candidate.index].locator.matches(path)
                }
            if isMeant { found.append(candidate.index) }
        }
    }

    /// Returns the first rule, with its index, for an attribute (given as ``key(_:_:)``), the text or the element; nil
    /// if there is none.
    func action(for target: UInt64, _ found: [Int]) -> (Int, Action)? {
        for index in found where targets[index] == target { return (index, rules[index].action) }
        return nil
    }

    /// Returns the occurrence rules for a stanza. Built-in rules apply only to stanzas of the server itself: those of
    /// other clients are relayed.
    func occurrences(of stanza: Element) -> Occurrences {
        var occurrences = Occurrences()
        guard stanzaNames.mayHold(stanza) else { return occurrences }
        var found: [Int] = []
        fill(&found, for: [stanza])
        guard !found.isEmpty else { return occurrences }
        let isOfServer = stanza.isOfServer
        for index in found where targets[index] == Self.occurrenceTarget && (index < ownCount || isOfServer) {
            guard case .occurs(let occurrence) = rules[index].action else { continue }
            switch occurrence {
            case .anyOrder: occurrences.isAnyOrder = true
            case .anyNumber: (occurrences.mayBeAbsent, occurrences.isAnyNumber) = (true, true)
            case .mayBeAbsent: occurrences.mayBeAbsent = true
            }
            if occurrence != .anyOrder { occurrences.source = occurrences.source ?? rules[index].source }
        }
        return occurrences
    }

    /// Returns the rule that makes an element of a stanza optional; nil if there is none.
    ///
    /// - Parameter path: The elements that contain it, from the stanza on.
    func optional(_ element: Element, in path: [Element]) -> Rule? {
        if path.count == 1, Self.isRepeated(element, in: path[0]) { return Self.repeated }
        guard elementNames.mayHold(element) else { return nil }
        var found: [Int] = []
        fill(&found, for: path + [element])
        let place = found.first { targets[$0] == Self.occurrenceTarget }
        guard let place, case .occurs(let occurrence) = rules[place].action, occurrence != .anyOrder else { return nil }
        return rules[place]
    }

    /// Returns the child of a stanza that is compared first, whatever the order of the children: the body of a message,
    /// otherwise one that is not optional, chosen by its name; nil if there is none.
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
        return rules[index]
    }

    /// Allows the content of a refused stanza to be absent from its error, for all namespaces.
    private static let repeated: Rule? = (try? Locator("*")).map {
        Rule($0, .occurs(.mayBeAbsent), source: "RFC 6120 §8.3.1: an error may repeat the refused stanza")
    }

    private static func isRepeated(_ element: Element, in stanza: Element) -> Bool {
        !(element.isContent && element.isNamed("error")) && stanza.isContent && stanza.attribute("type", is: "error")
    }
}

extension Element {
    /// Whether a server sent the stanza on its own behalf or on that of an account (RFC 6120 §8.1.2.1): it has no sender,
    /// one without a resource, or the recipient itself. Clients send requests and messages with their full JIDs.
    var isOfServer: Bool {
        guard let from = attribute("from") else { return true }
        return !from.contains("/") || attribute("to") == from
    }
}

internal import XMPPCore

/// A place at which two items differ.
package struct ValueDifference: Sendable, Hashable {
    /// The kind of difference. The raw value appears in reports.
    package enum Reason: String, Sendable, Hashable {
        /// The values differ.
        case value
        /// The recorded value is missing.
        case missing
        /// The value was not recorded.
        case unexpected
        /// One of the values already corresponds to a different value, from another place or item.
        case collision
        /// A value does not match the regular expression of a rule.
        case pattern
        /// The numbers differ by more than a rule allows.
        case number
        /// The elements have different names.
        case name
    }

    /// The path, in the syntax of a ``Locator``, with `[NUMBER]` after an element that has siblings of the same name.
    package let path: String
    /// The recorded value; nil if there is none.
    package let recorded: String?
    /// The live value; nil if there is none.
    package let live: String?
    /// The kind of difference.
    package let reason: Reason

    package init(path: String, recorded: String?, live: String?, reason: Reason) {
        self.path = path
        self.recorded = recorded
        self.live = live
        self.reason = reason
    }
}

/// An optional element or attribute that only one of two stanzas has.
package struct OptionalElement: Sendable, Hashable {
    /// The path, in the syntax of a ``Locator``.
    package let path: String
    /// Whether the live stanza lacks the element; if false, the recorded stanza lacks it.
    package let isMissing: Bool
    /// The source of the rule that makes the element optional; nil if the rule names none.
    package let source: String?

    init(path: String, isMissing: Bool, _ source: String?) {
        (self.path, self.isMissing, self.source) = (path, isMissing, source)
    }
}

/// Compares two items by meaning: ids, resources and other volatile values need not be equal, but must correspond
/// consistently.
package struct StanzaComparison {
    /// The differences; empty if the items mean the same.
    package private(set) var differences: [ValueDifference] = []
    /// Paths at which a redacted value prevents the comparison.
    package private(set) var undecided: [String] = []
    /// Optional elements that only one of the items has.
    package private(set) var optional: [OptionalElement] = []

    /// The volatile values that were bound, with their paths.
    private(set) var bound: [(path: String, recorded: String, live: String, valueClass: ValueClass)] = []

    private var bindings: ValueBindings
    private let rules: NoiseRules
    private var recordedPath: [Element] = []
    private var livePath: [Element] = []
    private var found: [Int] = []
    private var recordedDigester: StanzaDigester
    private var liveDigester: StanzaDigester

    /// Returns the differences of two items; empty if they mean the same.
    ///
    /// Binds new pairs of volatile values, even if the items differ elsewhere.
    package static func compare(
        recorded: StanzaForm,
        live: StanzaForm,
        bindings: inout ValueBindings,
        rules: NoiseRules
    ) -> [ValueDifference] {
        StanzaComparison(recorded: recorded, live: live, bindings: &bindings, rules: rules).differences
    }

    /// Compares two items and binds new pairs of volatile values.
    package init(recorded: StanzaForm, live: StanzaForm, bindings: inout ValueBindings, rules: NoiseRules) {
        // Moves the bindings in and out: a second reference would make each new binding copy the tables.
        self.bindings = bindings
        bindings = ValueBindings()
        self.rules = rules
        recordedDigester = StanzaDigester(rules: rules, names: self.bindings.recordedNames)
        liveDigester = StanzaDigester(rules: rules, names: self.bindings.liveNames)
        compare(
            recorded.element,
            live.element,
            at: PlacePath(recorded.element),
            nickname: recorded.element.nicknameAttribute
        )
        swap(&self.bindings, &bindings)
    }

    private mutating func differ(_ path: String, _ recorded: String?, _ live: String?, _ reason: ValueDifference.Reason)
    {
        differences.append(ValueDifference(path: path, recorded: recorded, live: live, reason: reason))
    }

    private mutating func compare(
        _ recorded: Element,
        _ live: Element,
        at place: PlacePath,
        nickname: StaticString? = nil
    ) {
        let isContent = recorded.isContent(of: recordedPath.first ?? recorded)
        guard recorded.name == live.name, isContent == live.isContent(of: livePath.first ?? live),
            isContent || recorded.namespaceURI == live.namespaceURI
        else { return differ(place.text, recorded.written, live.written, .name) }
        recordedPath.append(recorded)
        livePath.append(live)
        defer {
            recordedPath.removeLast()
            livePath.removeLast()
        }
        rules.fill(&found, for: recordedPath)
        switch rules.action(for: NoiseRules.elementTarget, found)?.1 {
        case .ignore, .present: return
        default: break
        }
        let occurrence = rules.occurrence(found, recordedPath)
        compareAttributes(recorded, live, place, nickname)
        guard recordedPath.count < StanzaForm.maximumDepth else { return }
        let rule = rules.action(for: NoiseRules.textTarget, found)?.1
        switch (recorded.firstChild, live.firstChild) {
        case (nil, nil): compareTexts(recorded, live, place)
        case (.some, .some) where rule?.leavesOutText == true:
            if case .present = rule, recorded.isElementOnly != live.isElementOnly {
                recorded.isElementOnly
                    ? differ(place.ofText, nil, live.text, .unexpected)
                    : differ(place.ofText, recorded.text, nil, .missing)
            }
            compareChildren(recorded, live, place, occurrence)
        case _ where recorded.isElementOnly != live.isElementOnly && !(recorded.isEmpty || live.isEmpty),
            _ where recorded.firstChild != nil && !recorded.isElementOnly:
            compareMixed(recorded, live, place, rule)
        default: compareChildren(recorded, live, place, occurrence)
        }
    }

    // MARK: Values

    private mutating func compareAttributes(
        _ recorded: Element,
        _ live: Element,
        _ place: PlacePath,
        _ nickname: StaticString?
    ) {
        var others: [[String]: Element.Attribute] = [:]
        // A stanza may omit an address that is implied, and any element may omit an attribute that has its default
        // value.
        let isStanza = recordedPath.count == 1
        let implied = isStanza ? (recorded.impliedAddresses, live.impliedAddresses) : (.init(), .init())
        func isImplied(_ attribute: Element.Attribute, by addresses: ImpliedAddresses, _ element: Element) -> Bool {
            let (name, value) = (attribute.name.utf8Span.span, attribute.value.utf8Span.span)
            return attribute.namespaceURI.isEmpty
                && (addresses.contain(name) || AttributeDefaults.isDefault(name, value, of: element))
        }
        for attribute in live.attributes { others[[attribute.namespaceURI, attribute.name]] = attribute }
        for attribute in recorded.attributes.sorted(by: { ($0.namespaceURI, $0.name) < ($1.namespaceURI, $1.name) }) {
            let other = others.removeValue(forKey: [attribute.namespaceURI, attribute.name])
            if other == nil, isImplied(attribute, by: implied.0, recorded) { continue }
            compareAttribute(attribute, attribute.value, other?.value, place, nickname)
        }
        for attribute in others.values.sorted(by: { ($0.namespaceURI, $0.name) < ($1.namespaceURI, $1.name) })
        where !isImplied(attribute, by: implied.1, live) {
            compareAttribute(attribute, nil, attribute.value, place, nickname)
        }
    }

    private mutating func compareAttribute(
        _ attribute: Element.Attribute,
        _ recorded: String?,
        _ live: String?,
        _ place: PlacePath,
        _ nickname: StaticString?
    ) {
        let name = attribute.name.utf8Span.span
        let key = NoiseRules.key(name, attribute.namespaceURI.utf8Span.span)
        let action = rules.action(for: key, found)?.1
        if case .ignore = action { return }
        let path = place.attribute(attribute)
        if (recorded == nil) != (live == nil), let rule = rules.optional(attribute: key, found) {
            return optional.append(OptionalElement(path: path, isMissing: live == nil, rule.source))
        }
        guard let recorded else { return differ(path, nil, live, .unexpected) }
        guard let live else { return differ(path, recorded, nil, .missing) }
        if recordedPath.count == 1, name.equals("to"), attribute.namespaceURI.isEmpty, recordedPath[0].mayNameAccount,
            recordedPath[0].attribute("from") != nil || livePath[0].attribute("from") != nil,
            recorded.contains("/") != live.contains("/"), areSame(Self.bare(recorded), Self.bare(live))
        {
            return
        }
        if let action {
            compare(recorded, live, action, path)
        } else if attribute.namespaceURI.isEmpty, StanzaDigester.isAddress(name),
            !(nickname.map { name.equals($0) } ?? false)
        {
            compareAddresses(recorded, live, path)
        } else {
            compareLiterals(recorded, live, path)
        }
    }

    private static func bare(_ address: String) -> String { String(address.prefix { $0 != "/" }) }

    private mutating func compareTexts(_ recorded: Element, _ live: Element, _ place: PlacePath) {
        let (recordedText, liveText) = (recorded.text, live.text)
        if let action = rules.action(for: NoiseRules.textTarget, found)?.1 {
            if case .present = action, recordedText.isEmpty != liveText.isEmpty {
                return recordedText.isEmpty
                    ? differ(place.ofText, nil, liveText, .unexpected)
                    : differ(place.ofText, recordedText, nil, .missing)
            }
            compare(recordedText, liveText, action, place.ofText)
        } else {
            compareLiterals(recordedText, liveText, place.ofText)
        }
    }

    private mutating func compare(_ recorded: String, _ live: String, _ action: NoiseRules.Action, _ path: String) {
        switch action {
        case .ignore, .present: return
        case .follow(let valueClass):
            if !recorded.isEmpty, !live.isEmpty { try? bindings.bind(recorded, to: live, valueClass) }
        case .matches(let expression):
            if expression.matches(Array(recorded.utf8)), expression.matches(Array(live.utf8)) { return }
            if recorded != live { differ(path, recorded, live, .pattern) }
        case .number(let tolerance):
            guard let one = Double(recorded), let other = Double(live), one.isFinite, other.isFinite else {
                return compareLiterals(recorded, live, path)
            }
            if !(abs(one - other) <= tolerance) { differ(path, recorded, live, .number) }
        case .bind(.itemID) where recorded.contains("@"): compareAddresses(recorded, live, path)
        case .bind(.stanzaID) where recordedPath.count == 1 && recordedPath[0].isPush:
            // The id of a push only links it to its answer, and some servers reuse ids, so conflicts are ignored.
            try? bindings.bind(recorded, to: live, .stanzaID)
        case .bind(let valueClass): bind(recorded, live, valueClass, path)
        case .bindSuffix(let valueClass):
            if bindings.live(for: recorded, valueClass) == live { return }
            guard let mark = recorded.lastIndex(of: "#"), let other = live.lastIndex(of: "#"),
                recorded[...mark] == live[...other]
            else { return compareLiterals(recorded, live, path) }
            bind(String(recorded[mark...].dropFirst()), String(live[other...].dropFirst()), valueClass, path)
        case .address: compareAddresses(recorded, live, path)
        case .occurs: compareLiterals(recorded, live, path)
        }
    }

    private mutating func bind(_ recorded: String, _ live: String, _ valueClass: ValueClass, _ path: String) {
        guard recorded.isEmpty == live.isEmpty else { return differ(path, recorded, live, .value) }
        guard !recorded.isEmpty else { return }
        // Each run numbers its placeholders from 1, and several runs may be one recording: equal placeholders do not
        // mean equal values.
        guard !recorded.utf8Span.span.isPlaceholder else {
            try? bindings.bind(recorded, to: live, valueClass)
            return
        }
        bound.append((path, recorded, live, valueClass))
        do {
            try bindings.bind(recorded, to: live, valueClass)
        } catch {
            differ(path, recorded, live, .collision)
        }
    }

    private mutating func compareAddresses(_ recorded: String, _ live: String, _ path: String) {
        guard let slash = recorded.firstIndex(of: "/"), let other = live.firstIndex(of: "/"),
            areSame(String(recorded[..<slash]), String(live[..<other]))
        else { return compareLiterals(recorded, live, path) }
        bind(recorded, live, .resource, path)
    }

    private mutating func compareLiterals(_ recorded: String, _ live: String, _ path: String) {
        if areSame(recorded, live) { return }
        let (one, other) = (recorded.utf8Span.span, live.utf8Span.span)
        if one.isMoment && other.isMoment || bindings.text(recorded, .toLive) == live { return }
        guard !one.isPlaceholder, !other.isPlaceholder else { return undecided.append(path) }
        differ(path, recorded, live, .value)
    }

    /// Returns whether both texts are equal apart from the names of accounts and domains.
    private func areSame(_ recorded: String, _ live: String) -> Bool {
        guard recorded != live || !bindings.recordedNames.isEmpty else { return true }
        let (one, other) = (recorded.utf8Span.span, live.utf8Span.span)
        return (bindings.recordedNames.shared(one) ?? Array(recorded.utf8))
            == (bindings.liveNames.shared(other) ?? Array(live.utf8))
    }

    // MARK: Children

    private mutating func compareMixed(
        _ recorded: Element,
        _ live: Element,
        _ place: PlacePath,
        _ rule: NoiseRules.Action?
    ) {
        let (one, other) = (recorded.contents, live.contents)
        guard one.count == other.count else {
            return differ(place.ofText, recorded.text, live.text, one.count > other.count ? .missing : .unexpected)
        }
        for (left, right) in zip(one, other) {
            switch (left, right) {
            case (.text(let left), .text(let right)):
                if let rule {
                    compare(left, right, rule, place.ofText)
                } else {
                    compareLiterals(left, right, place.ofText)
                }
            case (.element(let left), .element(let right)): compare(left, right, at: place.child(left))
            default: differ(place.ofText, recorded.text, live.text, .value)
            }
        }
    }

    private struct Child {
        let element: Element
        /// A hash of the child's meaning. Children with a hash of 0 are ignored.
        let shape: UInt64
        /// The child's number among siblings of the same name; nil if the child is the only one with its name.
        let number: Int?
        /// The child's name, and the value that identifies it among its siblings.
        let key: [String]
        /// Whether the child is a member of a set, such as a feature: it then corresponds only to a child with the same
        /// key.
        let isOfSet: Bool
        /// The rule that makes the child optional; nil if there is none.
        let optional: NoiseRules.Rule?
        var isPaired = false
    }

    private mutating func compareChildren(
        _ recorded: Element,
        _ live: Element,
        _ place: PlacePath,
        _ occurrence: NoiseRules.Occurrence?
    ) {
        var ours = Self.children(of: recorded, recordedPath, rules, &recordedDigester)
        var theirs = Self.children(of: live, livePath, rules, &liveDigester)
        // Pair equal children first, at any position, then children with equal keys, then children with equal names.
        var pairs: [(Int, Int)] = []
        func pair<Key: Hashable>(_ key: (Child) -> Key?) {
            var waiting: [Key: [Int]] = [:]
            for index in theirs.indices.reversed() where !theirs[index].isPaired {
                if let key = key(theirs[index]) { waiting[key, default: []].append(index) }
            }
            for index in ours.indices where !ours[index].isPaired {
                guard let key = key(ours[index]), let other = waiting[key]?.popLast() else { continue }
                ours[index].isPaired = true
                theirs[other].isPaired = true
                pairs.append((index, other))
            }
        }
        if !recorded.hasOrderedChildren || occurrence == .anyOrder {
            pair { $0.shape }
            pair { $0.key }
        }
        pair { $0.isOfSet ? nil : $0.key.prefix(2) }
        for (index, other) in pairs.sorted(by: { $0.0 < $1.0 }) {
            let child = ours[index]
            compare(child.element, theirs[other].element, at: place.child(child.element, number: child.number))
        }
        for child in ours where !child.isPaired {
            if let rule = child.optional {
                optional.append(OptionalElement(path: place.child(child.element).text, isMissing: true, rule.source))
                continue
            }
            let path = place.child(child.element, number: child.number).text
            differ(path, StanzaForm(child.element).text, nil, .missing)
        }
        for child in theirs where !child.isPaired {
            if let rule = child.optional {
                optional.append(OptionalElement(path: place.child(child.element).text, isMissing: false, rule.source))
                continue
            }
            let path = place.child(child.element, number: child.number).text
            differ(path, nil, StanzaForm(child.element).text, .unexpected)
        }
    }

    private static func children(
        of element: Element,
        _ path: [Element],
        _ rules: NoiseRules,
        _ digester: inout StanzaDigester
    ) -> [Child] {
        var children: [Child] = []
        let isSet =
            [Namespace.discoInfo, .discoItems].contains(element.namespace) || element.matches("x", .dataForms)
        for (child, number) in element.numberedChildren {
            let shape = digester.digest(child, in: path).shape
            guard shape != 0 else { continue }
            let (name, identity) = ([child.name, child.namespaceURI], Self.identity(of: child))
            children.append(
                Child(
                    element: child,
                    shape: shape,
                    number: number,
                    key: name + identity,
                    isOfSet: isSet && !identity.isEmpty,
                    optional: rules.optional(child, in: path)
                )
            )
        }
        return children
    }

    /// Returns the values that identify an element among its siblings of the same name. For an identity, these are its
    /// category and type (XEP-0030 §3.1), for a form its type (XEP-0068 §3.2).
    private static func identity(of element: Element) -> [String] {
        if element.matches("identity", .discoInfo) {
            return [element.attribute("category"), element.attribute("type")].map { $0 ?? "" }
        }
        if element.matches("x", .dataForms) {
            let field = element.firstChild { $0.attribute("var", is: "FORM_TYPE") }
            return (field?.child("value", .dataForms)?.text).map { [$0] } ?? []
        }
        let names = ["jid", "var", "node", "name", "category"]
        return Array(
            names.lazy.compactMap { name in
                element.attributes.first { $0.namespaceURI.isEmpty && $0.name == name }?.value
            }.prefix(1)
        )
    }
}

extension NoiseRules.Action {
    /// Whether the content of the text is ignored.
    fileprivate var leavesOutText: Bool {
        switch self {
        case .ignore, .present: true
        case .matches, .number, .bind, .bindSuffix, .follow, .address, .occurs: false
        }
    }
}

extension Element {
    /// The name with its namespace, as in a ``Locator``.
    fileprivate var written: String { isContent ? name : "{\(namespaceURI)}\(name)" }

    /// The child elements, each with its number, from 1, among siblings of the same name; the number is nil if the
    /// child is the only one with its name.
    var numberedChildren: [(Element, number: Int?)] {
        var (counts, totals): ([[String]: Int], [[String]: Int]) = ([:], [:])
        let all = children.map { ($0, [$0.name, $0.namespaceURI]) }
        for (_, name) in all { totals[name, default: 0] += 1 }
        return all.map { child, name in
            counts[name, default: 0] += 1
            return (child, totals[name] == 1 ? nil : counts[name])
        }
    }

    /// Whether the element has no content.
    fileprivate var isEmpty: Bool { firstChild == nil && textSize == 0 }
}

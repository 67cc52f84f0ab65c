internal import XMPPCore

/// Noise rules, prepared to be looked up by the hashes of elements.
struct NoiseTables: Sendable {
    /// A rule prepared for lookup by hashes, which makes elements without rules cheap.
    struct Candidate: BitwiseCopyable {
        enum Reach: BitwiseCopyable {
            /// Applies to every element with the name and namespace.
            case anywhere
            /// Applies to every element with the name in the namespace `jabber:client`.
            case client
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

    /// Candidates by the name of the last element; only a few names have rules.
    struct NameGroups: Sendable {
        private var names: [UInt64] = []
        private var groups: [[Candidate]] = []
        /// Candidates for any name. Each group contains them, too.
        private var others: [Candidate] = []

        var isEmpty: Bool { names.isEmpty && others.isEmpty }

        mutating func append(_ candidate: Candidate) {
            if candidate.name == 0 {
                others.append(candidate)
                for index in groups.indices { groups[index].append(candidate) }
            } else if let index = names.firstIndex(of: candidate.name) {
                groups[index].append(candidate)
            } else {
                names.append(candidate.name)
                groups.append(others + [candidate])
            }
        }

        /// Returns the candidates for elements with a name, in the order of the rules.
        func candidates(_ name: UInt64) -> [Candidate] {
            names.firstIndex(of: name).map { groups[$0] } ?? others
        }
    }

    /// The rules in order; the first rule for a place applies.
    private(set) var rules: [NoiseRules.Rule] = []
    /// Candidates by the namespace of the last element; stream content is listed under ``Namespace/client``.
    private(set) var byNamespace = [NameGroups](repeating: NameGroups(), count: 256)
    /// Candidates whose last element may be in any namespace, or in a namespace without a ``Namespace`` constant.
    private(set) var anywhere = NameGroups()
    /// The target of each rule: an attribute as ``NoiseRules/key(_:_:)``, or another target of ``NoiseRules``.
    private(set) var targets: [UInt64] = []
    /// The names of stanzas, and of elements within stanzas, for which there are occurrence rules.
    private(set) var (stanzaNames, elementNames) = (NameHashes(), NameHashes())
    /// Whether a rule allows stanzas in any order.
    private(set) var hasAnyOrder = false
    /// Number of rules from noise files; the built-in rules follow them.
    let ownCount: Int

    /// Creates rules from those of noise files, followed by the built-in ones.
    init(_ own: [NoiseRules.Rule]) {
        ownCount = own.count
        for rule in own + BuiltInNoise.rules { add(rule) }
    }

    private mutating func add(_ rule: NoiseRules.Rule) {
        let index = rules.count
        rules.append(rule)
        switch (rule.action, rule.locator.target) {
        case (.occurs(let occurrence), .element):
            targets.append(NoiseRules.occurrenceTarget)
            if occurrence == .anyOrder, rule.locator.isOfStanza { hasAnyOrder = true }
            stanzaNames.insert(rule.locator)
            if !rule.locator.isOfStanza { elementNames.insert(rule.locator) }
        case (.occurs, let target): targets.append(NoiseRules.occurrenceKey(NoiseRules.key(target)))
        case (_, let target): targets.append(NoiseRules.key(target))
        }
        var name: UInt64 = 0
        var reach = Candidate.Reach.path
        if case .element(let space, .one(let bytes)) = rule.locator.steps.last {
            name = Hash.of(bytes.span, seed: Hash.nameSeed)
            switch (space, rule.locator.steps.count) {
            case (.content, 1): reach = rule.locator.conditions.isEmpty ? .stanza : .conditional
            case _ where !rule.locator.conditions.isEmpty: break
            case (.one(let key), 2) where rule.locator.steps[0] == .depth && key.namespace != .other:
                reach = key.namespace == .client ? .client : .anywhere
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

    /// The hashes of the last names of locators, to exclude most elements without matching their paths.
    struct NameHashes {
        private var hashes: [UInt64] = []
        /// Whether a locator ends with a wildcard for the name.
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
}

/// Learns noise rules from recordings with the same meaning. Each place at which they differ becomes a rule, and so
/// does each kind of server stanza that occurs in only one of the recordings.
package struct NoiseLearner: Sendable {
    /// The learned rules, in the order in which they were found.
    package private(set) var rules: [NoiseRules.Rule] = []
    /// Divergences that no rule can cover, such as missing answers or reordered messages.
    package private(set) var unlearned: [Divergence] = []
    private var known: [String: Int] = [:]

    package init() {}

    /// Learns rules from a divergence.
    package mutating func learn(_ divergence: Divergence) {
        switch divergence.code {
        case .changed, .collision:
            guard !divergence.differences.isEmpty, !divergence.differences.contains(where: Self.isOtherStanza) else {
                return unlearned.append(divergence)
            }
            let learned = divergence.differences.map { learn($0) }
            if learned.contains(false) { unlearned.append(divergence) }
        // A missing answer to a request that only the replay sends.
        case .missing where divergence.recorded == nil: break
        case .missing, .unexpected:
            guard let locator = divergence.subject?.locator.flatMap({ try? Locator($0) }) else {
                return unlearned.append(divergence)
            }
            learn(locator, divergence.code == .missing ? .mayBeAbsent : .anyNumber)
        case .session, .unsent: unlearned.append(divergence)
        case .reordered: if divergence.divergenceClass != .timing { unlearned.append(divergence) }
        case .late, .slower, .undecided: break
        }
    }

    private mutating func learn(_ locator: Locator, _ occurrence: NoiseRules.Occurrence) {
        let rule = NoiseRules.Rule(locator, .occurs(occurrence))
        guard let index = known[locator.text] else {
            known[locator.text] = rules.count
            rules.append(rule)
            return
        }
        // The rule `any number` also covers absence.
        if occurrence == .anyNumber { rules[index] = rule }
    }

    /// Returns whether a difference shows that the stanzas do not correspond. A rule for its place would hide answers
    /// that became errors, and stanzas with another sender or recipient.
    private static func isOtherStanza(_ difference: ValueDifference) -> Bool {
        switch difference.reason {
        case .name: return true
        case .collision: return false
        case .value, .missing, .unexpected, .pattern, .number:
            let parts = difference.path.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count == 2 && ["@type", "@from", "@to"].contains(parts[1])
        }
    }

    /// Learns a rule from a difference.
    ///
    /// - Returns: Whether a noise file can name the place; it cannot if a namespace contains a space or a brace.
    private mutating func learn(_ difference: ValueDifference) -> Bool {
        let path = Self.withoutNumbers(difference.path)
        guard let locator = try? Locator(path), !path.contains(where: \.isWhitespace) else { return false }
        let isOptional = difference.recorded == nil || difference.live == nil
        let rule = NoiseRules.Rule(locator, isOptional ? .ignore : .present)
        guard let index = known[path] else {
            known[path] = rules.count
            rules.append(rule)
            return true
        }
        if isOptional { rules[index] = rule }
        return true
    }

    /// Removes sibling numbers from a path, except inside braces.
    static func withoutNumbers(_ path: String) -> String {
        var result = ""
        var isInBraces = false
        var isInNumber = false
        for character in path {
            if character == "{" { isInBraces = true }
            if character == "}" { isInBraces = false }
            if !isInBraces, character == "[" { isInNumber = true }
            if !isInNumber { result.append(character) }
            if character == "]" { isInNumber = false }
        }
        return result
    }
}

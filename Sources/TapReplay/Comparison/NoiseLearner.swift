/// Learns noise from recordings that mean the same: each place at which they differ becomes a rule.
public struct NoiseLearner: Sendable {
    /// What was learned, in the order in which it was found.
    public private(set) var rules: [NoiseRules.Rule] = []
    /// Divergences that no rule can take away: an item is missing or in another place.
    public private(set) var unlearned: [Divergence] = []
    private var known: [String: Int] = [:]

    /// Nothing learned.
    public init() {}

    /// Learns from a divergence.
    public mutating func learn(_ divergence: Divergence) {
        switch divergence.code {
        case .changed, .collision:
            guard !divergence.differences.isEmpty, divergence.differences.allSatisfy({ $0.reason != .name }) else {
                return unlearned.append(divergence)
            }
            for difference in divergence.differences { learn(difference) }
        case .missing, .unexpected, .session: unlearned.append(divergence)
        case .reordered: if divergence.divergenceClass != .timing { unlearned.append(divergence) }
        case .late, .slower, .undecided: break
        }
    }

    private mutating func learn(_ difference: ValueDifference) {
        let path = Self.withoutNumbers(difference.path)
        guard let locator = try? Locator(path) else { return }
        let isOptional = difference.recorded == nil || difference.live == nil
        let rule = NoiseRules.Rule(locator, isOptional ? .ignore : .present)
        guard let index = known[path] else {
            known[path] = rules.count
            return rules.append(rule)
        }
        if isOptional { rules[index] = rule }
    }

    /// A place with the numbers of siblings taken out, but not what stands in braces.
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

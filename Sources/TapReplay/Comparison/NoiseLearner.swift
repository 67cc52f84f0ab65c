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
            guard !divergence.differences.isEmpty, !divergence.differences.contains(where: Self.isOtherStanza) else {
                return unlearned.append(divergence)
            }
            let learned = divergence.differences.map { learn($0) }
            if learned.contains(false) { unlearned.append(divergence) }
        case .missing, .unexpected, .session: unlearned.append(divergence)
        case .reordered: if divergence.divergenceClass != .timing { unlearned.append(divergence) }
        case .late, .slower, .undecided: break
        }
    }

    /// Whether a difference makes another stanza of it: a rule for the place would hide answers that became errors, and stanzas
    /// to and from others.
    private static func isOtherStanza(_ difference: ValueDifference) -> Bool {
        switch difference.reason {
        case .name: return true
        case .collision: return false
        case .value, .missing, .unexpected, .pattern, .number:
            let parts = difference.path.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count == 2 && ["@type", "@from", "@to"].contains(parts[1])
        }
    }

    /// - Returns: false where no noise file can name the place, as its namespace has a space or a brace.
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

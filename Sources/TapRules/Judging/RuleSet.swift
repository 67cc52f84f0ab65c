package import TapRecord
package import XMPPCore

/// The compiled rules of one or more files.
///
/// Immutable except for ``RuleTables``, the hit counts and the switches of rules, which all sessions share. Changed files make a new rule set.
package final class RuleSet: Sendable {
    /// All errors in the files.
    package struct LoadError: Error, Sendable {
        /// Sorted by file and line.
        package var faults: [RuleFault]

        /// Creates the error from faults.
        package init(faults: [RuleFault]) { self.faults = faults }
    }

    /// Maximum number of rules evaluated for one item, including those of chains.
    static let maximumRules = 10_000

    let rules: [Rule]
    let definitions: RuleDefinitions
    let tables: RuleTables
    private let hitCounts: RuleHits
    private let switches: RuleSwitches
    /// The rules of each chain, by the numbers that `JUMP CHAIN` uses.
    let chains: [[Int]]
    /// Warnings: valid, but probably unintended.
    package let warnings: [RuleFault]

    /// Whether any rule tests the following properties of the session; a property that no rule tests is not tracked.
    package let needsTime: Bool
    package let needsRoster: Bool
    package let needsRoundTrip: Bool
    package let needsDirectedPresence: Bool
    /// Whether a rule can send a stanza that rules may receive again.
    let createsStanzas: Bool
    /// Rules with `ORIGIN: tap`.
    private let tapRules: [Int]
    /// The paths that rules remove from records.
    package let redactions: [StanzaPath]

    package let index: RuleIndex
    private let altering: [Bool]

    /// Compiles rule files.
    ///
    /// - Parameters:
    ///   - files: The files in evaluation order.
    ///   - defaultChain: The chain of rules before the first chain line of a file; default `both`. mod_firewall uses
    ///     `deliver`.
    ///   - resource: Returns the contents of the files that lists refer to.
    /// - Throws: ``LoadError`` with all errors in the files.
    package convenience init(
        _ files: [RuleSource],
        defaultChain: String = "both",
        resource: @escaping (String) -> RuleResource = { _ in .missing }
    ) throws(LoadError) {
        guard let chain = RuleChain(defaultChain) else { throw LoadError(faults: []) }
        var parser = RuleParser(defaultChain: chain, resource: resource)
        parser.read(files)
        guard parser.faults.isEmpty else { throw LoadError(faults: parser.faults) }
        self.init(parser)
    }

    /// Creates the rule set that a parser has read without errors.
    init(_ parser: RuleParser) {
        chains = parser.rulesOfChains
        rules = parser.rules
        definitions = parser.definitions
        warnings = parser.warnings
        tables = RuleTables(parser.definitions)
        hitCounts = RuleHits(count: parser.rules.count)
        switches = RuleSwitches(count: parser.rules.count)
        index = RuleIndex(parser.rules) { Self.applies($0, isOpen: $1) }
        altering = Self.altering(parser.rules, chains)
        let tests = parser.rules.flatMap(\.conditions).map(\.test)
        needsTime = tests.contains { if case .time = $0 { true } else if case .day = $0 { true } else { false } }
        needsRoundTrip = tests.contains { if case .roundTrip = $0 { true } else { false } }
        needsDirectedPresence = tests.contains { if case .sentDirectedPresence = $0 { true } else { false } }
        createsStanzas = parser.rules.flatMap(\.steps).contains { $0.createsStanza }
        needsRoster = tests.contains { test in
            switch test {
            case .inRoster, .inRosterGroup, .subscribed, .pendingSubscription: true
            default: false
            }
        }
        tapRules = parser.rules.indices.filter { parser.rules[$0].namesTap }
        redactions = parser.rules.flatMap(\.steps).compactMap { if case .redact(let path) = $0 { path } else { nil } }
    }

    /// Creates an empty rule set.
    package init() {
        chains = []
        rules = []
        definitions = RuleDefinitions()
        warnings = []
        tables = RuleTables(definitions)
        hitCounts = RuleHits(count: 0)
        switches = RuleSwitches(count: 0)
        index = RuleIndex([]) { _, _ in false }
        altering = [false, false]
        (needsTime, needsRoster, needsRoundTrip) = (false, false, false)
        (needsDirectedPresence, createsStanzas) = (false, false)
        tapRules = []
        redactions = []
    }

    /// Whether the set consists of one rule, in the chain `both`, with one action.
    package var isOneAction: Bool {
        rules.count == 1 && rules[0].steps.count == 1 && rules[0].chain == RuleChain("both")
    }

    /// Returns whether both sets use the same ``RuleTables``, so that the counts of one are valid for the other.
    package func sharesTables(with other: RuleSet) -> Bool { tables === other.tables }

    /// Maximum size of a file that a definition refers to, in bytes.
    package static var maximumListBytes: Int { RuleParser.maximumListBytes }

    /// Names of the built-in chains, without `user/NAME`.
    package static var chainNames: [String] { RuleChain.builtIn.map(\.name) }

    /// Number of rules.
    package var count: Int { rules.count }

    // MARK: Hits

    /// The rules with their hits in all sessions, in order.
    package var statuses: [RuleStatus] {
        zip(rules.indices, hitCounts.values).map { number, hits in
            RuleStatus(place: rules[number].place, hits: hits, isOn: isOn(number))
        }
    }

    /// Returns how often the conditions of a rule were true; 0 for an unknown number.
    package func hits(of rule: Int) -> UInt64 {
        let values = hitCounts.values
        return values.indices.contains(rule) ? values[rule] : 0
    }

    /// Counts the hits of an item.
    package func count(_ hits: [Verdict.Hit]) { if !hits.isEmpty { hitCounts.count(hits.lazy.map(\.rule)) } }

    // MARK: Switches

    /// Returns whether a rule is evaluated.
    func isOn(_ rule: Int) -> Bool { switches.isOn(rule) }

    /// Whether a rule was ever switched. A retransmitted stanza is evaluated anew then: the stored results of its
    /// conditions are in the order of the rules that were on.
    package var wereRulesSwitched: Bool { switches.wereUsed }

    /// Switches the rule at a place on or off, from the next item of each session on; returns false if there is none.
    /// Its direction is still relayed item by item, as rules that alter items require.
    package func setRule(at place: RulePlace, on isOn: Bool) -> Bool {
        // A file that is given twice has two rules at a place.
        let numbers = rules.indices.filter { rules[$0].place == place }
        for number in numbers { switches.set(number, isOn) }
        return !numbers.isEmpty
    }

    // MARK: Index

    private static func altering(_ rules: [Rule], _ chains: [[Int]]) -> [Bool] {
        let alteringChains = alteringChains(rules, chains)
        return Direction.allCases.map { direction in
            rules.contains { rule in
                rule.chain.includes(direction) && !rule.excludes(direction) && alters(rule, alteringChains)
            }
        }
    }

    /// Returns whether a rule applies before or after the login. Before it, only the handshake chain and rules that
    /// test the phase or an element name apply.
    private static func applies(_ rule: Rule, isOpen: Bool) -> Bool {
        if rule.chain == .handshake { return !isOpen }
        return isOpen || rule.namesPhase || rule.namesElement
    }

    /// Returns the chains with a rule that can change the stream, and the chains that jump to them.
    private static func alteringChains(_ rules: [Rule], _ chains: [[Int]]) -> Set<Int> {
        var altering: Set<Int> = []
        // Enough passes to find all chains, because jumps are nested at most this deep.
        for _ in 0...RuleParser.maximumJumpDepth {
            let known = altering.count
            for chain in chains.indices where !altering.contains(chain) {
                if chains[chain].contains(where: { alters(rules[$0], altering) }) { altering.insert(chain) }
            }
            if altering.count == known { break }
        }
        return altering
    }

    private static func alters(_ rule: Rule, _ chains: Set<Int>) -> Bool {
        rule.steps.contains { if case .jump(let chain) = $0 { chains.contains(chain) } else { $0.alters } }
    }

    /// Returns whether any rule can match an item with these properties.
    package func mayMatch(_ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> Bool {
        index.mayMatch(direction, isOpen: isOpen, kind)
    }

    /// Whether any rule applies to stanzas that xmpptap itself sends.
    package var appliesToTap: Bool { !tapRules.isEmpty }

    /// Returns the rules of a stage that apply to a stanza that xmpptap itself sends.
    func tapRules(_ stage: Int, _ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> [Int] {
        tapRules.filter { number in
            let rule = rules[number]
            return rule.chain.stage == stage && rule.chain.includes(direction) && Self.applies(rule, isOpen: isOpen)
                && rule.kinds.contains(RuleKinds(kind))
        }
    }

    /// Returns whether any rule can change the stream in a direction; otherwise the direction is relayed in cut-through
    /// mode.
    package func canAlter(_ direction: Direction) -> Bool { altering[Int(direction.rawValue)] }
}

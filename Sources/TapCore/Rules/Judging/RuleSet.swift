public import TapRecord
internal import XMPPCore

/// The rules of one or more files, compiled: what is asked about each item.
///
/// Immutable but for ``RuleTables`` and its counts of hits, which all sessions share; a change of the files is a new rule
/// set.
public final class RuleSet: Sendable {
    /// What is wrong with the files: all there is.
    public struct LoadError: Error, Sendable {
        /// In the order of the files and lines.
        public var faults: [RuleFault]

        /// The faults of files that are not a rule set.
        public init(faults: [RuleFault]) { self.faults = faults }
    }

    /// Rules that are asked about one item, those of chains included.
    static let mostRules = 10_000

    let rules: [Rule]
    let definitions: RuleDefinitions
    let tables: RuleTables
    private let hitCounts: RuleHits
    /// The rules of each chain that `JUMP CHAIN` names.
    let chains: [[Int]]
    /// Warnings: valid, but probably a mistake.
    public let warnings: [RuleFault]

    /// What conditions and actions ask of the session: it is kept at hand only where they do.
    let asksTime: Bool
    let asksRoster: Bool
    let asksRoundTrip: Bool
    let asksDirectedPresence: Bool
    /// A rule can send stanzas that come back to a rule.
    let createsStanzas: Bool
    /// Rules that name the origin `tap`.
    private let tapRules: [Int]
    /// All that any rule leaves out of records.
    let redactions: [StanzaPath]

    let index: RuleIndex
    private let altering: [Bool]

    /// Reads files.
    ///
    /// - Parameters:
    ///   - files: In the order in which their rules are asked.
    ///   - defaultChain: The chain of what stands before the first chain line of a file; default `both`. mod_firewall's is
    ///     `deliver`.
    ///   - resource: Gives the contents of the files that lists name.
    /// - Throws: Every mistake in the files.
    public convenience init(
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

    /// What a parser has read without a mistake.
    init(_ parser: RuleParser) {
        chains = parser.rulesOfChains
        rules = parser.rules
        definitions = parser.definitions
        warnings = parser.warnings
        tables = RuleTables(parser.definitions)
        hitCounts = RuleHits(count: parser.rules.count)
        index = RuleIndex(parser.rules) { Self.asks($0, isOpen: $1) }
        altering = Self.altering(parser.rules, chains)
        let tests = parser.rules.flatMap(\.conditions).map(\.test)
        asksTime = tests.contains { if case .time = $0 { true } else if case .day = $0 { true } else { false } }
        asksRoundTrip = tests.contains { if case .roundTrip = $0 { true } else { false } }
        asksDirectedPresence = tests.contains { if case .sentDirectedPresence = $0 { true } else { false } }
        createsStanzas = parser.rules.flatMap(\.steps).contains { $0.createsStanza }
        asksRoster = tests.contains { test in
            switch test {
            case .inRoster, .inRosterGroup, .subscribed, .pendingSubscription: true
            default: false
            }
        }
        tapRules = parser.rules.indices.filter { parser.rules[$0].namesTap }
        redactions = parser.rules.flatMap(\.steps).compactMap { if case .redact(let path) = $0 { path } else { nil } }
    }

    /// No rules.
    init() {
        chains = []
        rules = []
        definitions = RuleDefinitions()
        warnings = []
        tables = RuleTables(definitions)
        hitCounts = RuleHits(count: 0)
        index = RuleIndex([]) { _, _ in false }
        altering = [false, false]
        (asksTime, asksRoster, asksRoundTrip) = (false, false, false)
        (asksDirectedPresence, createsStanzas) = (false, false)
        tapRules = []
        redactions = []
    }

    /// The largest file that a definition can name, in bytes.
    public static var mostListBytes: Int { RuleParser.mostListBytes }

    /// Names of the chains that rules can stand in, `user/NAME` aside.
    public static var chainNames: [String] { RuleChain.builtIn.map(\.name) }

    /// Number of rules.
    public var count: Int { rules.count }

    // MARK: Hits

    /// Where each rule stands and how often its conditions held, in all sessions, in the order of the rules.
    public var rulesWithHits: [(place: RulePlace, hits: UInt64)] {
        zip(rules, hitCounts.values).map { ($0.place, $1) }
    }

    /// How often the conditions of a rule held; of a number that no rule has, 0.
    public func hits(of rule: Int) -> UInt64 {
        let values = hitCounts.values
        return values.indices.contains(rule) ? values[rule] : 0
    }

    /// Counts the rules that an item has hit.
    func count(_ hits: [Verdict.Hit]) { if !hits.isEmpty { hitCounts.count(hits.lazy.map(\.rule)) } }

    // MARK: Index

    private static func altering(_ rules: [Rule], _ chains: [[Int]]) -> [Bool] {
        let alteringChains = alteringChains(rules, chains)
        return Direction.allCases.map { direction in
            rules.contains { rule in
                rule.chain.includes(direction) && !rule.excludes(direction) && alters(rule, alteringChains)
            }
        }
    }

    /// Only the handshake chain, and rules that name a phase or a nonza, apply to a handshake.
    private static func asks(_ rule: Rule, isOpen: Bool) -> Bool {
        if rule.chain == .handshake { return !isOpen }
        return isOpen || rule.namesPhase || rule.namesElement
    }

    /// The chains in which a rule can change what goes out, or which jump to such a one.
    private static func alteringChains(_ rules: [Rule], _ chains: [[Int]]) -> Set<Int> {
        var altering: Set<Int> = []
        // Jumps nest no deeper than this.
        for _ in 0...RuleParser.deepestJump {
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

    /// Whether any rule can hold for such an item: where none can, there is nothing to ask.
    func asks(_ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> Bool {
        index.asks(direction, isOpen: isOpen, kind)
    }

    /// Whether any rule is asked about what xmpptap itself sends.
    var asksTap: Bool { !tapRules.isEmpty }

    /// The rules of a stage that are asked about a stanza of xmpptap's.
    func tapRules(_ stage: Int, _ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> [Int] {
        tapRules.filter { number in
            let rule = rules[number]
            return rule.chain.stage == stage && rule.chain.includes(direction) && Self.asks(rule, isOpen: isOpen)
                && rule.kinds.contains(RuleKinds(kind))
        }
    }

    /// Whether any rule can change what goes out in a direction: where none can, it is relayed in cut-through.
    public func canAlter(_ direction: Direction) -> Bool { altering[Int(direction.rawValue)] }
}

internal import TapRecord

/// The chain of a rule, which determines the stanzas that the rule applies to.
enum RuleChain: Hashable, Sendable {
    /// Stanzas in both directions; the default chain of a file.
    case both
    /// Stanzas from the client.
    case send
    /// Stanzas from the server.
    case recv
    /// All elements in both directions during the login.
    case handshake
    /// mod_firewall's chain for stanzas from local users, before routing.
    case preroute
    /// mod_firewall's chain for stanzas delivered to the account.
    case deliver
    /// mod_firewall's chain for stanzas to other servers, after `preroute`.
    case deliverRemote
    /// `user/NAME`: evaluated only by `JUMP CHAIN`.
    case user(String)

    static let builtIn: [(name: String, chain: RuleChain)] = [
        ("both", .both), ("send", .send), ("recv", .recv), ("handshake", .handshake), ("preroute", .preroute),
        ("deliver", .deliver), ("deliver_remote", .deliverRemote),
    ]

    /// Creates the chain with this name; nil if there is none.
    init?(_ name: String) {
        if let chain = Self.builtIn.first(where: { $0.name == name })?.chain {
            self = chain
        } else if name.hasPrefix("user/"), name.count > 5, !name.contains(where: \.isWhitespace) {
            self = .user(String(name.dropFirst(5)))
        } else {
            return nil
        }
    }

    var name: String {
        if case .user(let name) = self { return "user/\(name)" }
        return Self.builtIn.first { $0.chain == self }?.name ?? ""
    }

    /// Returns whether the rules of the chain apply to a direction; false for `user/` chains, which only `JUMP CHAIN`
    /// evaluates.
    func includes(_ direction: Direction) -> Bool {
        switch self {
        case .both, .handshake: true
        case .send, .preroute, .deliverRemote: direction == .send
        case .recv, .deliver: direction == .recv
        case .user: false
        }
    }

    /// Returns whether the rules of the chain can apply to a direction, directly or after a jump.
    func reaches(_ direction: Direction) -> Bool {
        if case .user = self { return true }
        return includes(direction)
    }

    /// The stage in which the chain is evaluated. PASS ends only the current stage: stanzas that pass mod_firewall's
    /// `preroute` are then evaluated by `deliver_remote`.
    var stage: Int { self == .deliverRemote ? 1 : 0 }
}

/// The settings from `@@ NAME = VALUE` lines for the rules below them.
struct RuleSettings {
    private(set) var isTraced = false
    private(set) var dropsUnedited = false

    private static let names = ["trace", "refused_edit"]

    /// Parses a line.
    mutating func read(_ reader: RuleReader) throws(RuleFault) {
        var reader = reader
        _ = reader.consume("@@")
        reader.skipSpaces()
        let start = reader
        let name = reader.consume { $0.isLetter || $0 == "_" }
        guard Self.names.contains(name) else {
            throw reader.fault(
                "unknown setting \"\(name)\"",
                "expected @@ trace = on or @@ refused_edit = drop",
                nearest: Spelling.nearest(to: name, among: Self.names),
                at: start
            )
        }
        reader.skipSpaces()
        let isTrace = name == "trace"
        guard reader.consume("=") else {
            throw reader.fault("no value of \"\(name)\"", "expected @@ \(name) = \(isTrace ? "on" : "drop")")
        }
        if isTrace {
            isTraced = try reader.choice("value of \"trace\"", [("on", true), ("off", false)])
        } else {
            dropsUnedited = try reader.choice("value of \"refused_edit\"", [("drop", true), ("pass", false)])
        }
    }
}

/// A rule. If all conditions are true, its actions are executed in order.
struct Rule: Sendable {
    var place: RulePlace
    var chain: RuleChain
    var conditions: [RuleCondition] = []
    /// The source of the conditions.
    var conditionTexts: [String] = []
    var steps: [RuleStep] = []
    /// Whether hits are traced: `TRACE.` or `@@ trace = on`.
    var isTraced = false
    /// Whether a stanza is dropped, instead of passed unchanged, if its edit is refused (`@@ refused_edit = drop`).
    var dropsUnedited = false

    init(place: RulePlace, chain: RuleChain, _ settings: RuleSettings = RuleSettings()) {
        self.place = place
        self.chain = chain
        isTraced = settings.isTraced
        dropsUnedited = settings.dropsUnedited
    }

    /// Whether the rule tests the element name, and so also applies to elements other than stanzas and before the
    /// login.
    var namesElement: Bool {
        conditions.contains { condition in
            if case .element = condition.test { return true }
            return false
        }
    }

    /// Whether the rule applies to stanzas that xmpptap itself sends.
    var namesTap: Bool {
        conditions.contains { condition in
            if case .origin(let origin) = condition.test { return (origin == .tap) != condition.isNegated }
            return false
        }
    }

    var namesPhase: Bool {
        conditions.contains { condition in
            if case .phase = condition.test { return true }
            return false
        }
    }

    /// The conditions before the first one that counts evaluations. The index must not use later conditions, because
    /// that would change the count.
    var conditionsBeforeCounts: ArraySlice<RuleCondition> {
        conditions.prefix { condition in
            switch condition.test {
            case .limit, .every, .nth, .probability: false
            default: true
            }
        }
    }

    /// The kinds of elements that the rule applies to.
    var kinds: RuleKinds {
        var kinds: RuleKinds = namesElement || chain == .handshake ? .all : .stanzas
        for condition in conditionsBeforeCounts {
            guard case .kind(let named) = condition.test else { continue }
            kinds.formIntersection(condition.isNegated ? RuleKinds.all.subtracting(named) : named)
        }
        return kinds
    }

    /// Returns whether the conditions of the rule exclude a direction.
    func excludes(_ direction: Direction) -> Bool {
        conditionsBeforeCounts.contains { condition in
            if case .direction(let named) = condition.test { return (named == direction) == condition.isNegated }
            return false
        }
    }
}

internal import TapRecord

/// Which chain a rule belongs to: it says for which stanzas the rule is asked.
enum RuleChain: Hashable, Sendable {
    /// Stanzas of both directions: the chain of a file without a chain line.
    case both
    /// What the client sends.
    case send
    /// What the server sends.
    case recv
    /// All elements of either direction until the session is open.
    case handshake
    /// mod_firewall's name for what local users send, before it is routed.
    case preroute
    /// mod_firewall's name for what is delivered to the account.
    case deliver
    /// mod_firewall's name for what leaves for other servers, after `preroute`.
    case deliverRemote
    /// `user/NAME`: asked by `JUMP CHAIN` alone.
    case user(String)

    static let builtIn: [(name: String, chain: RuleChain)] = [
        ("both", .both), ("send", .send), ("recv", .recv), ("handshake", .handshake), ("preroute", .preroute),
        ("deliver", .deliver), ("deliver_remote", .deliverRemote),
    ]

    /// The chain of that name; nil where there is none.
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

    /// Whether its rules are asked for stanzas of a direction; of a `user/` chain nobody asks but `JUMP CHAIN`.
    func includes(_ direction: Direction) -> Bool {
        switch self {
        case .both, .handshake: true
        case .send, .preroute, .deliverRemote: direction == .send
        case .recv, .deliver: direction == .recv
        case .user: false
        }
    }

    /// Whether its rules can be asked for stanzas of a direction, if only by a jump.
    func reaches(_ direction: Direction) -> Bool {
        if case .user = self { return true }
        return includes(direction)
    }

    /// A pass in one stage is not a pass in the next: what mod_firewall's `preroute` lets through, `deliver_remote` judges
    /// once more.
    var stage: Int { self == .deliverRemote ? 1 : 0 }
}

/// What lines `@@ NAME = VALUE` set for the rules below them.
struct RuleSettings {
    private(set) var isTraced = false
    private(set) var dropsUnedited = false

    private static let names = ["trace", "refused_edit"]

    /// Takes a line.
    mutating func read(_ reader: RuleReader) throws(RuleFault) {
        var reader = reader
        _ = reader.take("@@")
        reader.skipSpaces()
        let start = reader
        let name = reader.take { $0.isLetter || $0 == "_" }
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
        guard reader.take("=") else {
            throw reader.fault("no value of \"\(name)\"", "expected @@ \(name) = \(isTrace ? "on" : "drop")")
        }
        if isTrace {
            isTraced = try reader.choice("value of \"trace\"", [("on", true), ("off", false)])
        } else {
            dropsUnedited = try reader.choice("value of \"refused_edit\"", [("drop", true), ("pass", false)])
        }
    }
}

/// A rule: when all conditions hold, its actions are carried out in order.
struct Rule: Sendable {
    var place: RulePlace
    var chain: RuleChain
    var conditions: [RuleCondition] = []
    /// The conditions as they were written.
    var conditionTexts: [String] = []
    var steps: [RuleStep] = []
    /// `TRACE.` or `@@ trace = on`.
    var isTraced = false
    /// A stanza that the rule cannot edit is dropped (`@@ refused_edit = drop`), rather than passed as it was.
    var dropsUnedited = false

    init(place: RulePlace, chain: RuleChain, _ settings: RuleSettings = RuleSettings()) {
        self.place = place
        self.chain = chain
        isTraced = settings.isTraced
        dropsUnedited = settings.dropsUnedited
    }

    /// Whether it speaks of elements that are no stanzas, or of a session that is not open yet.
    var namesElement: Bool {
        conditions.contains { condition in
            if case .element = condition.test { return true }
            return false
        }
    }

    /// Whether it is asked about what xmpptap itself sends.
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

    /// The conditions up to the first that counts how often it is asked: what stands behind it says nothing about when the
    /// rule is to be asked.
    var conditionsBeforeCounts: ArraySlice<RuleCondition> {
        conditions.prefix { condition in
            switch condition.test {
            case .limit, .every, .nth, .probability: false
            default: true
            }
        }
    }

    /// The kinds of elements for which it is to be asked.
    var kinds: RuleKinds {
        var kinds: RuleKinds = namesElement || chain == .handshake ? .all : .stanzas
        for condition in conditionsBeforeCounts {
            guard case .kind(let named) = condition.test else { continue }
            kinds.formIntersection(condition.isNegated ? RuleKinds.all.subtracting(named) : named)
        }
        return kinds
    }

    /// Whether its conditions leave a direction out.
    func excludes(_ direction: Direction) -> Bool {
        conditionsBeforeCounts.contains { condition in
            if case .direction(let named) = condition.test { return (named == direction) == condition.isNegated }
            return false
        }
    }
}

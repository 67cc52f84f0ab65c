internal import TapRecord
internal import XMPPCore

/// Parses the expression of a ``RecordFilter``.
///
/// ```
/// either    = both *("or" both)
/// both      = factor *("and" factor)
/// factor    = "not" factor / "(" either ")" / word / name (":" / "=" / "~" / comparison) value
/// ```
struct FilterParser {
    /// Maximum nesting depth of parentheses and `not`.
    static let maximumDepth = 100

    /// The parser for the values of conditions that rule files support as well.
    private(set) var rules = RuleParser(defaultChain: .both) { _ in .missing }
    /// Conditions that are valid but probably a mistake.
    private(set) var warnings: [String] = []
    /// The first condition on what becomes known after a stanza has arrived; nil if there is none.
    private(set) var laterCondition: RuleFault?
    private var reader: RuleReader

    init(_ text: String) { reader = RuleReader(text, at: RulePlace(file: "filter", line: 1)) }

    mutating func parse() throws(RuleFault) -> FilterExpression {
        reader.skipSpaces()
        guard !reader.isAtEnd else {
            throw reader.fault("the filter is empty", "expected a condition such as message")
        }
        let expression = try parseDisjunction(depth: 0)
        guard reader.isAtEnd else {
            throw reader.rest.hasPrefix(")") ? reader.fault("\")\" without \"(\"") : unexpected()
        }
        return expression
    }

    // MARK: Operators

    private mutating func parseDisjunction(depth: Int) throws(RuleFault) -> FilterExpression {
        var parts = [try parseConjunction(depth)]
        while consumeWord("or") { parts.append(try parseConjunction(depth)) }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private mutating func parseConjunction(_ depth: Int) throws(RuleFault) -> FilterExpression {
        var parts = [try parseFactor(depth)]
        while consumeWord("and") { parts.append(try parseFactor(depth)) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private mutating func parseFactor(_ depth: Int) throws(RuleFault) -> FilterExpression {
        reader.skipSpaces()
        guard depth < Self.maximumDepth else {
            throw reader.fault("nested deeper than \(Self.maximumDepth) levels", "expected a simpler filter")
        }
        if consumeWord("not") { return .not(try parseFactor(depth + 1)) }
        let start = reader
        guard reader.consume("(") else { return .condition(try condition()) }
        let inner = try parseDisjunction(depth: depth + 1)
        reader.skipSpaces()
        guard reader.consume(")") else {
            guard reader.isAtEnd else { throw unexpected() }
            throw reader.fault("\"(\" without \")\"", at: start)
        }
        reader.skipSpaces()
        return inner
    }

    /// Consumes the given operator; returns false if the next word is a different one.
    private mutating func consumeWord(_ word: String) -> Bool {
        reader.skipSpaces()
        var ahead = reader
        guard ahead.consume(while: Self.isOfName).lowercased() == word, !Self.isSign(ahead.rest.first) else {
            return false
        }
        reader = ahead
        return true
    }

    /// Returns the error for a word that is not an operator.
    private func unexpected() -> RuleFault {
        var ahead = reader
        let found = ahead.word()
        let signs = ["&&": "and", "&": "and", "||": "or", "|": "or"]
        return reader.fault(
            "unexpected \"\(found)\"",
            "expected and, or, \")\" or the end",
            nearest: signs[found] ?? Spelling.nearest(to: found, among: ["and", "or"])
        )
    }

    // MARK: Conditions

    private static func isOfName(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "-" || character == "_")
    }

    private static func isSign(_ character: Character?) -> Bool { character.map { ":=~<>".contains($0) } ?? false }

    private mutating func condition() throws(RuleFault) -> FilterCondition {
        let start = reader
        let typed = reader.consume(while: Self.isOfName)
        let name = typed.lowercased().replacing("_", with: "-")
        guard !name.isEmpty else {
            if start.isAtEnd { throw start.fault("the filter ends here", "expected a condition such as message") }
            let isNot = start.rest.hasPrefix("!")
            throw start.fault(
                "\"\(start.rest.prefix(1))\" instead of a condition",
                "expected a condition such as message or type:chat",
                nearest: isNot ? "not" : nil
            )
        }
        var ahead = reader
        ahead.skipSpaces()
        let isWord = !Self.isSign(ahead.rest.first)
        if let word = FilterWords.words[name], isWord { return word }
        guard let term = FilterWords.Name(rawValue: name) else { throw unknown(name, typed, start) }
        reader = ahead
        guard !isWord else { throw start.fault("\(name) without a value", "expected \(term.usage)", at: ahead) }
        if term.isOfOutcome, laterCondition == nil {
            laterCondition = start.fault(
                "\(name) is not known when a stanza arrives",
                "expected conditions on the stanza and its session"
            )
        }
        let sign = try self.sign(term)
        var value = try self.value(term)
        warnOfDomain(term, value.rest)
        let found = try read(term, sign, &value)
        try value.end()
        return found
    }

    /// Warns of an address such as `juliet`: it means a domain, but the user probably means an account.
    private mutating func warnOfDomain(_ term: FilterWords.Name, _ address: Substring) {
        guard [.with, .from, .to, .jid, .fromExactly, .toExactly].contains(term), address != "localhost",
            !address.isEmpty, address.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" })
        else { return }
        warnings.append(
            "\(term.rawValue):\(address) means the domain \(address); for an account write "
                + "\(term.rawValue):\(address)@DOMAIN or \(term.rawValue):\(address)@<*>"
        )
    }

    private func unknown(_ name: String, _ typed: String, _ start: RuleReader) -> RuleFault {
        let ruleName = name.replacing("-", with: " ").uppercased()
        if let reason = FilterWords.refused[ruleName] ?? RuleConditionName.refused[ruleName] {
            return start.fault("\(name) is not a condition of filters", reason)
        }
        if FilterWords.words[name] != nil {
            return reader.fault("\(name) takes no value", "expected \(name) alone")
        }
        let known = FilterWords.words.keys.sorted() + FilterWords.Name.allCases.map(\.rawValue)
        return start.fault(
            "unknown condition \"\(typed)\"",
            "expected a condition such as message, type:chat or body~\"hello\"",
            nearest: Spelling.nearest(to: name, among: known)
        )
    }

    /// Consumes the sign between a name and its value.
    private mutating func sign(_ term: FilterWords.Name) throws(RuleFault) -> Character {
        let start = reader
        let sign = reader.rest.first ?? ":"
        guard term.signs.contains(sign) else {
            throw start.fault("\"\(sign)\" after \(term.rawValue)", "expected \(term.usage)")
        }
        // A comparison sign is consumed later, together with the value.
        if !"<>".contains(sign), !(sign == "=" && term.isCompared) { _ = reader.consume(String(sign)) }
        reader.skipSpaces()
        return sign
    }

    /// Consumes the value: a quoted string, or everything up to white space or an unmatched closing parenthesis.
    private mutating func value(_ term: FilterWords.Name) throws(RuleFault) -> RuleReader {
        let start = reader
        if let quote = reader.rest.first, quote == "\"" || quote == "'" {
            _ = reader.consume(String(quote))
            let inner = reader
            _ = reader.consume { $0 != quote }
            let end = reader
            guard reader.consume(String(quote)) else { throw start.fault("\(quote) is not closed") }
            return inner.prefix(upTo: end)
        }
        if term.isCompared {
            _ = reader.consume { "<>=".contains($0) }
            reader.skipSpaces()
        }
        var depth = 0
        _ = reader.consume { character in
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            return depth >= 0 && !character.isWhitespace
        }
        let value = start.prefix(upTo: reader)
        guard !value.isAtEnd else { throw start.fault("\(term.rawValue) without a value", "expected \(term.usage)") }
        return value
    }

    private mutating func read(_ term: FilterWords.Name, _ sign: Character, _ value: inout RuleReader) throws(RuleFault)
        -> FilterCondition
    {
        switch term {
        case .kind: return try kinds(&value)
        case .level:
            let levels = Level.allCases.filter { $0 != .off }
            return .level(try value.choice("level", levels.map { ($0.name, $0) }))
        case .part: return .part(Set(try list(of: "a part", Part.allCases.map { ($0.name, $0) }, &value)))
        case .code: return .code(Set(try value.filledList().map(\.text)))
        case .condition: return .errorCondition(Set(try value.filledList().map(\.text)))
        case .action: return .action(Set(try value.filledList().map(\.text)))
        case .rule: return .rule(value.consumeRest())
        case .phase: return .handshake(try value.choice("phase of a filter", [("handshake", true), ("open", false)]))
        case .payload: return .payload(try payload(&value))
        case .id: return .id(Array(value.consumeRest().utf8))
        case .xml: return .xml(try search(sign, &value))
        case .body, .subject, .thread, .status:
            let path = try RuleParser.path("\(term.rawValue)#", value, isText: true)
            return .text(path, try search(sign, &value))
        case .jid: return .item(.sessionAddress(try AddressPattern(&value)))
        default:
            guard let name = term.ruleName else { throw value.fault("\(term.rawValue) is not supported") }
            return .item(try rules.test(name, &value))
        }
    }

    private func search(_ sign: Character, _ value: inout RuleReader) throws(RuleFault) -> TextSearch {
        guard !value.isAtEnd else { throw value.fault("the text is empty") }
        guard sign == "~" else {
            let text = Array(value.consumeRest().utf8)
            return sign == "=" ? .equals(text) : .contains(text)
        }
        guard case .regular(let expression) = try rules.pattern(&value, isRegular: true) else {
            throw value.fault("not a regular expression")
        }
        return .matches(expression)
    }

    private func kinds(_ value: inout RuleReader) throws(RuleFault) -> FilterCondition {
        var kinds: RuleKinds = []
        var records: Set<Record.Kind> = []
        for kind in try list(of: "a kind", FilterWords.kinds, &value) {
            switch kind {
            case .items(let some): kinds.formUnion(some)
            case .records(let kind): records.insert(kind)
            }
        }
        return .kind(kinds, records)
    }

    private func list<Value>(of what: String, _ values: [(name: String, value: Value)], _ reader: inout RuleReader)
        throws(RuleFault) -> [Value]
    {
        try reader.filledList().map { item throws(RuleFault) in
            if let known = values.first(where: { $0.name == item.text }) { return known.value }
            throw item.reader.fault(
                "\"\(item.text)\" is not \(what)",
                "expected \(values.map(\.name).joined(separator: ", "))",
                nearest: Spelling.nearest(to: item.text, among: values.map(\.name))
            )
        }
    }

    /// Parses `{namespace}name` or `{namespace}*` as rules do; any other value is a namespace.
    private func payload(_ value: inout RuleReader) throws(RuleFault) -> StanzaPath.Step {
        guard value.rest.hasPrefix("{") else {
            return StanzaPath.Step(name: nil, namespace: NamespaceKey(uri: Array(value.consumeRest().utf8)))
        }
        return try rules.element(&value)
    }
}

/// The names of conditions and their values.
enum FilterWords {
    /// Conditions without a value.
    static let words: [String: FilterCondition] = [
        "message": .kind(.message, []), "presence": .kind(.presence, []), "iq": .kind(.iq, []),
        "nonza": .kind(.nonza, []), "stanza": .kind(.stanzas, []),
        "send": .item(.direction(.send)), "recv": .item(.direction(.recv)),
        "from-full-jid": .item(.fullJID(.from)), "to-full-jid": .item(.fullJID(.to)), "to-self": .item(.toSelf),
    ]

    enum Kinds { case items(RuleKinds), records(Record.Kind) }

    /// The values of `kind`.
    static let kinds: [(name: String, value: Kinds)] =
        [
            ("message", .items(.message)), ("presence", .items(.presence)), ("iq", .items(.iq)),
            ("nonza", .items(.nonza)), ("stanza", .items(.stanzas)),
        ]
        + Record.Kind.allCases.filter { $0 != .stanza && $0 != .element }.map { ($0.rawValue, .records($0)) }

    /// Conditions with a value.
    enum Name: String, CaseIterable {
        case kind, type, payload, inspect, element, id
        case with, from, to, jid, session
        case fromExactly = "from-exactly"
        case toExactly = "to-exactly"
        case fromIP = "from-ip"
        case fromSubnet = "from-subnet"
        case body, subject, thread, status, xml
        case direction, phase, origin, size
        case roundTrip = "round-trip"
        case level, part, code, condition, action, rule

        /// The rule condition with the same value syntax; nil if there is none.
        var ruleName: RuleConditionName? {
            RuleConditionName(rawValue: rawValue.replacing("-", with: " ").uppercased())
        }

        var isCompared: Bool { self == .size || self == .roundTrip }

        /// Whether the condition is on what xmpptap finds or does after an item has arrived.
        var isOfOutcome: Bool { [.roundTrip, .code, .condition, .action, .rule].contains(self) }

        /// The signs that are allowed after the name.
        var signs: String {
            switch self {
            case .body, .subject, .thread, .status: ":=~"
            case .xml: ":~"
            case .size, .roundTrip: ":=<>"
            default: ":"
            }
        }

        /// An example of the condition, for error messages.
        var usage: String {
            switch self {
            case .kind: "kind:message,presence"
            case .type: "type:chat"
            case .payload: "payload:{urn:xmpp:ping}ping"
            case .inspect: "inspect:{urn:xmpp:receipts}request"
            case .element: "element:{urn:xmpp:sm:3}r"
            case .id: "id:abc1"
            case .with, .from, .to, .fromExactly, .toExactly, .jid: "\(rawValue):juliet@example.org"
            case .session: "session:3"
            case .fromIP: "from-ip:192.0.2.7"
            case .fromSubnet: "from-subnet:192.0.2.0/24"
            case .body, .subject, .thread, .status:
                "\(rawValue):\"text\", \(rawValue)=\"text\" or \(rawValue)~\"pattern\""
            case .xml: "xml:\"text\" or xml~\"pattern\""
            case .direction: "direction:send"
            case .phase: "phase:handshake"
            case .origin: "origin:tap"
            case .size: "size>10kB"
            case .roundTrip: "round-trip>2s"
            case .level: "level:warn"
            case .part: "part:sasl"
            case .code: "code:login-failed"
            case .condition: "condition:item-not-found"
            case .action: "action:dropped"
            case .rule: "rule:no-typing.pfw"
            }
        }
    }

    /// Conditions of rules that filters do not support, with the reason.
    static let refused: [String: String] = [
        "ENTERING": noDefinitions, "LEAVING": noDefinitions, "CROSSING": noDefinitions, "CHECK LIST": noDefinitions,
        "SCAN": noDefinitions, "COUNT": noDefinitions, "LIMIT": noCounts, "EVERY": noCounts, "NTH": noCounts,
        "PROBABILITY": noCounts, "ORIGIN MARKED": noMarks, "USER MARKED": noMarks, "IN ROSTER": noRoster,
        "IN ROSTER GROUP": noRoster, "SUBSCRIBED": noRoster, "PENDING SUBSCRIPTION FROM SENDER": noRoster,
        "TIME": "filters do not know the local time", "DAY": "filters do not know the local time",
        "TRANSPORT": "records do not show it; code:tls-opened shows where TLS begins",
    ]
    private static let noDefinitions = "filters have no definitions; with:<*>@example.org compares domains"
    private static let noCounts = "filters do not count"
    private static let noMarks = "filters have no marks"
    private static let noRoster = "filters do not know the roster"
}

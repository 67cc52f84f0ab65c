internal import TapRecord
internal import XMPPCore

/// The names of conditions.
enum RuleConditionName: String, CaseIterable {
    // mod_firewall's conditions.
    case kind = "KIND"
    case type = "TYPE"
    case payload = "PAYLOAD"
    case inspect = "INSPECT"
    case from = "FROM"
    case to = "TO"
    case fromExactly = "FROM EXACTLY"
    case toExactly = "TO EXACTLY"
    case fromFullJID = "FROM FULL JID"
    case toFullJID = "TO FULL JID"
    case toSelf = "TO SELF"
    case fromIP = "FROM IP"
    case fromSubnet = "FROM SUBNET"
    case entering = "ENTERING"
    case leaving = "LEAVING"
    case inRoster = "IN ROSTER"
    case inRosterGroup = "IN ROSTER GROUP"
    case subscribed = "SUBSCRIBED"
    case pendingSubscription = "PENDING SUBSCRIPTION FROM SENDER"
    case sentDirectedPresence = "SENT DIRECTED PRESENCE TO SENDER"
    case time = "TIME"
    case day = "DAY"
    case limit = "LIMIT"
    case originMarked = "ORIGIN MARKED"
    case userMarked = "USER MARKED"
    case checkList = "CHECK LIST"
    case scan = "SCAN"
    case count = "COUNT"
    // xmpptap's conditions.
    case with = "WITH"
    case crossing = "CROSSING"
    case direction = "DIRECTION"
    case phase = "PHASE"
    case session = "SESSION"
    case element = "ELEMENT"
    case size = "SIZE"
    case roundTrip = "ROUND TRIP"
    case origin = "ORIGIN"
    case transport = "TRANSPORT"
    case every = "EVERY"
    case nth = "NTH"
    case probability = "PROBABILITY"

    /// Whether the condition is written with `?` instead of a value.
    var hasNoValue: Bool {
        switch self {
        case .fromFullJID, .toFullJID, .toSelf, .inRoster, .subscribed, .pendingSubscription, .sentDirectedPresence:
            true
        default: false
        }
    }

    /// Conditions of mod_firewall that are only possible inside the server, with the reason.
    static let refused: [String: String] = [
        "FROM COUNTRY": "countries of IP addresses need a data file, which xmpptap does not have",
        "FROM GROUP": "only the server knows user groups; list the members in a %ZONE",
        "TO GROUP": "only the server knows user groups; list the members in a %ZONE",
        "CROSSING GROUPS": "only the server knows user groups; list the members in a %ZONE and use CROSSING",
        "MAY": "only the server knows permissions; list the JIDs in a %ZONE or a %LIST",
        "FROM ROLE": "only the server knows roles",
        "TO ROLE": "only the server knows roles",
        "FROM ADMIN": "only the server knows administrators",
        "TO ADMIN": "only the server knows administrators",
        "FROM ADMIN OF": "only the server knows administrators",
        "TO ADMIN OF": "only the server knows administrators",
    ]
}

extension RuleParser {
    /// Parses a condition line.
    mutating func condition(_ reader: RuleReader) throws(RuleFault) -> RuleCondition {
        var reader = reader
        let start = reader
        let words = reader.consume { !":=%.?".contains($0) }.split(whereSeparator: { $0 == " " || $0 == "_" })
        let name = words.filter { $0 != "NOT" }.joined(separator: " ")
        let isNegated = words.contains("NOT")
        if let reason = RuleConditionName.refused[name] {
            throw reader.fault("\(name) is not supported", reason, at: start)
        }
        guard let term = RuleConditionName(rawValue: name) else {
            if let action = RuleActionName(rawValue: name) {
                let usage = action.hasNoValue == false ? "\(name)=VALUE" : "\(name)."
                throw reader.fault("\(name) is an action", "expected \(usage)", at: start)
            }
            let actions = RuleActionName.allCases.filter { name.hasPrefix($0.rawValue + " ") }
            if let action = actions.max(by: { $0.rawValue.count < $1.rawValue.count }) {
                let sign = action.hasNoValue == true ? "." : "="
                throw reader.fault(
                    "no \"\(sign)\" after \(action.rawValue)",
                    "expected \(action.rawValue)\(sign == "=" ? "=VALUE" : ".")",
                    at: start
                )
            }
            let known = RuleConditionName.allCases.map(\.rawValue)
            if let begun = known.filter({ name.hasPrefix($0 + " ") }).max(by: { $0.count < $1.count }) {
                throw reader.fault("no \":\" after \(begun)", "expected \(begun): VALUE", at: start)
            }
            throw reader.fault(
                name.isEmpty ? "\"\(start.rest)\" is neither condition nor action" : "unknown condition \"\(name)\"",
                "expected a condition such as KIND: message, or an action such as DROP.",
                nearest: Spelling.nearest(to: name, among: known.map { $0.lowercased() })?.uppercased(),
                at: start
            )
        }
        if term.hasNoValue {
            // An older syntax of mod_firewall.
            if term == .inRoster, reader.consume(":") {
                let isIn = try reader.choice(
                    "answer",
                    [("yes", true), ("true", true), ("no", false), ("false", false)]
                )
                return RuleCondition(test: .inRoster, isNegated: isNegated == isIn)
            }
            guard reader.consume("?") else {
                let found = reader.isAtEnd ? "no \"?\" after \(name)" : "\(name) takes no value"
                throw reader.fault(found, "expected \(name)?")
            }
            try reader.end()
        } else {
            guard reader.consume(":") else { throw reader.fault("\(name) without a value", "expected \(name): VALUE") }
            if reader.rest.first?.isWhitespace == true { _ = reader.consume(String(reader.rest.prefix(1))) }
            guard !reader.isAtEnd else { throw reader.fault("\(name) without a value", "expected \(name): VALUE") }
        }
        let test = try self.test(term, &reader)
        if !term.hasNoValue { try reader.end() }
        return RuleCondition(test: test, isNegated: isNegated)
    }

    /// Parses the value of a condition.
    mutating func test(_ term: RuleConditionName, _ reader: inout RuleReader) throws(RuleFault) -> RuleTest {
        switch term {
        case .kind: return .kind(try kinds(&reader))
        case .type: return .type(try types(&reader))
        case .payload: return .payload(NamespaceKey(uri: Array(RuleReader.trimmed(reader.consumeRest()).utf8)))
        case .inspect: return try inspection(&reader)
        case .from: return .address(.from, try address(&reader))
        case .to: return .address(.to, try address(&reader))
        case .with: return .with(try address(&reader))
        case .fromExactly: return .exactly(.from, try RuleText(&reader))
        case .toExactly: return .exactly(.to, try RuleText(&reader))
        case .fromFullJID: return .fullJID(.from)
        case .toFullJID: return .fullJID(.to)
        case .toSelf: return .toSelf
        case .fromIP, .fromSubnet: return .clientAddress(try networks(&reader, isNetwork: term == .fromSubnet))
        case .entering: return .zone(try defined("zone", \.zones, &reader), .entering)
        case .leaving: return .zone(try defined("zone", \.zones, &reader), .leaving)
        case .crossing: return .zone(try defined("zone", \.zones, &reader), .either)
        case .inRoster: return .inRoster
        case .inRosterGroup: return .inRosterGroup(RuleReader.trimmed(reader.consumeRest()))
        case .subscribed: return .subscribed
        case .pendingSubscription: return .pendingSubscription
        case .sentDirectedPresence: return .sentDirectedPresence
        case .time: return .time(try times(&reader))
        case .day: return .day(try days(&reader))
        case .limit: return try limit(&reader)
        case .originMarked: return try marked(.origin, &reader)
        case .userMarked: return try marked(.user, &reader)
        case .checkList:
            let list = try defined("list", \.lists, &reader)
            try expect("contains", "expected CHECK LIST: LIST contains $<@from>", &reader)
            return .list(list, try RuleText(&reader))
        case .scan:
            let usage = "expected SCAN: SEARCH for PATTERN in LIST"
            let search = try defined("search", \.searches, &reader)
            try expect("for", usage, &reader)
            let pattern = try defined("pattern", \.patterns, &reader)
            try expect("in", usage, &reader)
            return .scan(search: search, pattern: pattern, list: try defined("list", \.lists, &reader))
        case .count:
            let pattern = try defined("pattern", \.patterns, &reader)
            try expect("in", "expected COUNT: PATTERN in SEARCH > 1", &reader)
            let search = try defined("search", \.searches, &reader)
            let comparison = try reader.comparison()
            return .count(pattern: pattern, search: search, comparison, try reader.integer("number", in: 0...(.max)))
        case .direction: return .direction(try reader.choice("direction", [("send", .send), ("recv", .recv)]))
        case .phase: return .phase(try phases(&reader))
        case .session: return try session(&reader)
        case .element: return .element(try element(&reader))
        case .size: return .size(try reader.comparison(), try reader.size())
        case .roundTrip: return .roundTrip(try reader.comparison(), try reader.duration())
        case .origin: return .origin(try reader.choice("origin", [("peer", .peer), ("tap", .tap)]))
        case .transport:
            return .transport(try reader.choice("transport", RuleTransport.allCases.map { ($0.rawValue, $0) }))
        case .every:
            let number = try reader.integer("number", in: 1...1_000_000_000)
            return .every(number, counter: try counter(&reader))
        case .nth:
            // The list ends at the first option.
            let start = reader
            _ = reader.consume { $0 != "(" }
            var list = start.prefix(upTo: reader)
            let numbers = try list.filledList().map { item throws(RuleFault) in
                guard let number = Int(item.text), number > 0 else {
                    throw item.reader.fault("\"\(item.text)\" is not a number", "expected a whole number from 1")
                }
                return number
            }
            return .nth(numbers, counter: try counter(&reader))
        case .probability: return .probability(try probability(&reader))
        }
    }

    /// Creates a counter per session, or one for all sessions with the option `(all sessions)`.
    private mutating func counter(_ reader: inout RuleReader) throws(RuleFault) -> RuleTest.Counter {
        var isShared = false
        for var option in try reader.options() {
            let start = option
            guard option.consume("all sessions"), option.isAtEnd else {
                throw start.fault("unknown option \"\(start.rest)\"", "expected (all sessions)")
            }
            isShared = true
        }
        counters += 1
        return isShared ? .shared(counters - 1) : .session(counters - 1)
    }

    private func expect(_ word: String, _ usage: String, _ reader: inout RuleReader) throws(RuleFault) {
        reader.skipSpaces()
        let start = reader
        let found = reader.word()
        guard found == word else {
            throw reader.fault(
                found.isEmpty ? "\"\(word)\" is missing" : "\"\(found)\" instead of \"\(word)\"",
                usage,
                at: start
            )
        }
        reader.skipSpaces()
        guard !reader.isAtEnd else { throw reader.fault("nothing after \"\(word)\"", usage) }
    }

    // MARK: Stanzas

    private func kinds(_ reader: inout RuleReader) throws(RuleFault) -> RuleKinds {
        let names: [(String, RuleKinds)] = [("message", .message), ("presence", .presence), ("iq", .iq)]
        var kinds: RuleKinds = []
        for (text, start) in try reader.filledList(isSpaced: true) {
            guard let kind = names.first(where: { $0.0 == text })?.1 else {
                throw start.fault(
                    "\"\(text)\" is not a kind of stanza",
                    "expected message, presence or iq; ELEMENT names other elements",
                    nearest: Spelling.nearest(to: text, among: names.map(\.0))
                )
            }
            kinds.insert(kind)
        }
        return kinds
    }

    /// Any type is accepted, because peers can send types that are not in RFC 6120; probable misspellings are refused.
    private func types(_ reader: inout RuleReader) throws(RuleFault) -> [[UInt8]] {
        let known = [
            "get", "set", "result", "error", "available", "unavailable", "probe", "subscribe", "subscribed",
            "unsubscribe", "unsubscribed", "normal", "chat", "groupchat", "headline",
        ]
        return try reader.filledList(isSpaced: true).map { item throws(RuleFault) in
            if !known.contains(item.text), let nearest = Spelling.nearest(to: item.text, among: known) {
                throw item.reader.fault("\"\(item.text)\" is not a type of a stanza", nearest: nearest)
            }
            return Array(item.text.utf8)
        }
    }

    private func inspection(_ reader: inout RuleReader) throws(RuleFault) -> RuleTest {
        let start = reader
        // The path ends at the first "=" outside braces.
        var depth = 0
        var source = reader.consume { character in
            if character == "{" { depth += 1 }
            if character == "}" { depth -= 1 }
            return depth > 0 || character != "="
        }
        guard reader.consume("=") else {
            return .inspect(try Self.path(RuleReader.trimmed(source), start, isText: false), .exists)
        }
        var sign = ""
        while let last = source.last, "~/$".contains(last) {
            sign = "\(source.removeLast())\(sign)"
        }
        let path = try Self.path(source, start, isText: true)
        let isExpanded = sign.contains("$")
        switch sign.filter({ $0 != "$" }) {
        case "": return .inspect(path, .equals(try value(&reader, isExpanded)))
        case "/": return .inspect(path, .contains(try value(&reader, isExpanded)))
        case "~":
            if isExpanded { return .inspect(path, .luaText(try RuleText(&reader))) }
            guard case .lua(let pattern) = try pattern(&reader, isRegular: false) else { break }
            return .inspect(path, .lua(pattern))
        case "~~":
            guard !isExpanded, case .regular(let expression) = try pattern(&reader, isRegular: true) else { break }
            return .inspect(path, .regular(expression))
        default: break
        }
        throw reader.fault(
            "unknown comparison \"\(sign)=\"",
            "expected =, /=, ~=, ~~= or, to expand expressions, $=, $/= or $~=",
            at: start
        )
    }

    private func value(_ reader: inout RuleReader, _ isExpanded: Bool) throws(RuleFault) -> RuleText {
        isExpanded ? try RuleText(&reader) : RuleText(literal: reader.consumeRest())
    }

    /// Parses an element name: `{namespace}name`, `{namespace}*` or `name`.
    func element(_ reader: inout RuleReader) throws(RuleFault) -> StanzaPath.Step {
        let start = reader
        let source = RuleReader.trimmed(reader.consumeRest())
        let path = try Self.path(source, start, isText: false)
        guard path.steps.count == 1, path.end == .element, var step = path.steps.first,
            step.name?.contains(UInt8(ascii: ":")) != true
        else {
            throw start.fault(
                "\"\(source)\" is not an element name",
                "expected {namespace}name, {namespace}* or name"
            )
        }
        if step.name == Array("*".utf8) { step.name = nil }
        return step
    }

    private func networks(_ reader: inout RuleReader, isNetwork: Bool) throws(RuleFault) -> [AddressNetwork] {
        try reader.filledList(isSpaced: true).map { item throws(RuleFault) in
            guard let network = AddressNetwork(item.text), isNetwork || !item.text.contains("/") else {
                throw item.reader.fault(
                    "\"\(item.text)\" is not an \(isNetwork ? "IP network" : "IP address")",
                    isNetwork
                        ? "expected one as in 192.0.2.0/24" : "expected one as in 192.0.2.7; FROM SUBNET takes networks"
                )
            }
            return network
        }
    }

    // MARK: Session

    private func phases(_ reader: inout RuleReader) throws(RuleFault) -> Set<RulePhase> {
        var phases: Set<RulePhase> = []
        let names = RulePhase.allCases.map(\.rawValue) + ["handshake"]
        for (text, start) in try reader.filledList(isSpaced: true) {
            if text == "handshake" {
                phases.formUnion(RulePhase.allCases.filter(\.isHandshake))
            } else if let phase = RulePhase(rawValue: text) {
                phases.insert(phase)
            } else {
                throw start.fault(
                    "\"\(text)\" is not a phase",
                    "expected \(names.joined(separator: ", "))",
                    nearest: Spelling.nearest(to: text, among: names)
                )
            }
        }
        return phases
    }

    private mutating func session(_ reader: inout RuleReader) throws(RuleFault) -> RuleTest {
        guard reader.rest.allSatisfy({ $0.isNumber || $0 == "," || $0 == " " }) else {
            return .sessionAddress(try address(&reader))
        }
        return .session(
            Set(
                try reader.filledList().map { item throws(RuleFault) in
                    guard let number = UInt64(item.text), number > 0 else {
                        throw item.reader.fault(
                            "\"\(item.text)\" is not a number of a session",
                            "expected a whole number from 1"
                        )
                    }
                    return number
                }
            )
        )
    }

    private func limit(_ reader: inout RuleReader) throws(RuleFault) -> RuleTest {
        let rate = try defined("rate", \.rates, &reader)
        reader.skipSpaces()
        guard !reader.isAtEnd else { return .limit(rate: rate, on: nil) }
        try expect("on", "expected LIMIT: RATE, or LIMIT: RATE on $<@from|bare>", &reader)
        return .limit(rate: rate, on: try RuleText(&reader))
    }

    private func marked(_ who: RuleTest.Marked, _ reader: inout RuleReader) throws(RuleFault) -> RuleTest {
        let name = try reader.name(of: "mark")
        var within: Int64?
        for var option in try reader.options() {
            within = try option.duration()
            try option.end()
        }
        return .marked(who, name, within: within)
    }

    private func probability(_ reader: inout RuleReader) throws(RuleFault) -> Double {
        let start = reader
        var value = try reader.decimal("probability")
        if reader.consume("%") { value /= 100 }
        guard value <= 1 else { throw start.fault("a probability above 1", "expected 0 to 1, or 0% to 100%") }
        return value
    }

    // MARK: Time

    private func times(_ reader: inout RuleReader) throws(RuleFault) -> [(start: Int, end: Int)] {
        try reader.filledList().map { item throws(RuleFault) in
            let parts = Self.ends(of: item.text)
            guard parts.count == 2, let start = Self.minutes(parts[0]), let end = Self.minutes(parts[1]) else {
                throw item.reader.fault(
                    "\"\(item.text)\" is not a range of times",
                    "expected one as in 22:00-6:00 or 10pm-6am"
                )
            }
            return (start, end)
        }
    }

    /// Splits `22:00-6:00` or `Mon-Fri` at the hyphen; a missing end is an empty string.
    private static func ends(of range: String) -> [String] {
        range.split(separator: "-", omittingEmptySubsequences: false).map { RuleReader.trimmed(String($0)) }
    }

    /// Parses `14:30`, `2:30pm` or `2pm`; 24:00 is the end of the day.
    private static func minutes(_ text: String) -> Int? {
        var digits = text.lowercased()[...]
        var half: Int?
        if digits.hasSuffix("am") || digits.hasSuffix("pm") {
            half = digits.hasSuffix("pm") ? 12 : 0
            digits = digits.dropLast(2)
            while digits.last == " " { digits.removeLast() }
        }
        let parts = digits.split(separator: ":", omittingEmptySubsequences: false)
        guard digits.allSatisfy({ $0.isNumber || $0 == ":" }), (1...2).contains(parts.count),
            half != nil || parts.count == 2, var hour = Int(parts[0]),
            let minute = parts.count == 2 ? Int(parts[1]) : 0, (0..<60).contains(minute)
        else { return nil }
        if let half {
            guard (1...12).contains(hour) else { return nil }
            hour = hour % 12 + half
        }
        guard (0..<24).contains(hour) || hour == 24 && minute == 0 else { return nil }
        return hour * 60 + minute
    }

    private func days(_ reader: inout RuleReader) throws(RuleFault) -> UInt8 {
        let names = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
        func number(_ text: String, _ start: RuleReader) throws(RuleFault) -> Int {
            let word = text.lowercased()
            guard word.count >= 3, let number = names.firstIndex(where: { $0.hasPrefix(word) }) else {
                throw start.fault(
                    "\"\(text)\" is not a day",
                    "expected days or ranges, as in Mon-Fri, Sunday",
                    nearest: Spelling.nearest(to: word, among: names)
                )
            }
            return number
        }
        var days: UInt8 = 0
        for (text, start) in try reader.filledList() {
            let parts = Self.ends(of: text)
            guard let first = parts.first, let last = parts.last, parts.count <= 2, !parts.contains("") else {
                throw start.fault(
                    "\"\(text)\" is not a day or a range of days",
                    "expected days or ranges, as in Mon-Fri, Sunday"
                )
            }
            var day = try number(first, start)
            let end = try number(last, start)
            days |= 1 << UInt8(day)
            while day != end {
                day = (day + 1) % 7
                days |= 1 << UInt8(day)
            }
        }
        return days
    }
}

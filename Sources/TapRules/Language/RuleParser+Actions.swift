internal import TapRecord
internal import XMPPCore

/// The names of actions.
enum RuleActionName: String, CaseIterable {
    // mod_firewall's actions.
    case pass = "PASS"
    case drop = "DROP"
    case `default` = "DEFAULT"
    case bounce = "BOUNCE"
    case reply = "REPLY"
    case redirect = "REDIRECT"
    case copy = "COPY"
    case forward = "FORWARD"
    case strip = "STRIP"
    case inject = "INJECT"
    case markOrigin = "MARK ORIGIN"
    case unmarkOrigin = "UNMARK ORIGIN"
    case markUser = "MARK USER"
    case unmarkUser = "UNMARK USER"
    case addTo = "ADD TO"
    case unsubscribeSender = "UNSUBSCRIBE SENDER"
    case log = "LOG"
    case `return` = "RETURN"
    case jumpChain = "JUMP CHAIN"
    case tagTrace = "TAG TRACE"
    // xmpptap's actions.
    case trace = "TRACE"
    case delay = "DELAY"
    case duplicate = "DUPLICATE"
    case set = "SET"
    case replace = "REPLACE"
    case remove = "REMOVE"
    case record = "RECORD"
    case level = "LEVEL"
    case redact = "REDACT"
    case pause = "PAUSE"
    case cutAfter = "CUT AFTER"
    case reset = "RESET"
    case halfClose = "HALF CLOSE"
    case stall = "STALL"
    case throttle = "THROTTLE"
    case slice = "SLICE"
    case streamError = "STREAM ERROR"
    case saslFailure = "SASL FAILURE"
    case loseAck = "LOSE ACK"

    /// Whether the action is written with a full stop instead of a value; nil if both are valid.
    var hasNoValue: Bool? {
        switch self {
        case .pass, .drop, .default, .unsubscribeSender, .return, .trace, .pause, .reset, .halfClose, .loseAck: true
        case .bounce, .duplicate, .stall: nil
        default: false
        }
    }

    /// Actions of mod_firewall that are only possible inside the server, with the reason.
    static let refused: [String: String] = [
        "EVENT": "events exist only inside the server",
        "JUMP EVENT": "events exist only inside the server",
        "REPORT TO": "the server sends reports on its own behalf; FORWARD=JID sends the stanza to a person",
        "RULEDEP": "it loads code into the server",
    ]
}

extension RuleParser {
    /// Parses an action line.
    mutating func step(named name: String, _ reader: RuleReader) throws(RuleFault) -> RuleStep {
        var reader = reader
        let start = reader
        if let reason = RuleActionName.refused[name] { throw reader.fault("\(name) is not supported", reason) }
        guard let term = RuleActionName(rawValue: name) else {
            if let condition = RuleConditionName(rawValue: name) {
                let usage = condition.hasNoValue ? "\(name)?" : "\(name): VALUE"
                throw reader.fault("\(name) is a condition, not an action", "expected \(usage)")
            }
            let known = RuleActionName.allCases.map(\.rawValue)
            throw reader.fault(
                "unknown action \"\(name)\"",
                "expected an action such as DROP. or BOUNCE=policy-violation",
                nearest: Spelling.nearest(to: name, among: known.map { $0.lowercased() })?.uppercased()
            )
        }
        _ = reader.consume { $0 != "." && $0 != "=" }
        if reader.consume(".") {
            guard term.hasNoValue != false else {
                throw reader.fault("\(name) without a value", "expected \(name)=VALUE", at: start)
            }
            try reader.end()
            return try plainStep(term, start)
        }
        _ = reader.consume("=")
        guard term.hasNoValue != true else { throw reader.fault("\(name) takes no value", "expected \(name).") }
        if term != .reply, term != .log { reader.skipSpaces() }
        guard !reader.isAtEnd else {
            throw reader.fault("\(name) without a value", "expected \(name)=VALUE", at: start)
        }
        let step = try self.step(term, &reader)
        try reader.end()
        return step
    }

    private func plainStep(_ term: RuleActionName, _ start: RuleReader) throws(RuleFault) -> RuleStep {
        switch term {
        case .pass: .pass
        case .drop: .drop
        case .bounce: .bounce(.serviceUnavailable)
        // mod_firewall's DEFAULT means PASS in user chains and before routing. Elsewhere the server replies that it
        // does not handle the stanza.
        case .default: isUserChain || isPreroute ? .pass : .bounce(.serviceUnavailable)
        case .unsubscribeSender: .unsubscribeSender
        case .return: .return
        case .trace: .trace(tag: nil)
        case .pause: .pause
        case .duplicate: .duplicate(1)
        case .stall: .fault(.stall(nil))
        case .reset: .fault(.reset)
        case .halfClose: .fault(.halfClose)
        default: .fault(.loseAck)
        }
    }

    private mutating func step(_ term: RuleActionName, _ reader: inout RuleReader) throws(RuleFault) -> RuleStep {
        switch term {
        case .bounce: return .bounce(try bounce(&reader))
        case .reply: return .reply(try RuleText(&reader))
        case .redirect: return .redirect(try address(&reader))
        case .copy: return .copy(try address(&reader))
        case .forward: return .forward(try address(&reader))
        case .strip: return .strip(try strip(&reader))
        case .inject: return .injectChild(try xml(&reader))
        case .markOrigin: return .mark(.origin, try reader.name(of: "mark"))
        case .unmarkOrigin: return .unmark(.origin, try reader.name(of: "mark"))
        case .markUser: return .mark(.user, try reader.name(of: "mark"))
        case .unmarkUser: return .unmark(.user, try reader.name(of: "mark"))
        case .addTo:
            let list = try defined("list", \.lists, &reader)
            reader.skipSpaces()
            guard !reader.isAtEnd else { throw reader.fault("nothing to add", "expected ADD TO=LIST $<@from|bare>") }
            return .add(list: list, try RuleText(&reader))
        case .log: return try log(&reader)
        case .jumpChain: return .jump(chain: try jump(&reader))
        case .tagTrace: return .trace(tag: try reader.name(of: "tag"))
        case .delay:
            let delay = try reader.duration()
            var jitter: Int64 = 0
            for var option in try reader.options() {
                guard option.consume("jitter ") else {
                    throw option.fault("unknown option \"\(option.rest)\"", "expected (jitter 500ms)")
                }
                option.skipSpaces()
                jitter = try option.duration()
                try option.end()
            }
            return .delay(delay, jitter: jitter)
        case .duplicate: return .duplicate(try reader.integer("number of copies", in: 1...1000))
        case .set: return try setting(&reader)
        case .replace: return try replacement(&reader)
        case .remove: return .remove(try editablePath(&reader, isText: false))
        case .record: return .record(try reader.choice("switch", [("on", true), ("off", false)]))
        case .level:
            return .level(try reader.choice("level", Level.allCases.filter { $0 != .off }.map { ($0.name, $0) }))
        // Matches any namespace, so that the action redacts too much rather than too little: the text of a stanza error
        // has a different namespace than the error.
        case .redact: return .redact(try path(&reader).inAnyNamespace)
        case .cutAfter: return .fault(.cut(after: try reader.size("number of bytes")))
        case .stall: return .fault(.stall(try reader.duration()))
        case .throttle:
            let start = reader
            let rate = try reader.size("number of bytes a second")
            guard rate > 0 else { throw start.fault("the rate is 0", "use STALL. to stop the stream") }
            return .fault(.throttle(rate))
        case .slice:
            let size = try reader.integer("number of bytes", in: 1...(1 << 30))
            var every: Int64 = 0
            for var option in try reader.options() {
                guard option.consume("every ") else {
                    throw option.fault("unknown option \"\(option.rest)\"", "expected (every 7ms)")
                }
                option.skipSpaces()
                every = try option.duration()
                try option.end()
            }
            return .fault(.slice(size, every: every))
        case .streamError: return try streamError(&reader)
        case .saslFailure: return .fault(.saslFailure(try saslFailure(&reader)))
        default: throw reader.fault("\(term.rawValue) takes no value")
        }
    }

    // MARK: Replies

    /// Parses a JID or a text with expressions, which is checked when the action is executed.
    private func address(_ reader: inout RuleReader) throws(RuleFault) -> RuleText {
        let start = reader
        let text = try RuleText(&reader)
        if let literal = text.literal, let fault = Address(String(decoding: literal, as: UTF8.self)).fault {
            throw start.fault("\"\(start.rest)\" is not a JID: \(fault)")
        }
        return text
    }

    /// Parses the text in parentheses at the end of a line.
    private static func parseNote(_ reader: inout RuleReader) throws(RuleFault) -> String? {
        reader.skipSpaces()
        guard !reader.isAtEnd else { return nil }
        guard reader.rest.hasPrefix("("), reader.rest.hasSuffix(")"), reader.rest.count > 2 else {
            throw reader.fault("unexpected \"\(reader.rest)\"", "write the text in parentheses: (\(reader.rest))")
        }
        return String(reader.consumeRest().dropFirst().dropLast())
    }

    private func bounce(_ reader: inout RuleReader) throws(RuleFault) -> StanzaCondition {
        let start = reader
        let word = reader.word()
        let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts.first ?? ""
        guard let condition = StanzaCondition.all.first(where: { $0.name == name }) else {
            throw start.fault(
                "\"\(name)\" is not a stanza error",
                "expected a condition of RFC 6120 §8.3.3, as in BOUNCE=policy-violation (too long)",
                nearest: Spelling.nearest(to: name, among: StanzaCondition.all.map(\.name))
            )
        }
        let type = parts.count > 1 ? parts[1] : condition.type
        guard StanzaCondition.types.contains(type) else {
            throw start.fault(
                "\"\(type)\" is not a type of a stanza error",
                "expected \(StanzaCondition.types.joined(separator: ", "))",
                nearest: Spelling.nearest(to: type, among: StanzaCondition.types)
            )
        }
        return StanzaCondition(name: name, type: type, text: try Self.parseNote(&reader))
    }

    private func streamError(_ reader: inout RuleReader) throws(RuleFault) -> RuleStep {
        let start = reader
        let word = reader.word()
        guard let condition = StreamErrorCondition(rawValue: word) else {
            throw start.fault(
                "\"\(word)\" is not a stream error",
                "expected a condition of RFC 6120 §4.9.3, as in STREAM ERROR=policy-violation",
                nearest: Spelling.nearest(to: word, among: StreamErrorCondition.allCases.map(\.rawValue))
            )
        }
        return .fault(.streamError(condition, text: try Self.parseNote(&reader)))
    }

    /// The SASL error conditions (RFC 6120 §6.5).
    private static let saslConditions = [
        "aborted", "account-disabled", "credentials-expired", "encryption-required", "incorrect-encoding",
        "invalid-authzid", "invalid-mechanism", "malformed-request", "mechanism-too-weak", "not-authorized",
        "temporary-auth-failure",
    ]

    private func saslFailure(_ reader: inout RuleReader) throws(RuleFault) -> String {
        try reader.choice("SASL failure", Self.saslConditions.map { ($0, $0) })
    }

    /// Parses `LOG` as mod_firewall does: `[LEVEL]` is the level if it is a known one, and otherwise part of the text.
    private mutating func log(_ reader: inout RuleReader) throws(RuleFault) -> RuleStep {
        let names: [(String, Level)] = [
            ("error", .error), ("warn", .warn), ("info", .info), ("debug", .verbose), ("verbose", .verbose),
            ("trace", .trace),
        ]
        let start = reader
        guard reader.consume("[") else { return .log(.info, try RuleText(&reader)) }
        let word = reader.consume { $0.isASCII && $0.isLetter }
        guard reader.consume("]"), let named = names.first(where: { $0.0 == word.lowercased() }) else {
            let isWord = start.rest.hasPrefix("[\(word)]")
            if isWord, let nearest = Spelling.nearest(to: word, among: names.map(\.0)) {
                warn(start.fault("\"[\(word)]\" is not a level: it is logged as text", nearest: "[\(nearest)]"))
            }
            reader = start
            return .log(.info, try RuleText(&reader))
        }
        reader.skipSpaces()
        return .log(named.1, try RuleText(&reader))
    }

    // MARK: Edits

    /// Parses `name`, `name namespace`, `*` or `* namespace`.
    private func strip(_ reader: inout RuleReader) throws(RuleFault) -> StanzaPath.Step {
        let start = reader
        let name = reader.word()
        reader.skipSpaces()
        let namespace = RuleReader.trimmed(reader.consumeRest())
        var step = StanzaPath.Step()
        if name != "*" {
            let path = try Self.path(name, start, isText: false)
            guard path.steps.count == 1, path.end == .element, let parsed = path.steps.first, parsed.namespace == nil
            else {
                throw start.fault(
                    "\"\(name)\" is not an element name",
                    "expected STRIP=NAME or STRIP=NAME NAMESPACE"
                )
            }
            step.name = parsed.name
        }
        if !namespace.isEmpty { step.namespace = NamespaceKey(uri: Array(namespace.utf8)) }
        return step
    }

    /// Parses XML. Replaces each expression by a sample word to check that the XML is valid.
    private func xml(_ reader: inout RuleReader, isStanza: Bool = false) throws(RuleFault) -> RuleText {
        let start = reader
        let text = try RuleText(&reader)
        let sample = text.parts.flatMap { part -> [UInt8] in
            if case .literal(let bytes) = part { bytes } else { Array("expression".utf8) }
        }
        var checker = ItemChecker()
        let element: Element
        do throws(ItemChecker.Problem) {
            element = try checker.check(sample, content: .client)
        } catch {
            throw start.fault("the XML is wrong: \(error.message)", "expected one whole element")
        }
        if isStanza, !["message", "presence", "iq"].contains(element.name) || element.namespace != .client {
            throw start.fault("\"<\(element.name)>\" is not a stanza", "expected <message>, <presence> or <iq>")
        }
        if isStanza {
            for name in ["from", "to"] as [StaticString] {
                guard let value = element.attribute(name) else { continue }
                try Self.checkAddress(value, named: Array("\(name)".utf8), start)
            }
        }
        return text
    }

    /// Parses a path that can be edited.
    private mutating func editablePath(_ reader: inout RuleReader, isText: Bool) throws(RuleFault) -> StanzaPath {
        reader.skipSpaces()
        let start = reader
        var depth = 0
        let source = reader.consume { character in
            if character == "{" { depth += 1 }
            if character == "}" { depth -= 1 }
            return depth > 0 || character != "=" && character != "~" && !character.isWhitespace
        }
        let path = try Self.path(source, start, isText: isText)
        if case .attribute(let name, let namespace) = path.end {
            guard namespace.uri.isEmpty else {
                throw start.fault("\"\(source)\" has a namespace", "only attributes without one can be edited")
            }
            if path.steps.isEmpty { warn(editing: String(decoding: name, as: UTF8.self), start) }
        }
        return path
    }

    /// Warns of edits of attributes that RFC 6120 §8.1 restricts, as far as possible without a session.
    private mutating func warn(editing attribute: String, _ reader: RuleReader) {
        switch attribute {
        case "from":
            editsOfSender.append(
                reader.fault(
                    "this changes the stanza's from",
                    "for stanzas from the client the edit is refused unless it is the client's own JID (RFC 6120 §8.1.2.1)"
                )
            )
        case "id":
            warn(reader.fault("this changes the stanza's id", "the sender cannot match the answer to its request"))
        default: break
        }
    }

    /// Parses `PATH=TEXT` or `PATH ~PATTERN=TEXT`.
    private mutating func setting(_ reader: inout RuleReader) throws(RuleFault) -> RuleStep {
        let start = reader
        let path = try editablePath(&reader, isText: true)
        reader.skipSpaces()
        var pattern: Int?
        if reader.consume("~") { pattern = try defined("pattern", \.patterns, &reader) }
        reader.skipSpaces()
        guard reader.consume("=") else {
            throw reader.fault("no \"=\" after \(path.source)", "expected SET=PATH=TEXT or SET=PATH ~PATTERN=TEXT")
        }
        guard let pattern else {
            let text = try RuleText(&reader)
            if let literal = text.literal, path.steps.isEmpty, case .attribute(let name, _) = path.end {
                try Self.checkAddress(String(decoding: literal, as: UTF8.self), named: name, start)
            }
            return .set(path, .text(text))
        }
        let captures = definitions.patterns.values[pattern].captureCount
        return .set(path, .replacing(pattern: pattern, by: try RuleText(&reader, captures: captures)))
    }

    /// Throws if a value of `from` or `to` is not a JID (RFC 6120 §8.1).
    private static func checkAddress(_ value: String, named name: [UInt8], _ start: RuleReader) throws(RuleFault) {
        guard name.span.equals("from") || name.span.equals("to"), let fault = Address(value).fault else { return }
        throw start.fault(
            "\(String(decoding: name, as: UTF8.self))=\"\(value)\" is not a JID: \(fault)",
            value.isEmpty ? "use REMOVE=@\(String(decoding: name, as: UTF8.self)) to remove it" : nil
        )
    }

    /// Parses `XML` for the whole stanza, or `PATH XML`.
    private mutating func replacement(_ reader: inout RuleReader) throws(RuleFault) -> RuleStep {
        if reader.rest.hasPrefix("<") { return .replace(nil, try xml(&reader, isStanza: true)) }
        let start = reader
        let path = try editablePath(&reader, isText: false)
        guard path.end == .element else {
            throw start.fault("\"\(path.source)\" is a text, not an element", "use SET to change a text")
        }
        reader.skipSpaces()
        guard !reader.isAtEnd else { throw reader.fault("missing XML", "expected REPLACE=PATH XML") }
        return .replace(path, try xml(&reader))
    }

    /// Throws if a fault can never occur because the rule does not apply to the element that the fault needs.
    func checkFaults(of rule: Rule) throws(RuleFault) {
        // A user chain applies to the elements of the rules that jump to it.
        var isJumpedTo = false
        if case .user = rule.chain { isJumpedTo = true }
        for step in rule.steps {
            switch step {
            case .fault(.loseAck):
                let mayBeAcknowledgement = rule.conditions.allSatisfy { condition in
                    guard case .element(let step) = condition.test, !condition.isNegated else { return true }
                    return (step.name.map { $0.span.equals("a") } ?? true)
                        && (step.namespace.map { $0.namespace == .streamManagement } ?? true)
                }
                let isAsked = isJumpedTo || rule.namesElement && rule.kinds.contains(.nonza)
                guard mayBeAcknowledgement, isAsked, rule.chain != .handshake else {
                    throw RuleReader("", at: rule.place).fault(
                        "LOSE ACK. can never act: the rule is not asked about acknowledgements",
                        "add the condition ELEMENT: {urn:xmpp:sm:3}a"
                    )
                }
            case .fault(.saslFailure):
                guard isJumpedTo || rule.kinds.contains(.nonza), rule.chain.reaches(.send), !rule.excludes(.send) else {
                    throw RuleReader("", at: rule.place).fault(
                        "SASL FAILURE can never act: the rule is not asked about the client's login",
                        "put it below ::handshake"
                    )
                }
            default: break
            }
        }
    }

    /// Warns of rules that leave an iq request unanswered (RFC 6120 §8.2.3) or change the sender (RFC 6120 §8.1.2.1).
    mutating func warn(of rule: Rule) {
        // Only edits of stanzas to the server: stanzas from the server can have any sender.
        if rule.chain.reaches(.send), !rule.excludes(.send) { editsOfSender.forEach { warn($0) } }
        editsOfSender = []
        guard rule.steps.contains(where: { if case .drop = $0 { true } else { false } }), rule.kinds == .iq else {
            return
        }
        let isAnswer = rule.conditions.contains { condition in
            guard case .type(let types) = condition.test, !condition.isNegated else { return false }
            return !types.contains(Array("get".utf8)) && !types.contains(Array("set".utf8))
        }
        guard !isAnswer else { return }
        warn(
            RuleReader("", at: rule.place).fault(
                "DROP. leaves the iq request unanswered",
                "use BOUNCE. to answer with an error"
            )
        )
    }
}

internal import TapRecord
package import XMPPCore

extension RuleSet {
    /// Evaluates the rules for an item: the conditions of each rule in order, then its actions, until one decides.
    ///
    /// - Parameters:
    ///   - item: The element.
    ///   - tree: Parses the element into a tree, nil if it cannot be parsed; called at most once, and only if a rule
    ///     needs it.
    ///   - state: The state of the session.
    ///   - context: Properties of the session and the item.
    package func judge(
        _ item: RuleItem,
        tree: () -> Element?,
        state: inout RuleState,
        context: RuleContext
    ) -> Verdict {
        let isOpen = !context.phase.isHandshake
        guard mayMatch(item.direction, isOpen: isOpen, item.head.kind) else { return Verdict() }
        var judgement = RuleEvaluation(self, item, context)
        if createsStanzas, item.head.kind != .nonza { judgement.findOrigins(tree) }
        for stage in 0...1 {
            let rules = index.rules(stage, item.direction, isOpen: isOpen, item.head.kind)
            if judgement.run(rules, tree, &state, stage: stage) == .decided { break }
        }
        return judgement.verdict
    }

    /// Evaluates the rules for a stanza that xmpptap itself sends: only those with `ORIGIN: tap`.
    package func judgeInjected(
        _ item: RuleItem,
        tree: () -> Element?,
        state: inout RuleState,
        context: RuleContext
    ) -> Verdict {
        var judgement = RuleEvaluation(self, item, context)
        for stage in 0...1 {
            let rules = tapRules(stage, item.direction, isOpen: !context.phase.isHandshake, item.head.kind)
            if judgement.run(rules, tree, &state) == .decided { break }
        }
        return judgement.verdict
    }
}

/// The evaluation of the rules for one item.
struct RuleEvaluation: ~Escapable {
    /// How evaluation continues after a rule or a chain.
    enum Flow {
        case next
        /// Continue after the action that jumped to this chain.
        case returned
        /// Skip the rest of this chain and of the chains that jumped to it.
        case passed
        case decided
    }

    let set: RuleSet
    let item: RuleItem
    let context: RuleContext
    var verdict = Verdict()
    /// The index of the rule that is being evaluated.
    private(set) var current = 0
    var place: RulePlace { self.set.rules[current].place }

    private var parsed: Element?
    private var wasAsked = false
    /// The item after edits; nil if unedited.
    private(set) var edited: Element?
    private var sender: RuleAddress?
    private var receiver: RuleAddress?
    private var rulesLeft = RuleSet.maximumRules
    /// Whether the current action tried to edit the item and was refused.
    var hasRefusedEdit = false

    @_lifetime(copy item)
    init(_ set: RuleSet, _ item: RuleItem, _ context: RuleContext) {
        self.set = set
        self.item = item
        self.context = context
    }

    // MARK: Rules

    /// - Parameter stage: The stage whose selected rules are evaluated; nil evaluates all `rules`.
    mutating func run(_ rules: [Int], _ tree: () -> Element?, _ state: inout RuleState, stage: Int? = nil) -> Flow {
        var position = -1
        while true {
            position += 1
            // The index has selected rules for the original item, so its selection does not apply to an edited one.
            if edited == nil, let stage { position = state.selection.next(from: position, stage: stage) }
            guard position < rules.count else { return .next }
            let number = rules[position]
            rulesLeft -= 1
            guard rulesLeft >= 0 else {
                remark(.tooManyRules)
                return .decided
            }
            current = number
            // The first condition: a rule that is off counts nothing.
            guard set.isOn(number), !verdict.origins.contains(place), holds(number, tree, &state) else { continue }
            let rule = set.rules[number]
            verdict.hits.append(
                Verdict.Hit(rule: number, place: place, isTraced: rule.isTraced, conditions: rule.conditionTexts)
            )
            for step in set.rules[number].steps {
                let flow = carryOut(step, tree, &state)
                current = number
                if flow != .next { return flow }
            }
        }
    }

    private mutating func holds(_ number: Int, _ tree: () -> Element?, _ state: inout RuleState) -> Bool {
        for condition in set.rules[number].conditions {
            var isTrue = false
            do throws(PatternTooComplex) {
                if condition.test.isStateful, let answer = state.recall() {
                    isTrue = answer
                } else {
                    isTrue = try holds(condition.test, tree, &state)
                    if condition.test.isStateful { state.remember(isTrue) }
                }
            } catch {
                // The condition is unknown, so neither it nor its negation is true.
                remark(.tooComplex)
                return false
            }
            if isTrue == condition.isNegated { return false }
        }
        return true
    }

    /// Finds the rules that created the stanza; these rules are not evaluated for the stanza.
    mutating func findOrigins(_ tree: () -> Element?) {
        let created = set.tables.created
        guard !created.isEmpty else { return }
        verdict.origins = created.rules(of: createdKey(tree), session: context.session, at: context.now)
    }

    mutating func remark(_ remark: Verdict.Remark) {
        guard !verdict.remarks.contains(where: { $0.place == place && $0.remark == remark }) else { return }
        verdict.remarks.append((place, remark))
    }

    // MARK: The item

    /// Returns the element including edits; nil if it cannot be parsed.
    mutating func element(_ tree: () -> Element?) -> Element? {
        if let edited { return edited }
        if !wasAsked {
            wasAsked = true
            parsed = tree()
        }
        return parsed
    }

    /// Replaces the element by an edited one.
    mutating func replace(by element: Element, _ bytes: [UInt8]) {
        edited = element
        verdict.edited = bytes
        verdict.editedBy = place
        (sender, receiver) = (nil, nil)
    }

    enum HeadAttribute { case id, type, from, to }

    /// Returns an attribute of the stanza, including edits; nil if it is absent.
    func attribute(_ attribute: HeadAttribute) -> [UInt8]? {
        if let edited { return edited.attribute("\(attribute)") }
        guard let value = headAttribute(attribute) else { return nil }
        var bytes: [UInt8] = []
        let raw = item.bytes.slice(value.range)
        if value.needsDecoding { AttributeValue.decode(raw, into: &bytes) } else { bytes.append(raw) }
        return bytes
    }

    private func headAttribute(_ attribute: HeadAttribute) -> StanzaHead.Attribute? {
        switch attribute {
        case .id: item.head.id
        case .type: item.head.type
        case .from: item.head.from
        case .to: item.head.to
        }
    }

    /// Returns whether the type is one of `types`. An absent type means `normal` for messages and `available` for
    /// presence.
    func hasType(_ types: [[UInt8]]) -> Bool {
        if edited == nil, let type = item.head.type, !type.needsDecoding {
            for wanted in types where item.bytes.slice(type.range).equals(wanted.span) { return true }
            return false
        }
        if let type = attribute(.type) { return types.contains(type) }
        return switch item.head.kind {
        case .message: types.contains { $0.span.equals("normal") }
        case .presence: types.contains { $0.span.equals("available") }
        case .iq, .nonza: false
        }
    }

    func isType(_ type: StaticString) -> Bool {
        let value = attribute(.type) ?? []
        return value.span.equals(type)
    }

    /// Whether the item is an iq request, which must be answered (RFC 6120 §8.2.3).
    var isRequest: Bool { item.head.kind == .iq && (isType("get") || isType("set")) }

    /// Whether the item is an error or an iq result, which must not be answered.
    var isAnswer: Bool { isType("error") || item.head.kind == .iq && isType("result") }

    /// Returns the sender or receiver (RFC 6120 §8.1); nil if it is not known. An absent `from` is the session's JID on
    /// SEND and its account on RECV; an absent `to` is the account on SEND and the session's JID on RECV.
    mutating func address(_ side: RuleTest.Side) -> RuleAddress? {
        if let known = side == .from ? sender : receiver { return known }
        let written = attribute(side == .from ? .from : .to).map { String(decoding: $0, as: UTF8.self) }
        guard let text = written ?? impliedAddress(side) else { return nil }
        var address = RuleAddress(text)
        // The server replaces a bare `from` by the full JID (RFC 6120 §8.1.2.1).
        if side == .from, item.direction == .send, context.content == .client, let account, address.full == account.bare
        {
            address = account
        }
        if side == .from { sender = address } else { receiver = address }
        return address
    }

    private func impliedAddress(_ side: RuleTest.Side) -> String? {
        guard let jid = context.jid else { return nil }
        let isOwnResource = (side == .from) == (item.direction == .send)
        return isOwnResource ? jid : Address(jid).bare.raw
    }

    /// Returns the remote party: the receiver on SEND, the sender on RECV.
    mutating func peer() -> RuleAddress? { address(item.direction == .send ? .to : .from) }

    var account: RuleAddress? { context.jid.map { RuleAddress($0) } }

    // MARK: Texts

    /// Evaluates the expressions of a text for this item.
    mutating func text(_ text: RuleText, _ tree: () -> Element?, captures: (match: PatternMatch, text: [UInt8])? = nil)
        -> [UInt8]
    {
        if let literal = text.literal { return literal }
        var result: [UInt8] = []
        // Stops above the limit, because a larger stanza is refused anyway.
        for part in text.parts where result.count <= context.maximumBytes {
            switch part {
            case .literal(let bytes): result += bytes
            case .path(let path, let functions, let fallback): result += value(path, functions, tree) ?? fallback
            case .known(let known): result += value(known, tree)
            case .capture(let number): result += captures.flatMap { $0.match.bytes(number, of: $0.text) } ?? []
            }
        }
        return result
    }

    private mutating func value(_ path: StanzaPath, _ functions: [RuleText.Function], _ tree: () -> Element?)
        -> [UInt8]?
    {
        var value: [UInt8]?
        if path.steps.isEmpty, case .attribute(let name, let namespace) = path.end, namespace.uri.isEmpty {
            if name.span.equals("from") {
                value = address(.from)?.full
            } else if name.span.equals("to") {
                value = address(.to)?.full
            } else {
                value = element(tree)?.attribute(named: name, in: namespace)
            }
        } else if let element = element(tree) {
            switch path.find(in: element) {
            case .bytes(let bytes): value = bytes
            case .element(let element): value = XMLWriter.bytes { $0.element(element, inheriting: "") }
            case nil: value = nil
            }
        }
        for function in functions {
            guard let text = value else { return nil }
            let address = RuleAddress(String(decoding: text, as: UTF8.self))
            switch function {
            case .bare: value = address.bare
            case .node: value = address.local
            case .host: value = address.domain
            case .resource: value = address.resource
            }
        }
        return value
    }

    private mutating func value(_ known: RuleText.Known, _ tree: () -> Element?) -> [UInt8] {
        switch known {
        case .stanza:
            guard let edited = verdict.edited else {
                var bytes: [UInt8] = []
                bytes.append(item.bytes)
                return bytes
            }
            return edited
        case .topTag:
            guard let element = element(tree) else { return [] }
            var writer = XMLWriter()
            writer.start(element, inheriting: context.content.uri.description)
            return writer.take()
        case .name: return element(tree).map { Array($0.name.utf8) } ?? []
        case .jid: return account?.full ?? Array("nil".utf8)
        case .user: return account?.local ?? Array("nil".utf8)
        case .host: return account?.domain ?? Array((context.domain ?? "nil").utf8)
        case .ip: return Array((context.clientAddress ?? "nil").utf8)
        }
    }
}

extension Element {
    fileprivate func attribute(_ name: String) -> [UInt8]? {
        attribute(named: Array(name.utf8), in: NamespaceKey(uri: []))
    }
}

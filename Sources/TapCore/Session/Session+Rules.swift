internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Rules: the final decision on each item.
extension Session {
    /// Takes the rules of the options.
    mutating func beginRules() {
        if let set = options.rules?.current { replaceRules(by: set) }
    }

    /// Replaces the rules from the next item on.
    mutating func replaceRules(by set: RuleSet?) {
        guard recording == nil, !options.isObserved else { return }
        if let rules {
            rules.replace(by: set ?? RuleSet(), resumption.isResumable ? streamManagement?.ledgers : nil)
        } else if let set {
            rules = SessionRules(set, session: number, remote: remote, localTime: options.rules?.localTime)
        }
        for direction in Direction.allCases {
            shape(direction, nil)
            settleMode(direction)
        }
    }

    /// Whether a rule can alter items of a direction, which is then relayed item by item.
    func rulesAlter(_ direction: Direction) -> Bool {
        guard let rules else { return false }
        return rules.set.canAlter(direction) || rules.pause?.covers(direction) == true
            || rules.earlier.contains { $0.set.canAlter(direction) } && isRepeating(direction)
    }

    /// Whether the next stanza of a direction is a retransmission.
    private func isRepeating(_ direction: Direction) -> Bool {
        streamManagement?.ledgers[direction].isRepeating == true
    }

    /// Switches between cut-through and store-and-forward, as the rules of an open session need it.
    mutating func settleMode(_ direction: Direction) {
        guard info.opened != nil else { return }
        if rulesAlter(direction) {
            storeAndForward(direction)
        } else if injections?.stored.contains(direction) != true {
            cutThrough(direction)
        }
    }

    /// Forgets earlier rules that are no longer needed.
    mutating func settleEarlierRules(_ rules: SessionRules) {
        if let streamManagement { rules.forgetEarlier(streamManagement.ledgers) }
        for direction in Direction.allCases where !context.directions[direction].isHeld { settleMode(direction) }
    }

    // MARK: Judging

    /// The last interceptor: rules decide on items that would be forwarded.
    mutating func interceptByRules(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ rules: SessionRules
    ) -> ItemDecision {
        guard event.item == .element, !event.isTruncated else { return decision }
        switch decision {
        case .pass: judge(event, direction, rules)
        case .replace(let edited): judge(edited, direction, rules)
        case .drop:
            // A stanza that was dropped before is recorded as its rule required then.
            if event.head.kind != .nonza, isRepeating(direction) { watch(event, direction, rules) }
            return decision
        case .buffer, .answer, .refuse, .fault: return decision
        }
        return rules.ruling.flatMap { self.decision(of: $0) } ?? decision
    }

    /// The decision of a ruling on an item; nil if it does not change the earlier decision.
    private func decision(of ruling: ItemRuling) -> ItemDecision? {
        switch ruling.verdict.fate {
        case .pass:
            ruling.verdict.edited.map {
                .replace(EditedItem(bytes: $0, words: "changes by \(ruling.rule.map { "\($0)" } ?? "a rule")"))
            }
        case .drop, .fault(.loseAck): .drop
        case .fault(.saslFailure): .answer
        case .fault(let fault): .fault(fault)
        }
    }

    /// Evaluates rules for an element of a login before xmpptap answers it; nil if they let it pass.
    mutating func interceptLoginByRules(
        _ event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) -> ItemDecision? {
        guard event.item == .element, event.head.kind == .nonza, event.head.namespace.namespace.isSASL else {
            return nil
        }
        if direction == .recv, rules.swallowsFailure, context.isNamed("failure", event, .recv) {
            rules.swallowsFailure = false
            return .drop
        }
        guard direction == .send, negotiation.bridged != nil else { return nil }
        let decision = interceptByRules(event, direction, .pass, rules)
        switch decision {
        case .drop, .answer, .fault: return decision
        case .pass, .buffer, .replace, .refuse: return nil
        }
    }

    /// Evaluates rules for an item that they cannot alter: they decide only on its record.
    mutating func watch(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard event.item == .element, !event.isTruncated else { return }
        judge(event, direction, rules)
        rules.ruling?.isWatched = true
    }

    private func judge(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        // For a login that xmpptap performs, they were already evaluated.
        guard rules.ruling == nil else { return }
        guard !rules.earlier.isEmpty else { return ask(event, direction, rules) }
        let ledger = streamManagement?.ledgers[direction]
        let isRepeated = event.head.kind != .nonza && ledger?.isRepeating == true
        rules.withRules(of: isRepeated ? ledger.map { $0.sent + 1 } : nil, direction) { ask(event, direction, rules) }
    }

    private func ask(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        rules.isJudged = true
        let phase = negotiation.rulePhase
        guard rules.set.asks(direction, isOpen: !phase.isHandshake, event.head.kind),
            rules.set.index.select(
                event.head,
                context.directions[direction].decoder,
                direction,
                isOpen: !phase.isHandshake,
                jid: info.jid,
                into: &rules.state.selection
            )
        else { return }
        let bytes = context.directions.bytes(direction)
        var facts = ruleContext(direction, phase, rules, rules.set)
        if rules.set.asksRoundTrip { facts.roundTrip = roundTrip(event, direction) }
        let repetition = beginRepeated(event, direction, rules)
        let verdict = rules.set.judge(
            RuleItem(direction, event.head, bytes),
            // Items that parsers may read differently are read by libxml2.
            tree: {
                event.head.isUnusual
                    ? try? tools.parser.parse(context.directions[direction].decoder)
                    : tools.elements.read(context.directions[direction].decoder)
            },
            state: &rules.state,
            context: facts
        )
        take(verdict, repetition, rules)
    }

    /// Evaluates rules for the replacement of an item, if it can be read.
    private func judge(_ edited: EditedItem, _ direction: Direction, _ rules: SessionRules) {
        guard rules.ruling == nil else { return }
        let phase = negotiation.rulePhase
        guard let (event, element) = rules.checker.scan(edited.bytes, content: context.ruleContent(direction)) else {
            return
        }
        rules.isJudged = true
        guard rules.set.asks(direction, isOpen: !phase.isHandshake, event.head.kind) else { return }
        rules.state.begin()
        rules.state.selection.reset()
        let verdict = rules.set.judge(
            RuleItem(direction, event.head, edited.bytes.span),
            tree: { element },
            state: &rules.state,
            context: ruleContext(direction, phase, rules, rules.set)
        )
        take(verdict, .none, rules)
    }

    /// Evaluates rules with an origin condition for a stanza that xmpptap injects. They cannot alter it.
    func judge(_ item: InjectedItem, _ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard rules.set.asksTap else { return }
        rules.state.begin()
        var facts = ruleContext(direction, negotiation.rulePhase, rules, rules.set)
        facts.origin = .tap
        let stanza = item.stanza
        let verdict = rules.set.judgeInjected(
            RuleItem(direction, event.head, stanza.span),
            tree: { try? tools.parser.parse(item.decoder) },
            state: &rules.state,
            context: facts
        )
        take(verdict, .none, rules)
        rules.ruling?.origin = .tap
    }

    private func take(_ verdict: Verdict, _ repetition: ItemRuling.Repetition, _ rules: SessionRules) {
        guard !verdict.hits.isEmpty || !verdict.remarks.isEmpty || rules.state.hasAnswered else { return }
        rules.set.count(verdict.hits)
        rules.ruling = ItemRuling(verdict, repetition, answers: rules.state.answers)
    }

    /// Begins with an item. For a retransmission, conditions that depend on more than the item have the same result as
    /// before.
    private func beginRepeated(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules)
        -> ItemRuling.Repetition
    {
        rules.state.begin()
        guard event.head.kind != .nonza,
            let repeated = streamManagement?.retransmission(event, context.directions[direction])
        else { return .none }
        guard repeated.outcome != nil else { return .possible }
        rules.state.begin(answering: repeated.rule)
        return .known
    }

    // MARK: The context of rules

    /// - Parameter set: The rules to evaluate.
    func ruleContext(_ direction: Direction, _ phase: RulePhase, _ rules: SessionRules, _ set: RuleSet) -> RuleContext {
        var facts = RuleContext()
        facts.session = number
        facts.jid = info.jid
        facts.domain = info.domain
        facts.content = context.ruleContent(direction)
        facts.phase = phase
        facts.transport = info.hasClientTLS ? .tls : .tcp
        facts.clientAddress = rules.clientAddress
        facts.now = context.now.monotonic
        facts.localTime = rules.localTime(at: now.time)
        facts.mostBytes = options.limits.itemBytes
        facts.receiverBytes = (context.directions.send.receiverBytes, context.directions.recv.receiverBytes)
        if set.asksRoster { facts.roster = roster.current }
        return facts
    }

    /// The round trip of the request that an iq answers; nil if it is not an answer.
    private func roundTrip(_ event: StreamEvent, _ direction: Direction) -> Int64? {
        guard event.head.kind == .iq, let type = event.head.type, requests.isPending(direction.opposite) else {
            return nil
        }
        let bytes = context.directions.bytes(direction)
        guard bytes.slice(type.range).equals("result") || bytes.slice(type.range).equals("error") else { return nil }
        // A copy: the request stays pending until its answer is recorded.
        var requests = requests
        let request = requests.answer(event.head, bytes, direction, context.info)
        return request.map { context.now.monotonic - $0.monotonic }
    }
}

extension Negotiation {
    /// The session's progress in the terms of rules.
    var rulePhase: RulePhase {
        switch self {
        case .awaitingServer, .opening, .startingTLS: .opening
        case .authenticating: .authenticating
        case .restarting, .binding: .binding
        case .open: .open
        case .closing, .opaque, .refusing, .finished, .closed: .closing
        }
    }
}

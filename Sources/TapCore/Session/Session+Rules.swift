internal import TapRecord
import XMPPCore

// Rule files: the last word on each item.
extension Session {
    /// Begins with the rules of the options.
    mutating func beginRules() {
        if let set = options.rules?.current { replaceRules(by: set) }
    }

    /// Asks other rules from the next item on.
    mutating func replaceRules(by set: RuleSet?) {
        guard recording == nil, !options.isClientLog else { return }
        if let rules {
            rules.set = set ?? RuleSet()
            rules.state.forgetCounters()
        } else if let set {
            rules = SessionRules(set, session: number, remote: remote, localTime: options.rules?.localTime)
        }
        for direction in Direction.allCases {
            shape(direction, nil)
            settleMode(direction)
        }
    }

    /// Whether a rule can alter what passes in a direction, so that it passes item by item.
    func rulesAlter(_ direction: Direction) -> Bool { rules?.set.canAlter(direction) == true }

    /// Passes items of an open session as its rules need it.
    mutating func settleMode(_ direction: Direction) {
        guard info.opened != nil else { return }
        if rulesAlter(direction) {
            storeAndForward(direction)
        } else if injections?.stored.contains(direction) != true {
            cutThrough(direction)
        }
    }

    // MARK: Judging

    /// What rules make of a decision on an item: the last interceptor. They are asked only of what goes on.
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
        case .buffer, .drop, .answer, .refuse, .fault: return decision
        }
        return rules.ruling.flatMap { self.decision(of: $0) } ?? decision
    }

    /// What becomes of an item; nil where it goes on as it would.
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

    /// Has an element of a login judged before xmpptap answers it itself; nil where rules let it pass.
    mutating func interceptLoginByRules(
        _ event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) -> ItemDecision? {
        guard event.item == .element, event.head.kind == .nonza, event.head.namespace.namespace.isSASL else {
            return nil
        }
        if direction == .recv, rules.swallowsFailure, isNamed("failure", event, .recv) {
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

    /// Has an item judged that passes as it comes: nothing becomes of it, but perhaps of its record.
    mutating func watch(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard event.item == .element, !event.isTruncated else { return }
        judge(event, direction, rules)
        rules.ruling?.isWatched = true
    }

    private func judge(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        // Of a login that xmpptap performs itself they were asked before.
        guard rules.ruling == nil else { return }
        rules.isJudged = true
        defer { noteRoster(event, direction, rules) }
        let phase = negotiation.rulePhase
        guard rules.set.asks(direction, isOpen: !phase.isHandshake, event.head.kind),
            rules.set.index.select(
                event.head,
                directions[direction].decoder,
                direction,
                isOpen: !phase.isHandshake,
                into: &rules.state.selection
            )
        else { return }
        let bytes = directions.bytes(direction)
        let context = context(event, direction, phase, rules)
        let repetition = beginRepeated(event, direction, rules)
        let verdict = rules.set.judge(
            RuleItem(direction, event.head, bytes),
            tree: { try? tools.parser.parse(directions[direction].decoder) },
            state: &rules.state,
            context: context
        )
        take(verdict, repetition, rules)
    }

    /// Has what goes out in the place of an item judged, where it can be read.
    private func judge(_ edited: EditedItem, _ direction: Direction, _ rules: SessionRules) {
        guard rules.ruling == nil else { return }
        let phase = negotiation.rulePhase
        guard let (event, element) = rules.checker.scan(edited.bytes, content: ruleContent(direction)) else { return }
        rules.isJudged = true
        guard rules.set.asks(direction, isOpen: !phase.isHandshake, event.head.kind) else { return }
        rules.state.begin()
        rules.state.selection.reset()
        let context = context(event, direction, phase, rules)
        let verdict = rules.set.judge(
            RuleItem(direction, event.head, edited.bytes.span),
            tree: { element },
            state: &rules.state,
            context: context
        )
        take(verdict, .none, rules)
    }

    private func take(_ verdict: Verdict, _ repetition: ItemRuling.Repetition, _ rules: SessionRules) {
        guard !verdict.hits.isEmpty || !verdict.remarks.isEmpty || rules.state.hasAnswered else { return }
        rules.set.count(verdict.hits)
        rules.ruling = ItemRuling(verdict, repetition, answers: rules.state.answers)
    }

    /// Tells the state whether a stanza comes again: then what depends on more than the stanza is answered as before.
    private func beginRepeated(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules)
        -> ItemRuling.Repetition
    {
        rules.state.begin()
        guard event.head.kind != .nonza, let streamManagement,
            let repeated = streamManagement.translator.ledgers[direction].retransmission(
                StreamManagementLedger.fingerprint(event.head, directions.bytes(direction))
            )
        else { return .none }
        guard repeated.outcome != nil else { return .possible }
        rules.state.begin(answering: repeated.rule)
        return .known
    }

    // MARK: What rules know

    private func context(
        _ event: StreamEvent,
        _ direction: Direction,
        _ phase: RulePhase,
        _ rules: SessionRules
    ) -> RuleContext {
        var context = RuleContext()
        context.session = number
        context.jid = info.jid
        context.domain = info.domain
        context.content = ruleContent(direction)
        context.phase = phase
        context.transport = info.hasClientTLS ? .tls : .tcp
        context.clientAddress = rules.clientAddress
        context.now = now.monotonic
        context.localTime = rules.localTime(at: now.time)
        context.mostBytes = options.limits.itemBytes
        if rules.set.asksRoster { context.roster = rules.roster }
        if rules.set.asksRoundTrip { context.roundTrip = roundTrip(event, direction) }
        return context
    }

    func ruleContent(_ direction: Direction) -> Namespace {
        let content = directions[direction].decoder.contentNamespace
        return content.isContent ? content : .client
    }

    /// How long the request has waited that an iq answers; nil where it answers none.
    private func roundTrip(_ event: StreamEvent, _ direction: Direction) -> Int64? {
        guard event.head.kind == .iq, let type = event.head.type, requests.isPending(direction.opposite) else {
            return nil
        }
        let bytes = directions.bytes(direction)
        guard bytes.slice(type.range).equals("result") || bytes.slice(type.range).equals("error") else { return nil }
        // A copy: the request stays pending until its answer is recorded.
        var requests = requests
        let request = requests.answer(
            direction,
            id: bytes.slice(event.head.id?.range ?? .empty),
            from: bytes.slice(event.head.from?.range ?? .empty),
            to: hasManyUsers ? bytes.slice(event.head.to?.range ?? .empty) : Span(),
            jid: info.jid,
            domain: info.domain
        )
        return request.map { now.monotonic - $0.monotonic }
    }

    private func noteRoster(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard rules.set.asksRoster, direction == .recv, event.head.kind != .nonza else { return }
        guard event.head.payloadNamespace.namespace == .roster || event.head.kind == .presence && event.head.type != nil
        else { return }
        if let stanza = tools.elements.read(directions.recv.decoder) { rules.roster.received(stanza, jid: info.jid) }
    }
}

extension Negotiation {
    /// How far the session has come, in the words of rules.
    fileprivate var rulePhase: RulePhase {
        switch self {
        case .awaitingServer, .opening, .startingTLS: .opening
        case .authenticating: .authenticating
        case .restarting, .binding: .binding
        case .open: .open
        case .closing, .opaque, .refusing, .finished, .closed: .closing
        }
    }
}

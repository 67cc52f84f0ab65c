internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// The facts of other parts of a session that rules ask for.
struct RuleFacts {
    /// The contacts, if a rule asks for them.
    var roster: Roster?
    /// The round trip of the request that the current item answers, in nanoseconds, if a rule asks for it; nil if it is
    /// not an answer.
    var roundTrip: Int64?
}

// The decision of rules on each item.
extension SessionRules {
    /// The last interceptor: rules decide on items that would be forwarded.
    func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) -> ItemDecision {
        guard event.item == .element, !event.isTruncated else { return decision }
        switch decision {
        case .pass: judge(event, direction, facts, context)
        case .replace(let edited): judge(edited, direction, facts, context)
        case .drop:
            // A stanza that was dropped before is recorded as its rule required then.
            if event.head.kind != .nonza, context.isRepeating(direction) {
                evaluateForRecord(event, direction, facts, context)
            }
            return decision
        case .buffer, .answer, .refuse, .fault: return decision
        }
        return ruling.flatMap { self.decision(of: $0) } ?? decision
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
    func interceptLogin(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard event.item == .element, event.head.kind == .nonza, event.head.namespace.namespace.isSASL else {
            return nil
        }
        if direction == .recv, swallowsFailure, context.isNamed("failure", event, .recv) {
            swallowsFailure = false
            return .drop
        }
        guard direction == .send, context.negotiation.bridged != nil else { return nil }
        let decision = intercept(event, direction, .pass, facts, context)
        switch decision {
        case .drop, .answer, .fault: return decision
        case .pass, .buffer, .replace, .refuse: return nil
        }
    }

    /// Evaluates rules for an item that they cannot alter: they decide only on its record.
    func evaluateForRecord(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        guard event.item == .element, !event.isTruncated else { return }
        judge(event, direction, facts, context)
        ruling?.isWatched = true
    }

    private func judge(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        // For a login that xmpptap performs, or after a wait, they were already evaluated.
        guard ruling == nil, !isRestored else { return }
        guard !earlier.isEmpty else { return ask(event, direction, facts, context) }
        let ledger = context.streamManagement?.ledgers[direction]
        let isRepeated = event.head.kind != .nonza && ledger?.isRepeating == true
        withRules(of: isRepeated ? ledger.map { $0.sent + 1 } : nil, direction) {
            ask(event, direction, facts, context)
        }
    }

    private func ask(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        isJudged = true
        let phase = context.negotiation.rulePhase
        guard set.asks(direction, isOpen: !phase.isHandshake, event.head.kind),
            set.index.select(
                event.head,
                context.directions[direction].decoder,
                direction,
                isOpen: !phase.isHandshake,
                jid: context.info.jid,
                into: &state.selection
            )
        else { return }
        let bytes = context.directions.bytes(direction)
        let repetition = beginRepeated(event, direction, context)
        let verdict = set.judge(
            RuleItem(direction, event.head, bytes),
            // Items that parsers may read differently are read by libxml2.
            tree: {
                event.head.isUnusual
                    ? try? context.tools.parser.parse(context.directions[direction].decoder)
                    : context.tools.elements.read(context.directions[direction].decoder)
            },
            state: &state,
            context: ruleContext(direction, phase, set, facts, context)
        )
        rule(verdict, repetition)
    }

    /// Evaluates rules for the replacement of an item, if it can be read.
    private func judge(
        _ edited: EditedItem,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        guard ruling == nil else { return }
        let phase = context.negotiation.rulePhase
        guard let (event, element) = checker.scan(edited.bytes, content: context.ruleContent(direction)) else {
            return
        }
        isJudged = true
        guard set.asks(direction, isOpen: !phase.isHandshake, event.head.kind) else { return }
        state.begin()
        state.selection.reset()
        let verdict = set.judge(
            RuleItem(direction, event.head, edited.bytes.span),
            tree: { element },
            state: &state,
            context: ruleContext(direction, phase, set, facts, context)
        )
        rule(verdict, .none)
    }

    /// Evaluates rules with an origin condition for a stanza that xmpptap injects. They cannot alter it.
    func judge(
        _ item: InjectedItem,
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        guard set.asksTap else { return }
        state.begin()
        var ruleContext = ruleContext(direction, context.negotiation.rulePhase, set, facts, context)
        ruleContext.origin = .tap
        let stanza = item.stanza
        let verdict = set.judgeInjected(
            RuleItem(direction, event.head, stanza.span),
            tree: { try? context.tools.parser.parse(item.decoder) },
            state: &state,
            context: ruleContext
        )
        rule(verdict, .none)
        ruling?.origin = .tap
    }

    /// Makes the ruling on the current item.
    private func rule(_ verdict: Verdict, _ repetition: ItemRuling.Repetition) {
        guard !verdict.hits.isEmpty || !verdict.remarks.isEmpty || state.hasAnswered else { return }
        set.count(verdict.hits)
        ruling = ItemRuling(verdict, repetition, answers: state.answers)
    }

    /// Begins with an item. For a retransmission, conditions that depend on more than the item have the same result as
    /// before.
    private func beginRepeated(_ event: StreamEvent, _ direction: Direction, _ context: borrowing SessionContext)
        -> ItemRuling.Repetition
    {
        state.begin()
        guard event.head.kind != .nonza,
            let repeated = context.streamManagement?.retransmission(event, context.directions[direction])
        else { return .none }
        guard repeated.outcome != nil else { return .possible }
        state.begin(answering: repeated.rule)
        return .known
    }

    // MARK: The context of rules

    /// - Parameter set: The rules to evaluate.
    func ruleContext(
        _ direction: Direction,
        _ phase: RulePhase,
        _ set: RuleSet,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) -> RuleContext {
        var ruleContext = RuleContext()
        ruleContext.session = context.number
        ruleContext.jid = context.info.jid
        ruleContext.domain = context.info.domain
        ruleContext.content = context.ruleContent(direction)
        ruleContext.phase = phase
        ruleContext.transport = context.info.hasClientTLS ? .tls : .tcp
        ruleContext.clientAddress = clientAddress
        ruleContext.now = context.now.monotonic
        ruleContext.localTime = localTime(at: context.now.time)
        ruleContext.mostBytes = context.options.limits.itemBytes
        ruleContext.receiverBytes = (context.directions.send.receiverBytes, context.directions.recv.receiverBytes)
        if set.asksRoster { ruleContext.roster = facts.roster }
        if set.asksRoundTrip { ruleContext.roundTrip = facts.roundTrip }
        return ruleContext
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

internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// The facts from other components that the conditions of rules need.
struct RuleFacts {
    /// The contacts, if a rule needs them.
    var roster: Roster?
    /// The round-trip time in nanoseconds of the request that the current item answers, if a rule needs it; nil if the
    /// item is not an answer.
    var roundTrip: Int64?
}

// Decides on each item by the rules.
extension SessionRules {
    /// Decides on an item that would be forwarded. This is the last interceptor.
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
            // A stanza that was dropped before the resumption is recorded again as its rule required.
            if event.head.kind != .nonza, context.isRepeating(direction) {
                evaluateForRecord(event, direction, facts, context)
            }
            return decision
        case .buffer, .answer, .refuse, .fault: return decision
        }
        return ruling.flatMap { self.decision(of: $0) } ?? decision
    }

    /// Returns the decision of a ruling on an item; nil if the ruling does not change the earlier decision.
    private func decision(of ruling: ItemRuling) -> ItemDecision? {
        switch ruling.verdict.decision {
        case .pass:
            ruling.verdict.edited.map {
                .replace(EditedItem(bytes: $0, summary: "changes by \(ruling.rule.map { "\($0)" } ?? "a rule")"))
            }
        case .drop, .fault(.loseAck): .drop
        case .fault(.saslFailure): .answer
        case .fault(let fault): .fault(fault)
        }
    }

    /// Evaluates rules for a login element before xmpptap answers it; returns nil if the rules let the element pass.
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

    /// Evaluates rules for an item that they cannot alter any more. They affect only the record of the item.
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
        // The rules were evaluated already, for a login that xmpptap performs, or for an item that has waited.
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
        guard set.mayMatch(direction, isOpen: !phase.isHandshake, event.head.kind),
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
            // An item that parsers may read differently is read by libxml2.
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

    /// Evaluates rules for the replacement of an item, if the replacement can be read.
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
        guard set.mayMatch(direction, isOpen: !phase.isHandshake, event.head.kind) else { return }
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

    /// Evaluates the rules with an origin condition for a stanza that xmpptap injects. The rules cannot alter the
    /// stanza.
    func judge(
        _ item: InjectedItem,
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) {
        guard set.appliesToTap else { return }
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

    /// Creates the ruling on the current item.
    private func rule(_ verdict: Verdict, _ repetition: ItemRuling.Repetition) {
        guard !verdict.hits.isEmpty || !verdict.remarks.isEmpty || state.hasAnswered else { return }
        set.count(verdict.hits)
        ruling = ItemRuling(verdict, repetition, answers: state.answers)
    }

    /// Begins the evaluation for an item. For a retransmission, conditions that depend on more than the item get the
    /// same result as before.
    private func beginRepeated(_ event: StreamEvent, _ direction: Direction, _ context: borrowing SessionContext)
        -> ItemRuling.Repetition
    {
        state.begin()
        guard event.head.kind != .nonza,
            let repeated = context.streamManagement?.retransmission(event, context.directions[direction])
        else { return .none }
        guard repeated.outcome != nil else { return .possible }
        if !set.wereRulesSwitched { state.begin(answering: repeated.rule) }
        return .known
    }

    // MARK: The context of rules

    /// Creates the context in which rules are evaluated.
    ///
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
        ruleContext.maximumBytes = context.options.limits.itemBytes
        ruleContext.receiverBytes = (context.directions.send.receiverBytes, context.directions.recv.receiverBytes)
        if set.needsRoster { ruleContext.roster = facts.roster }
        if set.needsRoundTrip { ruleContext.roundTrip = facts.roundTrip }
        return ruleContext
    }
}

extension Negotiation {
    /// The phase of the session in the terms of rules.
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

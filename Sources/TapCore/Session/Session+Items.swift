internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// The effects of each item on the session.
extension Session {
    /// Handles one event of a decoder: decides on it, forwards it, updates the state, and records it.
    ///
    /// - Parameter isRepeated: The event was handled before, and its item has waited.
    mutating func handle(_ event: StreamEvent, _ direction: Direction, isRepeated: Bool = false) {
        switch event.kind {
        case .item(let kind):
            // In cut-through, stanzas are never altered.
            if kind == .element, event.head.kind != .nonza, context.directions[direction].isCutThrough {
                if let rules = context.rules { rules.watch(event, direction, facts(event, direction, rules), context) }
                context.outlet.passedOnArrival(direction)
                understand(event, kind, direction)
                if let rules = context.rules { endRuling(.pass, event, direction, rules) }
                return
            }
            if context.login != nil, !isRepeated { context.observeLoginItem(event, kind, direction) }
            var reading = ItemReading.none
            let facts = context.rules.map { self.facts(event, direction, $0) } ?? RuleFacts()
            let decision = decide(event, direction, facts, &reading)
            if let rules = context.rules, let ruling = rules.ruling, context.info.opened == nil {
                context.observeAction(ruling, event, direction)
            }
            if context.rules?.waits(event, direction, decision, reading, facts, &context) == true { return }
            carryOut(decision, reading, event, kind, direction)
        case .fragment(let isFirst):
            // In an open session an item beyond the limit is relayed as without rules and injections.
            if context.passesOversize(direction) { context.directions[direction].drain() }
            if isFirst, let rules = context.rules { context.warnOfUnjudged(event, direction, rules) }
            // In store mode, an item beyond the limit ends the session at its beginning.
            guard context.directions[direction].isStoring else {
                if isFirst { context.counters.count(.limitHit(context.itemLimit(direction))) }
                apply(.pass, to: event, direction)
                return context.digest(direction, isFirst: isFirst)
            }
            if isFirst { apply(.refuse(context.oversize(event, direction)), to: event, direction) }
            context.action = nil
        case .fault(let fault): context.handleFault(fault, event, direction)
        case .torn: context.recordTorn(event, direction)
        }
    }

    /// Carries out a decision on an item, and updates the state.
    mutating func carryOut(
        _ decision: ItemDecision,
        _ reading: ItemReading,
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ direction: Direction
    ) {
        if let rules = context.rules, let ruling = rules.ruling, ruling.shapes {
            rules.shape(direction, for: ruling, &context)
        }
        apply(decision, to: event, direction)
        if let action = context.action, event.item == .element, event.head.kind != .nonza, !reading.isInjected {
            context.counters.count(.acted(action, event.head.kind, direction))
        }
        switch (decision, reading) {
        // It is decided on again.
        case (.buffer(until: .counts), _): context.rules?.keepRuling()
        case (.refuse, _), (.fault, _): break
        case (_, .none): understand(event, kind, direction)
        case (_, .asymmetricTLS(let offer)):
            perform(context.negotiation.asymmetric?.advance(event, kind, direction, offer, &context) ?? [])
        case (_, .features(let offer)): perform(context.handleFeatures(event, offer))
        case (_, .login(let element, let acts, let wasLoggingIn, let translation)):
            context.rules?.noteHits(event, direction, &context)
            handleBridged(event, direction, element, acts, wasLoggingIn: wasLoggingIn)
            if let translation { handle(translation, direction) }
        case (_, .injected(let request)): injector.handleAnswer(event, direction, request, &context)
        case (_, .streamManagement(let translation)):
            understand(event, kind, direction)
            handle(translation, direction)
        }
        if let rules = context.rules {
            endRuling(decision, event, direction, rules)
            if !rules.earlier.isEmpty { settleEarlierRules(rules) }
        }
        context.action = nil
        context.edited = nil
        context.requestAcknowledgement(direction)
    }

    // MARK: Deciding

    /// Decides on an item.
    private mutating func decide(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ reading: inout ItemReading
    ) -> ItemDecision {
        // Partly forwarded items cannot be held, and only whole items are acted on; nothing is inserted if the session
        // is refused.
        let mayAct = context.directions[direction].isStoring && !context.negotiation.isRefusing
        if mayAct, let decision = context.rules?.interceptLogin(event, direction, facts, context) { return decision }
        let decision = intercept(event, direction, mayAct: mayAct, &reading) ?? .pass
        if case .refuse = decision { return decision }
        guard let rules = context.rules, !context.negotiation.isRefusing else { return mayAct ? decision : .pass }
        // Replies to xmpptap's own requests are not judged.
        if reading.isInjected { return decision }
        // The last interceptor: rules are evaluated for items that xmpptap itself lets pass.
        if mayAct { return rules.intercept(event, direction, decision, facts, context) }
        rules.watch(event, direction, facts, context)
        return .pass
    }

    /// The interceptors in order; the first decision counts.
    private mutating func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        mayAct: Bool,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        // Not one expression: the compiler accepts no longer chain of them.
        if let decision = context.interceptOversize(event, direction) { return decision }
        if let decision = context.interceptOtherDomain(event, direction) { return decision }
        if let decision = TLSPolicy.interceptClear(event, direction, context) { return decision }
        if mayAct, let decision = interceptAsymmetricTLS(event, direction, &reading) { return decision }
        if let decision = context.interceptFeatures(event, direction, &reading) { return decision }
        let translated = context.interceptStreamManagement(event, direction, &reading, authentication.decoder)
        if case .buffer = translated { return translated }
        if mayAct, let bridged = context.negotiation.bridged {
            let client = authentication.decoder
            let decision = bridged.intercept(event, direction, translated, client, &reading, &context)
            if let decision { return decision }
        }
        if let translated { return translated }
        if mayAct, let decision = injector.intercept(event, direction, &reading, context) { return decision }
        if let decision = TLSPolicy.interceptConsent(event, direction, context) { return decision }
        if let decision = BridgedLogin.interceptWhitespace(event, direction, context) { return decision }
        return nil
    }

    /// Carries out a decision: the only place that decides how an item leaves.
    private mutating func apply(_ decision: ItemDecision, to event: StreamEvent, _ direction: Direction) {
        context.action = context.directions[direction].isStoring ? decision.action : nil
        let rule = context.rules?.ruling?.answers ?? 0
        switch decision {
        // A refused session has no server to forward anything to.
        case .pass where context.negotiation.isRefusing: break
        case .pass:
            // If the stanza is retransmitted, a decision from a rule's memory must be repeated.
            let isStateful = context.rules?.ruling?.isStateful == true
            context.outlet.pass(event, of: &context.directions[direction], by: isStateful ? rule : nil)
        case .replace(let edited):
            context.edited = edited
            context.outlet.replace(event, of: &context.directions[direction], with: edited.bytes, by: rule)
        case .buffer(.serverTLS):
            context.directions[direction].buffer(event)
            context.hold(direction)
            termination.awaitConsent(context.options)
        case .buffer(.features): context.directions[direction].buffer(event)
        case .buffer(.counts): context.directions[direction].keep()
        case .buffer(.restart), .drop, .answer:
            context.outlet.drop(event, of: &context.directions[direction], by: rule)
        case .refuse(let refusal):
            if let part = refusal.itemPart { context.recordItem(event, direction, .element, level: .info, part: part) }
            context.refuse(refusal)
        case .fault(let fault):
            context.recordItem(event, direction, event.head.kind == .nonza ? .element : .stanza, level: .info)
            context.rules?.noteHits(event, direction, &context)
            SessionRules.carryOut(fault, event, direction, &context)
        }
        followDivergence()
    }

    /// Records an ordinary item, and updates the state from its contents.
    mutating func understand(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        if event.head.isUnusual { differential.compareReaders(event, direction, &context) }
        switch kind {
        case .declaration:
            if event.epoch > 1, !context.isRestartDue(direction) {
                context.login?.observe(.secondDeclaration(direction))
            }
            context.recordItem(event, direction, .declaration, level: .verbose)
        case .whitespace: context.recordItem(event, direction, .whitespace, level: .verbose)
        case .header: streams.handleHeader(event, direction, &context)
        case .element: handleElement(event, direction)
        case .end: context.handleStreamEnd(event, direction)
        }
    }
}

package import TapRecord
import TapRules
import XMPPCore

// The order in which rules, their items and their stanzas come.
extension Session {
    /// Items that a rule holds for the user, the oldest first: at most one in each direction, since later items wait.
    package var heldItems: [HeldItem] { context.rules?.heldItems ?? [] }

    /// When the next delayed item is released, in nanoseconds of the run: send ``SessionInput/tick`` then, and no
    /// later, to keep the delay. Nil if none is delayed.
    package var releaseDeadline: Int64? { context.rules?.deadline }

    /// Why stanzas of a direction cannot be held; nil if they can.
    package func obstacle(toPausing direction: Direction?) -> InjectionFault? {
        let obstacles = (direction.map { [$0] } ?? Direction.allCases).map { context.obstacle($0) }
        return obstacles.contains(nil) ? nil : obstacles.first ?? nil
    }

    /// Why a held item cannot be released in this way, as a clause; nil if it can, or if the number is unknown.
    ///
    /// A replacement of a stanza is checked like an injected stanza, and must be of the same kind.
    package func problem(with release: HeldRelease, of number: UInt64) -> String? {
        context.rules?.problem(with: release, of: number, context)
    }

    /// Replaces the rules from the next item on.
    mutating func replaceRules(by set: RuleSet?) {
        guard !context.options.isRecorded, !context.options.isObserved else { return }
        if let rules = context.rules {
            rules.replace(by: set ?? RuleSet(), resumption.isResumable ? context.streamManagement?.ledgers : nil)
        } else if let set {
            context.rules = SessionRules(set, context, localTime: context.options.rules?.localTime)
        }
        for direction in Direction.allCases {
            context.rules?.shape(direction, nil, &context)
            context.settleMode(direction)
        }
    }

    /// Holds the next stanzas; nil ends that.
    mutating func pause(_ pause: StanzaPause?) {
        guard !context.options.isRecorded, !context.options.isObserved else { return }
        if context.rules == nil, pause != nil { context.rules = SessionRules(RuleSet(), context) }
        context.rules?.pause = pause.map { PendingPause($0, session: number) }
        for direction in Direction.allCases { context.settleMode(direction) }
    }

    /// The facts that rules ask for about the current item.
    func facts(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) -> RuleFacts {
        RuleFacts(
            roster: rules.asksRoster ? roster.current : nil,
            roundTrip: rules.asksRoundTrip ? roundTrip(event, direction) : nil
        )
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

    /// Finishes the rules' actions on the current item, after this decision.
    mutating func endRuling(
        _ decision: ItemDecision,
        _ event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) {
        let facts = RuleFacts(roster: rules.asksRoster ? roster.current : nil)
        for effect in rules.effects(decision, event, direction, facts, &context) {
            switch effect {
            case .inject(let injection): inject(injection)
            case .report(let remark, let place, let direction):
                SessionRules.report(remark, place, direction, &context)
            }
        }
        rules.endRuling(event, direction, &context)
    }

    /// Forgets earlier rules that are no longer needed.
    mutating func settleEarlierRules(_ rules: SessionRules) {
        if let streamManagement = context.streamManagement { rules.forgetEarlier(streamManagement.ledgers) }
        for direction in Direction.allCases where !context.directions[direction].isHeld {
            context.settleMode(direction)
        }
    }

    // MARK: Injection

    /// Whether stanzas that are not sent on this connection are kept for the session that resumes this one. An ended
    /// session has left them already.
    private var mayResume: Bool { resumption.isResumable && !context.negotiation.isFinished }

    /// Injects a stanza when its direction is at an item boundary.
    mutating func inject(_ injection: Injection) {
        injector.inject(injection, isResumable: mayResume, &context)
    }

    /// Sends the first waiting stanza. Called when all received input has been handled.
    mutating func injectNext() {
        for direction in Direction.allCases {
            if let item = injector.advance(direction, isResumable: mayResume, &context) { return send(item, direction) }
        }
        injector.settle(context)
    }

    private mutating func send(_ item: InjectedItem, _ direction: Direction) {
        context.outlet.inject(item, direction)
        followDivergence()
        if let rules = context.rules, let event = item.event {
            let facts = RuleFacts(roster: rules.asksRoster ? roster.current : nil)
            rules.judge(item, event, direction, facts, context)
        }
        let record = injector.record(item, direction, &requests, &context)
        if let event = item.event { context.rules?.endRuling(event, of: item, record, &context) }
        injector.finish(item, direction, &context)
    }

    // MARK: Delayed items

    /// Continues with due items that rules delay; returns false if there were none. Called before the next item.
    mutating func attend(to rules: SessionRules) -> Bool {
        guard rules.isBusy, !context.negotiation.isFinished else { return false }
        for direction in Direction.allCases {
            if rules.injecting & 1 << direction.rawValue != 0 {
                // In cut-through, all received input must have been decoded.
                if context.directions[direction].isStoring || !context.directions[direction].hasInput,
                    let item = injector.takeFirst(direction, context)
                {
                    send(item, direction)
                    return true
                }
                // The others are sent like any injected stanza.
                rules.injecting &= ~(1 << direction.rawValue)
            }
            if let deadline = rules[direction].item?.deadline, deadline <= context.now.monotonic {
                goOn(direction, rules)
                return true
            }
        }
        rules.settle()
        return false
    }

    /// Ends the delay of an item: carries out its decision, then continues with later items.
    private mutating func goOn(_ direction: Direction, _ rules: SessionRules) {
        guard let item = rules[direction].takeItem() else { return }
        context.directions[direction].endDelay()
        context.counters.addDelay(context.now.monotonic &- item.since)
        // TLS may have begun since.
        guard item.event.position + item.event.length == context.directions[direction].decoder.position else { return }
        rules.ruling = item.ruling
        carryOut(item.decision, item.reading, item.event, .element, direction)
        if let why = item.opacity { context.turnOpaque(direction, why) } else { context.settleMode(direction) }
    }
}

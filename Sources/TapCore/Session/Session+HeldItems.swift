package import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Items that rules delay, for a time or until the user decides. Later items of the direction wait for them.
extension Session {
    /// Items that a rule holds for the user, the oldest first: at most one in each direction, since later items wait.
    package var heldItems: [HeldItem] {
        guard let rules else { return [] }
        return Direction.allCases.compactMap { rules[$0].item?.held }.sorted { $0.number < $1.number }
    }

    /// When the next delayed item is released, in nanoseconds of the run: send ``SessionInput/tick`` then, and no
    /// later, to keep the delay. Nil if none is delayed.
    package var releaseDeadline: Int64? { rules?.deadline }

    /// Delays or holds the last item, if a rule requires it; returns whether it waits.
    mutating func waits(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ reading: ItemReading,
        _ rules: SessionRules
    ) -> Bool {
        guard rules.ruling != nil || rules.pause != nil, context.directions[direction].isStoring,
            rules.ruling?.verdict.actions.isEmpty == false || rules.pause != nil
        else { return false }
        var (isHeld, isStalled, passes) = (false, false, true)
        switch decision {
        case .pass, .replace: break
        case .fault: passes = false
        case .buffer, .drop, .answer, .refuse: return false
        }
        let ruling = rules.ruling
        let end = event.position + event.length
        var deadline: Int64? = 0
        if passes, isPaused(event, direction, rules) {
            isHeld = true
            deadline = context.now.monotonic &+ SessionRules.holdTime
        }
        for (_, action) in ruling?.verdict.actions ?? [] {
            switch action {
            case .delay(let time):
                let due = rules[direction].arrival(of: end, now: context.now.monotonic) &+ time
                deadline = deadline.map { max($0, due) }
            case .pause where passes && !isHeld:
                isHeld = true
                let due = context.now.monotonic &+ SessionRules.holdTime
                deadline = deadline.map { max($0, due) }
            case .fault(.stall(let time)):
                let now = context.now.monotonic
                isStalled = true
                deadline = time.flatMap { time in deadline.map { max($0, now &+ time) } }
            default: break
            }
        }
        if let deadline, deadline <= context.now.monotonic { return false }
        rules.ruling = nil
        rules.isJudged = false
        var item = WaitingItem(
            event: event,
            decision: decision,
            reading: reading,
            ruling: ruling,
            since: rules[direction].arrival(of: end, now: context.now.monotonic),
            deadline: deadline,
            isStalled: isStalled
        )
        if isHeld, let deadline {
            let rule = ruling?.verdict.actions.first { if case .pause = $0.action { true } else { false } }
            item.held = hold(event, direction, decision, rule?.place, deadline)
        }
        rules[direction].noteArrival(upTo: context.directions[direction].arrived, at: context.now.monotonic)
        rules[direction].item = item
        context.directions[direction].delay()
        return true
    }

    /// Holds the next stanzas; nil ends that.
    mutating func pause(_ pause: StanzaPause?) {
        guard recording == nil, !options.isObserved else { return }
        if rules == nil, pause != nil {
            rules = SessionRules(RuleSet(), session: number, remote: remote, localTime: nil)
        }
        rules?.pause = pause.map { PendingPause($0, session: number) }
        for direction in Direction.allCases { settleMode(direction) }
    }

    /// Why stanzas of a direction cannot be held; nil if they can.
    package func obstacle(toPausing direction: Direction?) -> InjectionFault? {
        let obstacles = (direction.map { [$0] } ?? Direction.allCases).map { obstacle($0) }
        return obstacles.contains(nil) ? nil : obstacles.first ?? nil
    }

    /// Whether the pause covers a stanza; counts it if so.
    private func isPaused(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) -> Bool {
        guard let pause = rules.pause, pause.covers(direction), info.opened != nil, event.item == .element,
            event.head.kind != .nonza, !event.isTruncated
        else { return false }
        if let set = pause.pause.rules {
            pause.state.begin()
            pause.state.selection.reset()
            let verdict = set.judge(
                RuleItem(direction, event.head, context.directions.bytes(direction)),
                tree: { try? tools.parser.parse(context.directions[direction].decoder) },
                state: &pause.state,
                context: ruleContext(direction, .open, rules, set)
            )
            guard !verdict.actions.isEmpty else { return false }
        }
        pause.count -= 1
        if pause.count == 0 { rules.pause = nil }
        return true
    }

    private mutating func hold(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ rule: RulePlace?,
        _ deadline: Int64
    ) -> HeldItem? {
        guard let number = rules?.nextHeld() else { return nil }
        var bytes: [UInt8] = []
        if case .replace(let edited) = decision {
            bytes = edited.bytes
        } else {
            bytes.append(context.directions.bytes(direction))
        }
        var details: Attributes = ["number": .integer(Int64(clamping: number))]
        if let rule { details["rule"] = .string("\(rule)") }
        note(
            .note,
            .info,
            code: "held",
            "\(rule.map { "\($0)" } ?? "the user") holds \(bytes.count) bytes as number \(number); they pass in "
                + "\(Self.words(deadline - context.now.monotonic)) unless they are released before",
            direction: direction,
            part: .rules,
            details: details
        )
        return HeldItem(
            number: number,
            direction: direction,
            bytes: bytes,
            rule: rule,
            since: now,
            deadline: deadline
        )
    }

    /// Why a held item cannot be released in this way, as a clause; nil if it can, or if the number is unknown.
    ///
    /// A replacement of a stanza is checked like an injected stanza, and must be of the same kind.
    package func problem(with release: HeldRelease, of number: UInt64) -> String? {
        guard case .replace(let bytes) = release, let rules,
            let direction = Direction.allCases.first(where: { rules[$0].item?.held?.number == number }),
            let item = rules[direction].item, let held = item.held
        else { return nil }
        guard item.isStanza else { return problem(with: bytes, insteadOf: item.event, direction, rules) }
        do throws(InjectionFault) {
            let stanza = try InjectedItem(
                Injection(bytes, to: direction.destination),
                in: context.directions[direction].decoder,
                options.limits,
                at: context.now.monotonic
            )
            guard stanza.event?.head.kind == item.event.head.kind else { throw .otherKind(item.event.head.kind) }
            // A replacement that is not larger than the stanza is always allowed.
            let limit = context.directions[direction].receiverBytes
            guard stanza.bytes.count <= max(limit, held.bytes.count) else {
                throw .overReceiverLimit(limit, direction.destination)
            }
            try checkAddresses(of: stanza, direction)
            return nil
        } catch {
            return error.description
        }
    }

    /// Why an element other than a stanza cannot be replaced by this one. The session's state follows from the received
    /// element.
    private func problem(
        with bytes: [UInt8],
        insteadOf event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) -> String? {
        guard bytes.count <= options.limits.itemBytes else {
            return InjectionFault.tooLarge(limit: options.limits.itemBytes).description
        }
        do throws(ItemChecker.Problem) {
            let edited = try rules.checker.check(bytes, content: context.directions[direction].decoder.contentNamespace)
            guard let was = try? tools.parser.parse(context.directions[direction].decoder) else {
                return "the held element cannot be read"
            }
            // Counts of stream management are translated, not replaced.
            guard !StreamManagementTranslator.concerns(event.head), edited.name == was.name,
                edited.isInNamespace(of: was)
            else { return "it is not <\(was.name)> in its namespace, as the held element is" }
            return nil
        } catch {
            return error.message
        }
    }

    /// Releases a held item as the user decided.
    mutating func releaseHeld(_ number: UInt64, _ release: HeldRelease) {
        let found = Direction.allCases.first { rules?[$0].item?.held?.number == number }
        guard let rules, let direction = found else {
            return note(.note, .warn, code: "not-held", "no stanza with the number \(number) is held", part: .rules)
        }
        switch release {
        case .pass: break
        case .drop: rules[direction].item?.decision = .drop
        case .replace(let bytes):
            if let problem = problem(with: release, of: number) {
                return note(
                    .note,
                    .warn,
                    code: "held-edit-refused",
                    "edit of held stanza \(number) refused: \(problem); it stays held",
                    direction: direction,
                    part: .rules
                )
            }
            if (try? tools.parser.parse(context.directions[direction].decoder))?.isEncrypted == true {
                note(
                    .note,
                    .warn,
                    code: Verdict.Remark.opaque.code,
                    "held stanza \(number): \(Verdict.Remark.opaque)",
                    direction: direction,
                    part: .rules
                )
            }
            rules[direction].item?.decision = .replace(EditedItem(bytes: bytes, words: "changes by hand"))
        }
        rules[direction].item?.deadline = .min
    }

    /// Ends the delay of an item: carries out its decision, then continues with later items.
    mutating func goOn(_ direction: Direction, _ rules: SessionRules) {
        guard let item = rules[direction].takeItem() else { return }
        context.directions[direction].endDelay()
        counters.addDelay(context.now.monotonic &- item.since)
        // TLS may have begun since.
        guard item.event.position + item.event.length == context.directions[direction].decoder.position else { return }
        rules.ruling = item.ruling
        carryOut(item.decision, item.reading, item.event, .element, direction)
        if let why = item.opacity { turnOpaque(direction, why) } else { settleMode(direction) }
    }

    /// Records items that are still delayed and will not be sent.
    mutating func noteUnsent(_ rules: SessionRules) {
        for direction in Direction.allCases {
            guard let item = rules[direction].takeItem() else { continue }
            let rule = item.ruling?.rule.map { "\($0)" } ?? "a rule"
            note(
                .note,
                .info,
                code: "not-sent",
                "the session ended while \(rule) delayed \(item.event.length) bytes; they were not sent",
                direction: direction,
                part: .rules,
                details: ["rule": .string(rule)]
            )
        }
    }
}

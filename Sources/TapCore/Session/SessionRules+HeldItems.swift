internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Handles items that rules delay, for a time or until the user decides. Later items of the direction wait too.
extension SessionRules {
    /// The items that are held for the user, oldest first: at most one in each direction, because later items wait.
    var heldItems: [HeldItem] {
        Direction.allCases.compactMap { self[$0].item?.held }.sorted { $0.number < $1.number }
    }

    /// Delays or holds the last event's item, if a rule or the pause requires it; returns whether the item waits.
    func delayOrHold(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ reading: ItemReading,
        _ facts: RuleFacts,
        _ context: inout SessionContext
    ) -> Bool {
        guard ruling != nil || pause != nil, context.directions[direction].isStoring,
            ruling?.verdict.actions.isEmpty == false || pause != nil
        else { return false }
        var (isHeld, isStalled, passes) = (false, false, true)
        switch decision {
        case .pass, .replace: break
        case .fault: passes = false
        case .buffer, .drop, .answer, .refuse: return false
        }
        let ruling = ruling
        let end = context.directions[direction].end(of: event)
        var deadline: Int64? = 0
        var holder: StanzaPause.Description?
        if passes, let description = pause?.pause.description, isPaused(event, direction, facts, context) {
            isHeld = true
            holder = description
            deadline = context.now.monotonic &+ SessionRules.holdTime
        }
        for (_, action) in ruling?.verdict.actions ?? [] {
            switch action {
            case .delay(let time):
                let due = self[direction].arrival(of: end, now: context.now.monotonic) &+ time
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
        self.ruling = nil
        endJudging()
        var item = WaitingItem(
            event: event,
            decision: decision,
            reading: reading,
            ruling: ruling,
            since: self[direction].arrival(of: end, now: context.now.monotonic),
            deadline: deadline,
            isStalled: isStalled
        )
        if isHeld, let deadline {
            let rule = ruling?.verdict.actions.first { if case .pause = $0.action { true } else { false } }
            item.held = hold(event, direction, decision, rule?.place, holder, deadline, &context)
        }
        self[direction].storeArrivalTime(upTo: context.directions[direction].arrived, at: context.now.monotonic)
        self[direction].item = item
        context.directions[direction].delay()
        return true
    }

    /// Returns whether the pause applies to a stanza, and counts the stanza in that case.
    private func isPaused(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) -> Bool {
        guard let pause, pause.covers(direction), context.info.opened != nil, event.item == .element,
            event.head.kind != .nonza, !event.isTruncated
        else { return false }
        if let set = pause.pause.rules {
            pause.state.begin()
            pause.state.selection.reset()
            let verdict = set.judge(
                RuleItem(direction, event.head, context.directions.bytes(direction)),
                tree: { try? context.tools.parser.parse(context.directions[direction].decoder) },
                state: &pause.state,
                context: ruleContext(direction, .open, set, facts, context)
            )
            guard !verdict.actions.isEmpty else { return false }
        }
        if let filter = pause.pause.filter, !context.matches(filter, event, direction) { return false }
        pause.count -= 1
        if pause.count == 0 { self.pause = nil }
        return true
    }

    private func hold(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ rule: RulePlace?,
        _ pause: StanzaPause.Description?,
        _ deadline: Int64,
        _ context: inout SessionContext
    ) -> HeldItem {
        let number = nextHeld()
        var bytes: [UInt8] = []
        if case .replace(let edited) = decision {
            bytes = edited.bytes
        } else {
            bytes.append(context.directions.bytes(direction))
        }
        var details: Attributes = ["number": .integer(Int64(clamping: number))]
        if let rule { details["rule"] = .string("\(rule)") }
        context.report(
            .note,
            .info,
            code: "held",
            "\(rule.map { "\($0)" } ?? "the user") holds \(bytes.count) bytes as number \(number); they pass in "
                + "\(SessionContext.format(deadline - context.now.monotonic)) unless they are released before",
            direction: direction,
            part: .rules,
            details: details
        )
        return HeldItem(
            number: number,
            direction: direction,
            bytes: bytes,
            rule: rule,
            pause: rule == nil ? pause : nil,
            since: context.now,
            deadline: deadline
        )
    }

    /// Returns why a held item cannot be released in this way, as a clause; nil if it can, or if the number is unknown.
    ///
    /// A replacement for a stanza is checked as an injected stanza is, and must be of the same kind.
    func problem(with release: HeldRelease, of number: UInt64, _ context: borrowing SessionContext) -> String? {
        guard case .replace(let bytes) = release,
            let direction = Direction.allCases.first(where: { self[$0].item?.held?.number == number }),
            let item = self[direction].item, let held = item.held
        else { return nil }
        guard item.isStanza else { return problem(with: bytes, insteadOf: item.event, direction, context) }
        do throws(InjectionFault) {
            let stanza = try InjectedItem(
                Injection(bytes, to: direction.destination),
                in: context.directions[direction].decoder,
                context.options.limits,
                at: context.now.monotonic
            )
            guard stanza.event?.head.kind == item.event.head.kind else { throw .otherKind(item.event.head.kind) }
            // A replacement that is not larger than the stanza is always allowed.
            let limit = context.directions[direction].receiverBytes
            guard stanza.bytes.count <= max(limit, held.bytes.count) else {
                throw .overReceiverLimit(limit, direction.destination)
            }
            try context.checkAddresses(of: stanza, direction)
            return nil
        } catch {
            return error.description
        }
    }

    /// Returns why this element cannot replace a held element other than a stanza; nil if it can. The name must stay
    /// the same, because the session's state follows from the received element.
    private func problem(
        with bytes: [UInt8],
        insteadOf event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> String? {
        guard bytes.count <= context.options.limits.itemBytes else {
            return InjectionFault.tooLarge(limit: context.options.limits.itemBytes).description
        }
        do throws(ItemChecker.Problem) {
            let edited = try checker.check(bytes, content: context.directions[direction].decoder.contentNamespace)
            guard let was = try? context.tools.parser.parse(context.directions[direction].decoder) else {
                return "the held element cannot be read"
            }
            // The counts of stream management are translated, so an element with a count cannot be replaced.
            guard !StreamManagementTranslator.concerns(event.head), edited.name == was.name,
                edited.isInNamespace(of: was)
            else { return "it is not <\(was.name)> in its namespace, as the held element is" }
            return nil
        } catch {
            return error.message
        }
    }

    /// Releases a held item as the user decided.
    func releaseHeld(_ number: UInt64, _ release: HeldRelease, _ context: inout SessionContext) {
        let found = Direction.allCases.first { self[$0].item?.held?.number == number }
        guard let direction = found else { return Self.reportNotHeld(number, &context) }
        switch release {
        case .pass: break
        case .drop: self[direction].item?.decision = .drop
        case .replace(let bytes):
            if let problem = problem(with: release, of: number, context) {
                return context.report(
                    .note,
                    .warn,
                    code: "held-edit-refused",
                    "edit of held stanza \(number) refused: \(problem); it stays held",
                    direction: direction,
                    part: .rules
                )
            }
            if (try? context.tools.parser.parse(context.directions[direction].decoder))?.isEncrypted == true {
                context.report(
                    .note,
                    .warn,
                    code: Verdict.Remark.opaque.code,
                    "held stanza \(number): \(Verdict.Remark.opaque)",
                    direction: direction,
                    part: .rules
                )
            }
            self[direction].item?.decision = .replace(EditedItem(bytes: bytes, summary: "changes by hand"))
        }
        self[direction].item?.deadline = .min
    }

    /// Reports that no item with this number is held.
    static func reportNotHeld(_ number: UInt64, _ context: inout SessionContext) {
        context.report(.note, .warn, code: "not-held", "no stanza with the number \(number) is held", part: .rules)
    }

    /// Records the items that are still delayed when the session ends, and are not sent.
    func recordUnsent(_ context: inout SessionContext) {
        for direction in Direction.allCases {
            guard let item = self[direction].takeItem() else { continue }
            // The rule that the item's record names may be one that has edited it.
            let rule = item.ruling?.delayedBy.map { "\($0)" } ?? (item.held == nil ? "a rule" : "a pause")
            context.report(
                .note,
                item.isStanza ? .warn : .info,
                code: "not-sent",
                "the session ended while \(rule) delayed \(item.event.length) bytes; they were not sent",
                direction: direction,
                part: .rules,
                details: ["rule": .string(rule)]
            )
        }
    }
}

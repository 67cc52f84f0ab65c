internal import TapRecord
import XMPPCore

// Items that rules let wait: for a time, or for a person. What follows in the direction waits behind them.
extension Session {
    /// Items that a rule holds for a person, the oldest first: one in each direction at most, since what follows it waits.
    public var heldItems: [HeldItem] {
        guard let rules else { return [] }
        return Direction.allCases.compactMap { rules[$0].item?.held }.sorted { $0.number < $1.number }
    }

    /// When an item that waits by a rule goes on, in nanoseconds of the run: ``SessionInput/tick`` is due then, and no later,
    /// if the delay is to be kept. Nil where none waits.
    public var releaseDeadline: Int64? { rules?.deadline }

    /// Delays or holds the last item, if a rule says so; whether it waits.
    mutating func waits(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ reading: ItemReading,
        _ rules: SessionRules
    ) -> Bool {
        guard let ruling = rules.ruling, !ruling.verdict.actions.isEmpty, directions[direction].isStoring else {
            return false
        }
        var (isHeld, isStalled, passes) = (false, false, true)
        switch decision {
        case .pass, .replace: break
        case .fault: passes = false
        case .buffer, .drop, .answer, .refuse: return false
        }
        let end = event.position + event.length
        var deadline: Int64? = 0
        for (_, action) in ruling.verdict.actions {
            switch action {
            case .delay(let time):
                let due = rules[direction].arrival(of: end, now: now.monotonic) &+ time
                deadline = deadline.map { max($0, due) }
            case .pause where passes && !isHeld:
                isHeld = true
                let due = now.monotonic &+ SessionRules.holdTime
                deadline = deadline.map { max($0, due) }
            case .fault(.stall(let time)):
                let now = now.monotonic
                isStalled = true
                deadline = time.flatMap { time in deadline.map { max($0, now &+ time) } }
            default: break
            }
        }
        if let deadline, deadline <= now.monotonic { return false }
        rules.ruling = nil
        rules.isJudged = false
        var item = WaitingItem(
            event: event,
            decision: decision,
            reading: reading,
            ruling: ruling,
            since: rules[direction].arrival(of: end, now: now.monotonic),
            deadline: deadline,
            isStalled: isStalled
        )
        if isHeld, let deadline, let rule = ruling.rule { item.held = hold(event, direction, decision, rule, deadline) }
        rules[direction].noteArrival(upTo: directions[direction].arrived, at: now.monotonic)
        rules[direction].item = item
        directions[direction].delay()
        return true
    }

    private mutating func hold(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ rule: RulePlace,
        _ deadline: Int64
    ) -> HeldItem? {
        guard let number = rules?.nextHeld() else { return nil }
        var bytes: [UInt8] = []
        if case .replace(let edited) = decision {
            bytes = edited.bytes
        } else {
            bytes.append(directions.bytes(direction))
        }
        note(
            .note,
            .info,
            code: "held",
            "\(rule) holds \(bytes.count) bytes as number \(number); they pass in "
                + "\(Self.words(deadline - now.monotonic)) unless they are released before",
            direction: direction,
            part: .rules,
            details: ["rule": .string("\(rule)"), "number": .integer(Int64(clamping: number))]
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

    /// Why a held item cannot be released in this way; nil where it can, and where no item has this number.
    public func problem(with release: HeldRelease, of number: UInt64) -> String? {
        guard case .replace(let bytes) = release, let rules,
            let direction = Direction.allCases.first(where: { rules[$0].item?.held?.number == number })
        else { return nil }
        guard bytes.count <= options.limits.itemBytes else {
            return "larger than \(options.limits.itemBytes) bytes, the limit of an item"
        }
        do throws(ItemChecker.Problem) {
            _ = try rules.checker.check(bytes, content: directions[direction].decoder.contentNamespace)
        } catch {
            return error.message
        }
        // Both ends count stanzas: one may not become something else, nor an acknowledgement be made up.
        let held = rules[direction].item?.event.head
        guard let head = rules.checker.last?.head, (head.kind == .nonza) == (held?.kind == .nonza),
            !StreamManagementTranslator.concerns(head)
        else { return "a stanza can only be replaced by a stanza: stream management counts them" }
        return nil
    }

    /// A person has decided on an item that is held.
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
            rules[direction].item?.decision = .replace(EditedItem(bytes: bytes, words: "changes by hand"))
        }
        rules[direction].item?.deadline = .min
    }

    /// The wait of an item is over: it goes on, and then what follows it.
    mutating func goOn(_ direction: Direction, _ rules: SessionRules) {
        guard let item = rules[direction].takeItem() else { return }
        directions[direction].endDelay()
        counters.addDelay(now.monotonic &- item.since)
        // TLS may have begun since.
        guard item.event.position + item.event.length == directions[direction].decoder.position else { return }
        rules.ruling = item.ruling
        carryOut(item.decision, item.reading, item.event, .element, direction)
        if let why = item.opacity { turnOpaque(direction, why) } else { settleMode(direction) }
    }

    /// Records what still waits and will not go on.
    mutating func noteUnsent(_ rules: SessionRules) {
        for direction in Direction.allCases {
            guard let item = rules[direction].takeItem() else { continue }
            let rule = item.ruling.rule.map { "\($0)" } ?? "a rule"
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

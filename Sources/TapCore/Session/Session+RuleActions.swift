internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// Actions of rules other than pass, drop and edit.
extension Session {
    /// Finishes the rules' actions on the current item, after this decision.
    mutating func endRuling(
        _ decision: ItemDecision,
        _ event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) {
        rules.isJudged = false
        if direction == .send, goesOn(decision), rules.set.asksDirectedPresence {
            rules.state.observePresence(event.head, context.directions.bytes(.send))
        }
        guard let ruling = rules.ruling else { return }
        perform(ruling, decision, event, direction, rules)
        endSlice(direction, rules)
        rules.ruling = nil
    }

    /// Carries out the other actions on an item that has been recorded.
    private mutating func perform(
        _ ruling: ItemRuling,
        _ decision: ItemDecision,
        _ event: StreamEvent,
        _ direction: Direction,
        _ rules: SessionRules
    ) {
        let verdict = ruling.verdict
        let goesOn = goesOn(decision)
        noteHits(event, direction, rules)
        note(ruling, direction, rules, showsText: isVerbatim(event, of: context.directions[direction].decoder))
        let sender = context.text(event.head.from, direction).map { Array($0.utf8) } ?? []
        for (place, action) in verdict.actions {
            switch action {
            case .inject(let target, let bytes, let why) where !ruling.isWatched && ruling.injects:
                guard why == .bounce || mayCreate(bytes, target, place, sender, verdict, rules) else { continue }
                inject(bytes, target, why == .copy && Self.isRequest(event, context.directions.bytes(direction)), rules)
            // A retransmitted stanza was not handled, and neither were its copies.
            case .duplicate(let copies) where !ruling.isWatched && goesOn:
                let bytes = edited?.bytes ?? context.item(direction)
                for _ in 0..<copies { inject(bytes, direction, false, isCopy: true, rules) }
            case .inject, .duplicate, .log, .delay, .pause, .fault, .record, .level, .redact: break
            }
        }
        if case .fault(.saslFailure(let condition)) = verdict.fate, !ruling.isWatched {
            failLogin(condition, event, ruling)
        }
    }

    private func goesOn(_ decision: ItemDecision) -> Bool {
        switch decision {
        case .pass, .replace: true
        case .buffer, .drop, .answer, .refuse, .fault: false
        }
    }

    /// Whether a rule may send a stanza. A stanza that it has sent too often is part of a loop.
    private mutating func mayCreate(
        _ bytes: [UInt8],
        _ direction: Direction,
        _ place: RulePlace,
        _ sender: [UInt8],
        _ verdict: Verdict,
        _ rules: SessionRules
    ) -> Bool {
        guard let (event, element) = rules.checker.scan(bytes, content: context.ruleContent(direction)) else {
            return true
        }
        let mayCreate = rules.set.create(
            RuleItem(direction, event.head, bytes.span),
            tree: { element },
            by: place,
            for: sender,
            verdict.origins,
            context: ruleContext(direction, negotiation.rulePhase, rules, rules.set)
        )
        if !mayCreate, rules.isFirst(.loop, place) { note(.loop, place, direction) }
        return mayCreate
    }

    private static func isRequest(_ event: StreamEvent, _ bytes: Span<UInt8>) -> Bool {
        guard event.head.kind == .iq, event.head.id != nil, let type = event.head.type else { return false }
        return bytes.slice(type.range).equals("get") || bytes.slice(type.range).equals("set")
    }

    /// Injects a stanza of a rule. In store-and-forward it is sent before the next item.
    private mutating func inject(
        _ bytes: [UInt8],
        _ direction: Direction,
        _ swallowsAnswer: Bool,
        isCopy: Bool = false,
        _ rules: SessionRules
    ) {
        inject(
            Injection(
                bytes,
                to: direction.destination,
                number: isCopy ? Injection.copyNumber : Injection.ruleNumber,
                swallowsAnswer: swallowsAnswer,
                timeout: Self.injectionTime
            )
        )
        rules.injecting |= 1 << direction.rawValue
    }

    /// Continues with due items that rules delay; returns false if there were none. Called before the next item.
    mutating func attend(to rules: SessionRules) -> Bool {
        guard rules.isBusy, !negotiation.isFinished else { return false }
        for direction in Direction.allCases {
            if rules.injecting & 1 << direction.rawValue != 0 {
                // In cut-through, all received input must have been decoded.
                if let injections, injections.isWaiting(direction), context.mayInsert(direction),
                    context.directions[direction].isStoring || !context.directions[direction].hasInput
                {
                    send(injections.takeFirst(direction), direction, injections)
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

    /// The time limit for a rule's stanza to reach an item boundary, in nanoseconds.
    private static let injectionTime: Int64 = 60_000_000_000

    /// Answers a login instead of the server.
    private mutating func failLogin(_ condition: String, _ event: StreamEvent, _ ruling: ItemRuling) {
        let namespace = event.head.namespace.namespace
        let failure = XMLWriter.bytes {
            $0.element("failure", namespace) { $0.element(condition, .sasl) }
        }
        if negotiation.bridged == nil, context.isNamed("response", event, .send) {
            rules?.swallowsFailure = true
            context.answer([(.element, XMLWriter.bytes { $0.element("abort", namespace) })], to: .server, part: .sasl)
        }
        context.answer([(.element, failure)], to: .client, part: .sasl)
        info.authentication = .failed(condition: condition)
        negotiation.failAuthentication()
        let step: LoginStep.Name = namespace.isSASL2 ? .sasl2 : .sasl
        let rule = ruling.rule.map { "\($0)" } ?? "a rule"
        finish(step, .failed(condition: condition, "refused by \(rule)"))
        login?.observe(.blamed(LoginDiagnosis(.endedByTap, at: step, "refused by \(rule)", condition: condition)))
    }

    // MARK: Faults

    /// Carries out a fault at an item. Earlier writes are completed.
    mutating func carryOut(_ fault: RuleFaultAction, _ event: StreamEvent, _ direction: Direction) {
        switch fault {
        case .cut(let count):
            context.outlet.pass(first: count, of: event, of: &context.directions[direction])
            breakOff()
        case .reset: breakOff()
        case .halfClose:
            context.outlet.end(direction.destination)
            // As if the peer had sent its FIN. Its later bytes are not relayed.
            context.directions[direction].end = .finished
            context.directions[direction].hasPassedEnd = true
            context.directions[direction].delay()
        case .streamError(let condition, let text): refuse(condition, text ?? "")
        case .stall, .throttle, .slice, .saslFailure, .loseAck: break
        }
    }

    private mutating func breakOff() {
        if info.ending == nil { info.ending = .tap(condition: StreamErrorCondition.undefinedCondition.rawValue) }
        finish(reset: true)
    }

    // MARK: Shapes

    /// Applies traffic shaping to later writes of a direction; nil ends it.
    mutating func shape(_ direction: Direction, _ shape: LinkShape?) {
        guard let rules, rules.shapes[Int(direction.rawValue)] != shape else { return }
        rules.shapes[Int(direction.rawValue)] = shape
        context.outlet.request(.shape(direction.destination, shape))
    }

    /// Applies the shaping of rules to an item that is about to be forwarded.
    mutating func shape(_ direction: Direction, for ruling: ItemRuling, _ rules: SessionRules) {
        var shape = rules.shapes[Int(direction.rawValue)]
        for case (_, .fault(let fault)) in ruling.verdict.actions {
            switch fault {
            case .throttle(let bytes): shape = LinkShape(bytesPerSecond: bytes)
            case .slice(let bytes, let every):
                shape = LinkShape(bytesPerSecond: shape?.bytesPerSecond, slice: bytes, sliceEvery: every)
            default: break
            }
        }
        self.shape(direction, shape)
    }

    /// Ends the shaping of a single item.
    mutating func endSlice(_ direction: Direction, _ rules: SessionRules) {
        guard let shape = rules.shapes[Int(direction.rawValue)], shape.slice != nil else { return }
        self.shape(direction, shape.bytesPerSecond.map { LinkShape(bytesPerSecond: $0) })
    }

    // MARK: Records

    /// Records the rule hits of the current item, once, while the content is that of the item.
    mutating func noteHits(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard options.level >= .verbose, let verdict = rules.ruling?.verdict, rules.ruling?.hasNotedHits == false else {
            return
        }
        rules.ruling?.hasNotedHits = true
        for hit in verdict.hits { note(hit, verdict, context.makeRecord(event, direction, .note, level: .verbose)) }
    }

    /// Records the rulings on an injected stanza, after its own record.
    mutating func endRuling(_ event: StreamEvent, of item: InjectedItem, _ record: Record, _ rules: SessionRules) {
        guard let ruling = rules.ruling, let direction = record.direction else { return }
        if options.level >= .verbose {
            for hit in ruling.verdict.hits {
                var hitRecord = record
                hitRecord.sequence = run.nextSequence()
                hitRecord.kind = .note
                note(hit, ruling.verdict, hitRecord)
            }
        }
        note(ruling, direction, rules, showsText: isVerbatim(event, of: item.decoder))
        rules.ruling = nil
    }

    /// Records a hit; `record` is a new record of the item.
    private mutating func note(_ hit: Verdict.Hit, _ verdict: Verdict, _ record: consuming Record) {
        var record = record
        // The action LEVEL applies only to the item's own record.
        record.level = .verbose
        record.part = .rules
        record.code = Record.Code.ruleHit
        record.rule = "\(hit.place)"
        record.edited = nil
        let actions = verdict.words(of: hit.place)
        record.message = Prose(actions.isEmpty ? "\(hit.place) holds" : "\(hit.place): \(actions)")
        var details: Attributes = ["rule": .string("\(hit.place)")]
        if !actions.isEmpty { details["action"] = .string(actions) }
        // The conditions may contain addresses.
        if !hit.conditions.isEmpty, options.redaction != .metadata { details["conditions"] = .strings(hit.conditions) }
        if hit.isTraced, !verdict.tags.isEmpty { details["tags"] = .strings(verdict.tags) }
        record.details = details
        context.emit(consume record)
    }

    /// Records the remarks about rules, and the texts that they log.
    private mutating func note(_ ruling: ItemRuling, _ direction: Direction, _ rules: SessionRules, showsText: Bool) {
        for (place, remark) in ruling.verdict.remarks where rules.isFirst(remark, place) {
            note(remark, place, direction)
        }
        for case (let place, .log(let level, let text)) in ruling.verdict.actions {
            let isShown = ruling.redacted.isEmpty && showsText
            note(
                .note,
                level,
                code: "rule-log",
                isShown
                    ? Prose(tools.redactor.disclose(text: text))
                    : "\(place): the text is left out: the item may contain a secret",
                direction: direction,
                part: .rules,
                details: ["rule": .string("\(place)")]
            )
        }
    }

    private mutating func note(_ remark: Verdict.Remark, _ place: RulePlace, _ direction: Direction) {
        note(
            .note,
            .warn,
            code: "rule-\(remark.code)",
            "\(place): \(remark.description)",
            direction: direction,
            part: .rules,
            details: ["rule": .string("\(place)")]
        )
    }

    /// Whether the record of a decoder's last item shows it unchanged.
    private func isVerbatim(_ event: StreamEvent, of decoder: borrowing StreamDecoder) -> Bool {
        guard event.head.mayHoldSecret || options.redaction.hidesTexts else { return true }
        if case .verbatim = tools.redactor.disclose(event, of: decoder) { return true }
        return false
    }
}

extension Verdict {
    /// Describes a rule's action.
    fileprivate func words(of place: RulePlace) -> String {
        var words: [String] = []
        if decidedBy == place {
            switch fate {
            case .pass: words.append(edited == nil ? "pass" : "edit")
            case .drop: words.append("drop")
            case .fault(let fault): words.append(fault.description)
            }
        } else if editedBy == place {
            words.append("edit")
        }
        for (other, action) in actions where other == place {
            switch action {
            case .inject(_, _, let why): words.append(why.rawValue)
            case .log: words.append("log")
            default: words.append(action.description)
            }
        }
        return words.joined(separator: ", ")
    }
}

extension Verdict.Remark {
    /// A stable word for it.
    var code: String {
        switch self {
        case .editRefused: "edit-refused"
        case .opaque: "opaque"
        case .blackhole: "blackhole"
        case .tooComplex: "too-complex"
        case .tooManyRules: "too-many"
        case .notHere: "not-here"
        case .loop: "loop"
        }
    }
}

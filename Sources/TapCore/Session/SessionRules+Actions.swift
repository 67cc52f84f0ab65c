internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

/// An action that rules require of other components, after an item.
enum RuleEffect {
    /// Sends a stanza. In store-and-forward mode, the stanza is sent before the next item.
    case inject(Injection)
    /// Reports a stanza that a rule does not send.
    case report(Verdict.Remark, RulePlace, Direction)
}

// Performs the actions of rules other than pass, drop and edit.
extension SessionRules {
    /// Records the ruling on the current item after this decision; returns the stanzas to send. The caller must call
    /// ``endRuling(_:_:_:)`` afterwards.
    func effects(
        _ decision: ItemDecision,
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ context: inout SessionContext
    ) -> [RuleEffect] {
        endJudging()
        let isForwarded = isForwarded(decision)
        if direction == .send, isForwarded, set.needsDirectedPresence {
            state.observePresence(event.head, context.directions.bytes(.send))
        }
        guard let ruling else { return [] }
        recordHits(event, direction, &context)
        let isVerbatim = Self.isVerbatim(event, of: context.directions[direction].decoder, context)
        recordRemarks(ruling, direction, showsText: isVerbatim, &context)
        let verdict = ruling.verdict
        if ruling.isWatched || verdict.actions.isEmpty { return [] }
        let sender = context.text(event.head.from, direction).map { Array($0.utf8) } ?? []
        var effects: [RuleEffect] = []
        for (place, action) in verdict.actions {
            switch action {
            case .inject(let target, let bytes, let why) where ruling.injects:
                guard why == .bounce || mayCreate(bytes, target, place, sender, verdict, facts, context) else {
                    if isFirst(.loop, place) { effects.append(.report(.loop, place, target)) }
                    continue
                }
                let swallowsAnswer = why == .copy && Self.isRequest(event, context.directions.bytes(direction))
                effects.append(inject(bytes, target, swallowsAnswer: swallowsAnswer))
            // Copies are sent only of a forwarded stanza.
            case .duplicate(let copies) where isForwarded:
                let bytes = context.edited?.bytes ?? context.item(direction)
                for _ in 0..<copies { effects.append(inject(bytes, direction, isCopy: true)) }
            case .inject, .duplicate, .log, .delay, .pause, .fault, .record, .level, .redact: break
            }
        }
        return effects
    }

    /// Ends the ruling on the current item.
    func endRuling(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        guard let ruling else { return }
        if case .fault(.saslFailure(let condition)) = ruling.verdict.decision, !ruling.isWatched {
            failLogin(condition, event, ruling, &context)
        }
        endSlice(direction, &context)
        self.ruling = nil
    }

    private func isForwarded(_ decision: ItemDecision) -> Bool {
        switch decision {
        case .pass, .replace: true
        case .buffer, .drop, .answer, .refuse, .fault: false
        }
    }

    /// Returns whether a rule may send a stanza. If the rule has sent it too often, the stanza is part of a loop.
    private func mayCreate(
        _ bytes: [UInt8],
        _ direction: Direction,
        _ place: RulePlace,
        _ sender: [UInt8],
        _ verdict: Verdict,
        _ facts: RuleFacts,
        _ context: borrowing SessionContext
    ) -> Bool {
        guard let (event, element) = checker.scan(bytes, content: context.ruleContent(direction)) else {
            return true
        }
        return set.create(
            RuleItem(direction, event.head, bytes.span),
            tree: { element },
            by: place,
            for: sender,
            verdict.origins,
            context: ruleContext(direction, context.negotiation.rulePhase, set, facts, context)
        )
    }

    private static func isRequest(_ event: StreamEvent, _ bytes: Span<UInt8>) -> Bool {
        guard event.head.kind == .iq, event.head.id != nil, let type = event.head.type else { return false }
        return bytes.slice(type.range).equals("get") || bytes.slice(type.range).equals("set")
    }

    private func inject(
        _ bytes: [UInt8],
        _ direction: Direction,
        swallowsAnswer: Bool = false,
        isCopy: Bool = false
    ) -> RuleEffect {
        injecting |= 1 << direction.rawValue
        return .inject(
            Injection(
                bytes,
                to: direction.destination,
                number: isCopy ? Injection.copyNumber : Injection.ruleNumber,
                swallowsAnswer: swallowsAnswer,
                timeout: Self.injectionTime
            )
        )
    }

    /// The time limit in nanoseconds for sending a rule's stanza at an item boundary.
    private static let injectionTime: Int64 = 60_000_000_000

    /// Refuses the client's login with a failure, in the server's place.
    private func failLogin(
        _ condition: String,
        _ event: StreamEvent,
        _ ruling: ItemRuling,
        _ context: inout SessionContext
    ) {
        let namespace = event.head.namespace.namespace
        let failure = XMLWriter.bytes {
            $0.element("failure", namespace) { $0.element(condition, .sasl) }
        }
        if context.negotiation.bridged == nil, context.isNamed("response", event, .send) {
            swallowsFailure = true
            context.answer([(.element, XMLWriter.bytes { $0.element("abort", namespace) })], to: .server, part: .sasl)
        }
        context.answer([(.element, failure)], to: .client, part: .sasl)
        context.info.authentication = .failed(condition: condition)
        context.negotiation.failAuthentication()
        let step: LoginStep.Name = namespace.isSASL2 ? .sasl2 : .sasl
        let rule = ruling.rule.map { "\($0)" } ?? "a rule"
        context.finishStep(step, .failed(condition: condition, "refused by \(rule)"))
        context.login?.observe(
            .blamed(LoginDiagnosis(.endedByTap, at: step, "refused by \(rule)", condition: condition))
        )
    }

    // MARK: Faults

    /// Simulates a fault at an item, such as a connection reset, after all earlier writes.
    static func carryOut(
        _ fault: RuleFaultAction,
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
        switch fault {
        case .cut(let count):
            context.outlet.pass(first: count, of: event, of: &context.directions[direction])
            context.resetConnections()
        case .reset: context.resetConnections()
        case .halfClose:
            context.outlet.end(direction.destination)
            // Treat the direction as if the peer had sent a FIN. The peer's later bytes are not relayed.
            context.directions[direction].end = .finished
            context.directions[direction].hasPassedEnd = true
            context.directions[direction].delay()
        case .streamError(let condition, let text): context.refuse(condition, text ?? "")
        case .stall, .throttle, .slice, .saslFailure, .loseAck: break
        }
    }

    // MARK: Shapes

    /// Applies traffic shaping to later writes of a direction; nil ends the shaping.
    func shape(_ direction: Direction, _ shape: LinkShape?, _ context: inout SessionContext) {
        guard shapes[Int(direction.rawValue)] != shape else { return }
        shapes[Int(direction.rawValue)] = shape
        context.outlet.request(.shape(direction.destination, shape))
    }

    /// Applies the shaping of rules to an item that is about to be forwarded.
    func shape(_ direction: Direction, for ruling: ItemRuling, _ context: inout SessionContext) {
        var shape = shapes[Int(direction.rawValue)]
        for case (_, .fault(let fault)) in ruling.verdict.actions {
            switch fault {
            case .throttle(let bytes): shape = LinkShape(bytesPerSecond: bytes)
            case .slice(let bytes, let every):
                shape = LinkShape(bytesPerSecond: shape?.bytesPerSecond, slice: bytes, sliceEvery: every)
            default: break
            }
        }
        self.shape(direction, shape, &context)
    }

    /// Ends the shaping that applies to a single item only.
    func endSlice(_ direction: Direction, _ context: inout SessionContext) {
        guard let shape = shapes[Int(direction.rawValue)], shape.slice != nil else { return }
        self.shape(direction, shape.bytesPerSecond.map { LinkShape(bytesPerSecond: $0) }, &context)
    }

    // MARK: Records

    /// Records the rule hits of the current item, once, while the session's content is that item.
    func recordHits(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        guard context.options.level >= .verbose, let verdict = ruling?.verdict,
            ruling?.hasRecordedHits == false
        else {
            return
        }
        ruling?.hasRecordedHits = true
        for hit in verdict.hits {
            let record = context.makeRecord(event, direction, .note, level: .verbose)
            recordHit(hit, verdict, record, &context)
        }
    }

    /// Records the ruling on an injected stanza, after the stanza's own record.
    func endRuling(_ event: StreamEvent, of item: InjectedItem, _ record: Record, _ context: inout SessionContext) {
        guard let ruling, let direction = record.direction else { return }
        if context.options.level >= .verbose {
            for hit in ruling.verdict.hits {
                var hitRecord = record
                hitRecord.sequence = context.run.nextSequence()
                hitRecord.kind = .note
                recordHit(hit, ruling.verdict, hitRecord, &context)
            }
        }
        recordRemarks(ruling, direction, showsText: Self.isVerbatim(event, of: item.decoder, context), &context)
        self.ruling = nil
    }

    /// Records a hit; `record` is a new record of the item.
    private func recordHit(
        _ hit: Verdict.Hit,
        _ verdict: Verdict,
        _ record: consuming Record,
        _ context: inout SessionContext
    ) {
        var record = record
        // The rule action LEVEL applies only to the record of the item itself.
        record.level = .verbose
        record.part = .rules
        record.code = Record.Code.ruleHit
        record.rule = "\(hit.place)"
        record.edited = nil
        let actions = verdict.summary(of: hit.place)
        record.message = Prose(actions.isEmpty ? "\(hit.place) holds" : "\(hit.place): \(actions)")
        var details: Attributes = ["rule": .string("\(hit.place)")]
        if !actions.isEmpty { details["action"] = .string(actions) }
        // The conditions may contain addresses.
        if !hit.conditions.isEmpty, context.options.redaction != .metadata {
            details["conditions"] = .strings(hit.conditions)
        }
        if hit.isTraced, !verdict.tags.isEmpty { details["tags"] = .strings(verdict.tags) }
        record.details = details
        context.emit(consume record)
    }

    /// Records the remarks about rules, and the texts that they log.
    private func recordRemarks(
        _ ruling: ItemRuling,
        _ direction: Direction,
        showsText: Bool,
        _ context: inout SessionContext
    ) {
        for (place, remark) in ruling.verdict.remarks where isFirst(remark, place) {
            Self.report(remark, place, direction, &context)
        }
        for case (let place, .log(let level, let text)) in ruling.verdict.actions {
            let isShown = ruling.redacted.isEmpty && showsText
            context.report(
                .note,
                level,
                code: "rule-log",
                isShown
                    ? Prose(context.tools.redactor.disclose(text: text))
                    : "\(place): the text is left out: the item may contain a secret",
                direction: direction,
                part: .rules,
                details: ["rule": .string("\(place)")]
            )
        }
    }

    /// Records a remark about a rule.
    static func report(
        _ remark: Verdict.Remark,
        _ place: RulePlace,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
        context.report(
            .note,
            .warn,
            code: "rule-\(remark.code)",
            "\(place): \(remark.description)",
            direction: direction,
            part: .rules,
            details: ["rule": .string("\(place)")]
        )
    }

    /// Returns whether the record of a decoder's last item shows the item unchanged.
    private static func isVerbatim(
        _ event: StreamEvent,
        of decoder: borrowing StreamDecoder,
        _ context: borrowing SessionContext
    ) -> Bool {
        guard event.head.mayContainSecret || context.options.redaction.hidesTexts else { return true }
        if case .verbatim = context.tools.redactor.disclose(event, of: decoder) { return true }
        return false
    }
}

extension Verdict {
    /// Describes a rule's action.
    fileprivate func summary(of place: RulePlace) -> String {
        var actionNames: [String] = []
        if decidedBy == place {
            switch decision {
            case .pass: actionNames.append(edited == nil ? "pass" : "edit")
            case .drop: actionNames.append("drop")
            case .fault(let fault): actionNames.append(fault.description)
            }
        } else if editedBy == place {
            actionNames.append("edit")
        }
        for (other, action) in actions where other == place {
            switch action {
            case .inject(_, _, let why): actionNames.append(why.rawValue)
            case .log: actionNames.append("log")
            default: actionNames.append(action.description)
            }
        }
        return actionNames.joined(separator: ", ")
    }
}

extension Verdict.Remark {
    /// The stable code of the remark in records.
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

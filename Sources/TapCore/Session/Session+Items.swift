internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// The effects of each item on the session.
extension Session {
    /// Handles one event of a decoder: decides on it, forwards it, updates the state, and records it.
    mutating func handle(_ event: StreamEvent, _ direction: Direction) {
        switch event.kind {
        case .item(let kind):
            // In cut-through, stanzas are never altered.
            if kind == .element, event.head.kind != .nonza, context.directions[direction].isCutThrough {
                if let rules { watch(event, direction, rules) }
                context.outlet.passedOnArrival(direction)
                understand(event, kind, direction)
                if let rules { endRuling(.pass, event, direction, rules) }
                return
            }
            if login != nil { noteLoginItem(event, kind, direction) }
            var reading = ItemReading.none
            let decision = decide(event, direction, &reading)
            if let rules, let ruling = rules.ruling, info.opened == nil { noteActed(ruling, event, direction) }
            if let rules, waits(event, direction, decision, reading, rules) { return }
            carryOut(decision, reading, event, kind, direction)
        case .fragment(let isFirst):
            // In an open session an item beyond the limit is relayed as without rules and injections.
            if passesOversize(direction) { context.directions[direction].drain() }
            if isFirst, let rules { warnOfUnjudged(event, direction, rules) }
            // In store mode, an item beyond the limit ends the session at its beginning.
            guard context.directions[direction].isStoring else {
                if isFirst { counters.count(.limitHit(itemLimit(direction))) }
                apply(.pass, to: event, direction)
                return context.digest(direction, isFirst: isFirst)
            }
            if isFirst { apply(.refuse(oversize(event, direction)), to: event, direction) }
            action = nil
        case .fault(let fault): handleFault(fault, event, direction)
        case .torn: recordTorn(event, direction)
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
        if let rules, let ruling = rules.ruling, ruling.shapes { shape(direction, for: ruling, rules) }
        apply(decision, to: event, direction)
        if let action, event.item == .element, event.head.kind != .nonza, !reading.isInjected {
            counters.count(.acted(action, event.head.kind, direction))
        }
        switch (decision, reading) {
        // It is decided on again, and rules are evaluated again.
        case (.buffer(until: .counts), _): rules?.ruling = nil
        case (.refuse, _), (.fault, _): break
        case (_, .none): understand(event, kind, direction)
        case (_, .asymmetricTLS(let offer)):
            perform(negotiation.asymmetric?.advance(event, kind, direction, offer, &context) ?? [])
        case (_, .features(let offer)): handleFeatures(event, offer)
        case (_, .login(let element, let acts, let wasLoggingIn, let translation)):
            if let rules { noteHits(event, direction, rules) }
            handleBridged(event, direction, element, acts, wasLoggingIn: wasLoggingIn)
            if let translation { handle(translation, direction) }
        case (_, .injected(let request)): handleInjected(event, direction, request)
        case (_, .streamManagement(let translation)):
            understand(event, kind, direction)
            handle(translation, direction)
        }
        if let rules {
            endRuling(decision, event, direction, rules)
            if !rules.earlier.isEmpty { settleEarlierRules(rules) }
        }
        action = nil
        edited = nil
        if let streamManagement { requestAcknowledgement(direction, streamManagement) }
    }

    // MARK: Deciding

    /// Decides on an item.
    private mutating func decide(_ event: StreamEvent, _ direction: Direction, _ reading: inout ItemReading)
        -> ItemDecision
    {
        // Partly forwarded items cannot be held, and only whole items are acted on; nothing is inserted if the session
        // is refused.
        let mayAct = context.directions[direction].isStoring && !negotiation.isRefusing
        if mayAct, let rules, let decision = interceptLoginByRules(event, direction, rules) { return decision }
        let decision = intercept(event, direction, mayAct: mayAct, &reading) ?? .pass
        if case .refuse = decision { return decision }
        guard let rules, !negotiation.isRefusing else { return mayAct ? decision : .pass }
        // Replies to xmpptap's own requests are not judged.
        if reading.isInjected { return decision }
        // The last interceptor: rules are evaluated for items that xmpptap itself lets pass.
        if mayAct { return interceptByRules(event, direction, decision, rules) }
        watch(event, direction, rules)
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
        if let decision = interceptOversize(event, direction) { return decision }
        if let decision = interceptOtherDomain(event, direction) { return decision }
        if let decision = TLSPolicy.interceptClear(event, direction, negotiation, context) { return decision }
        if mayAct, let decision = interceptAsymmetricTLS(event, direction, &reading) { return decision }
        if let decision = interceptFeatures(event, direction, &reading) { return decision }
        let translated = interceptStreamManagement(event, direction, &reading)
        if case .buffer = translated { return translated }
        if mayAct, let decision = interceptLogin(event, direction, translated, &reading) { return decision }
        if let translated { return translated }
        if mayAct, let decision = interceptInjected(event, direction, &reading) { return decision }
        if let decision = TLSPolicy.interceptConsent(event, direction, negotiation, context) { return decision }
        if let decision = interceptWhitespace(event, direction) { return decision }
        return nil
    }

    /// Carries out a decision: the only place that decides how an item leaves.
    private mutating func apply(_ decision: ItemDecision, to event: StreamEvent, _ direction: Direction) {
        action = context.directions[direction].isStoring ? decision.action : nil
        let rule = rules?.ruling?.answers ?? 0
        switch decision {
        // A refused session has no server to forward anything to.
        case .pass where negotiation.isRefusing: break
        case .pass:
            // If the stanza is retransmitted, a decision from a rule's memory must be repeated.
            let isStateful = rules?.ruling?.isStateful == true
            context.outlet.pass(event, of: &context.directions[direction], by: isStateful ? rule : nil)
        case .replace(let edited):
            self.edited = edited
            context.outlet.replace(event, of: &context.directions[direction], with: edited.bytes, by: rule)
        case .buffer(.serverTLS):
            context.directions[direction].buffer(event)
            hold(direction)
            termination.awaitConsent(options)
        case .buffer(.features): context.directions[direction].buffer(event)
        case .buffer(.counts): context.directions[direction].keep()
        case .buffer(.restart), .drop, .answer:
            context.outlet.drop(event, of: &context.directions[direction], by: rule)
        case .refuse(let refusal):
            if let part = refusal.itemPart { context.recordItem(event, direction, .element, level: .info, part: part) }
            refuse(refusal)
        case .fault(let fault):
            context.recordItem(event, direction, event.head.kind == .nonza ? .element : .stanza, level: .info)
            if let rules { noteHits(event, direction, rules) }
            carryOut(fault, event, direction)
        }
        followDivergence()
    }

    /// Records an ordinary item, and updates the state from its contents.
    mutating func understand(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        if event.head.isUnusual { differential.compareReaders(event, direction, &context) }
        switch kind {
        case .declaration:
            if event.epoch > 1, !isRestartDue(direction) { login?.observe(.secondDeclaration(direction)) }
            context.recordItem(event, direction, .declaration, level: .verbose)
        case .whitespace: context.recordItem(event, direction, .whitespace, level: .verbose)
        case .header: handleHeader(event, direction)
        case .element: handleElement(event, direction)
        case .end: handleStreamEnd(event, direction)
        }
    }

    // MARK: Limits

    /// Refuses an item beyond the limit in store mode.
    private func interceptOversize(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard event.isTruncated, context.directions[direction].isStoring else { return nil }
        return .refuse(oversize(event, direction))
    }

    /// The limit that applies to items of a direction.
    func itemLimit(_ direction: Direction) -> SessionCounters.Limit {
        let isOfLogin = context.directions[direction].limits.itemBytes == options.unauthenticatedLimits.itemBytes
        return isOfLogin && info.opened == nil ? .loginItem : .item
    }

    /// Whether an item beyond the limit is forwarded although items are stored.
    private func passesOversize(_ direction: Direction) -> Bool {
        !options.storesAlways && info.opened != nil && context.directions[direction].isStoring
    }

    /// Warns of a stanza that is forwarded without evaluating the rules, or the pause, that cover it.
    private mutating func warnOfUnjudged(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard !context.directions[direction].isStoring, event.head.kind != .nonza, info.opened != nil,
            rules.set.asks(direction, isOpen: true, event.head.kind) || rules.pause?.covers(direction) == true
        else { return }
        let limit = context.directions[direction].limits.itemBytes
        note(
            .note,
            .warn,
            code: "rules-not-evaluated",
            "rules were not evaluated for a stanza larger than \(limit) bytes, the limit of an item; it is relayed",
            direction: direction,
            part: .rules,
            remedy: .refuseOversize
        )
    }

    private func oversize(_ event: StreamEvent, _ direction: Direction) -> Refusal {
        let limit = context.directions[direction].limits.itemBytes
        let isStranger = itemLimit(direction) == .loginItem
        let words = "\(limit) bytes, the limit \(isStranger ? "before authentication" : "of a session")"
        return Refusal(
            answer: .streamError(.policyViolation, "An item is larger than \(words).", fault: direction),
            code: ScanFault.Code.itemTooLong.rawValue,
            message:
                "an item longer than \(words), at offset \(event.offset) of stream \(event.epoch); the session is closed",
            condition: .policyViolation,
            direction: direction,
            diagnosis: "an item of the \(direction.source.name) is larger than \(words)"
        )
    }

    // MARK: Faults

    /// Some clients send the end tag twice, which is harmless.
    private func isRepeatedEnd(_ fault: ScanFault, _ direction: Direction) -> Bool {
        guard fault.code == .afterStreamEnd else { return false }
        let bytes = context.directions.bytes(direction)
        return bytes.count > 1 && bytes[0] == 0x3C && bytes[1] == 0x2F
    }

    /// Whether the first bytes of a server are a TLS alert or handshake; XML never begins like that (RFC 8446 §5.1).
    private func isTLSRecord(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty, bytes[0] == 0x15 || bytes[0] == 0x16 else { return false }
        return bytes.count < 2 || bytes[1] == 3
    }

    private mutating func handleFault(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) {
        if direction == .recv, performs(negotiation.asymmetric?.refuseEarlyBytes(context)) { return }
        let isForeign = context.directions[direction].decoder.epoch == 0 && fault.code == .notXML
        // An acknowledgement or a presence that crosses the end of the stream belongs to an ordinary logout.
        let isLate = fault.code == .afterStreamEnd && info.opened != nil
        if isRepeatedEnd(fault, direction) {
            note(
                .note,
                .verbose,
                code: "repeated-end",
                "the end of the stream, repeated",
                direction: direction
            )
        } else {
            if !isLate { counters.count(.parseError(direction.source, fault.code)) }
            if isForeign, direction == .recv, isTLSRecord(context.directions.bytes(.recv)) {
                login?.observe(.serverBeganTLS)
            } else if isForeign, direction == .recv,
                let name = ProtocolGuess(context.directions.bytes(.recv), isFinal: true)?.serverProtocol
            {
                login?.observe(.serverSpeaks(name))
            }
            recordFault(fault, event, direction, isForeign: isForeign, isLate: isLate)
            login?.observe(.fault(fault, direction, isForeign: isForeign))
        }
        if isLate { return turnOpaque(direction, .ended) }
        // The order of lines in a log differs from that of the bytes.
        if !options.isDecoded, !isRepeatedEnd(fault, direction) {
            failStep(condition: fault.condition.rawValue, isForeign ? "no XMPP" : Prose(fault.explanation))
        }
        if negotiation.isRefusing { return direction == .send ? answerRefused() : finish(reset: false) }
        if refusesUnread {
            return refuse(fault.condition, "\(fault.explanation), at offset \(fault.offset)", fault: direction)
        }
        turnOpaque(direction, isForeign ? .foreign : .unparsable)
        if isForeign {
            turnOpaque(direction.opposite, .paired)
            negotiation.turnOpaque(nil)
        }
    }
}

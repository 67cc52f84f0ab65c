internal import TapRecord
import TapRules
import XMPPCore

// Items that xmpptap inserts into a stream, between those of the peers.
extension Session {
    /// Checks a stanza to inject, and queues it until an item boundary.
    ///
    /// A direction in cut-through is stored until the stanza is sent, and while it may carry an answer that must not be
    /// forwarded.
    mutating func inject(_ injection: Injection) {
        let direction = injection.destination.inbound.opposite
        do throws(InjectionFault) {
            if let obstacle = obstacle(direction, isOfRule: injection.number == Injection.ruleNumber) { throw obstacle }
            if injection.swallowsAnswer, let obstacle = obstacle(direction.opposite) { throw obstacle }
            let injections = injections ?? Injections()
            let item = try InjectedItem(
                injection,
                in: context.directions[direction].decoder,
                options.limits,
                at: context.now.monotonic
            )
            if !injection.isRaw {
                let limit = context.directions[direction].receiverBytes
                guard item.bytes.count <= limit else { throw .overReceiverLimit(limit, injection.destination) }
                if injection.number < Injection.copyNumber { try checkAddresses(of: item, direction) }
            }
            try injections.append(item, direction, byteLimit: options.injectedBytes)
            self.injections = injections
        } catch {
            if error == .ended, InjectedItem.outlivesConnection(injection.number),
                keeps(injection.item, direction)
            {
                return
            }
            report(.failed(error), of: injection.number, direction)
        }
    }

    /// Whether a stanza that was not sent on this connection is kept for the next one of the session.
    private func keeps(_ item: [UInt8], _ direction: Direction) -> Bool {
        resumption.isResumable && streamManagement?.keep(lost: item, direction) == true
    }

    /// Refuses a user's stanza with an invalid address, or with one for which the server would end the session. Servers
    /// and components name both ends of each stanza.
    func checkAddresses(of item: InjectedItem, _ direction: Direction) throws(InjectionFault) {
        guard let head = item.event?.head else { return }
        let isOfClient = context.directions[direction].decoder.contentNamespace == .client
        let stanza = item.stanza
        for (attribute, name) in [(head.from, "from"), (head.to, "to")] {
            guard let value = attribute?.text(in: stanza.span) else {
                if isOfClient { continue }
                throw .noAddress(attribute: name)
            }
            let address = Address(value)
            guard let from = address.jid else { throw .notAddress(value, attribute: name) }
            guard name == "from", direction == .send, let jid = info.jid else { continue }
            let own = Address(jid)
            if isOfClient {
                if address != own, address != own.bare { throw .foreignSender(value, jid: jid) }
            } else if let own = own.jid, from.asciiDomain != own.asciiDomain, !hasFurtherDomains {
                throw .foreignDomain(value, domain: own.domain)
            }
        }
    }

    /// Leaves unsent stanzas of rules to the session's next connection, as far as there is space.
    mutating func keepUnsent(_ direction: Direction) {
        injections?.removeUnsent(direction) { keeps($0, direction) }
    }

    /// Why an item cannot be injected into a direction, or answered in it; nil if it can.
    func obstacle(_ direction: Direction, isOfRule: Bool = false) -> InjectionFault? {
        if negotiation.isFinished || context.directions[direction].hasClosedStream
            || context.directions[direction].end != nil
        {
            return .ended
        }
        if context.directions[direction].isOpaque { return .notDecoded }
        // A rule answers for a peer, also during a login.
        return info.opened != nil || isOfRule && context.directions[direction].decoder.epoch > 0 ? nil : .notOpen
    }

    /// Sends the first waiting item, if the forwarded bytes end at an item boundary. Called when all received input has
    /// been handled.
    mutating func advance(_ injections: Injections) {
        for direction in Direction.allCases {
            // Before the session is open, only stanzas of rules can wait.
            if let obstacle = obstacle(direction, isOfRule: true) {
                keepUnsent(direction)
                for number in injections.removeAll(direction) {
                    report(.failed(obstacle), of: number, direction)
                }
            } else if injections.isWaiting(direction) {
                if context.mayInsert(direction) { return send(injections.takeFirst(direction), direction, injections) }
                store(direction, injections)
            }
            guard !injections.isWaiting(direction), !injections.expects(direction),
                !context.directions[direction].isHeld,
                injections.stored.remove(direction) != nil
            else { continue }
            cutThrough(direction)
        }
        if negotiation.isFinished || injections.isIdle { self.injections = nil }
    }

    /// Fails the injections past their time limit.
    mutating func expire(_ injections: Injections) {
        for (number, direction, fault) in injections.expire(at: context.now.monotonic) {
            report(.failed(fault), of: number, direction)
        }
    }

    /// Reports the outcome of a stanza to the code that injected it in a direction.
    private mutating func report(
        _ outcome: InjectionOutcome,
        of number: UInt64,
        _ direction: Direction
    ) {
        switch number {
        case Injection.pingNumber: pings.end(outcome, &context)
        case Injection.repeatedNumber:
            guard case .failed(let fault) = outcome else { return }
            note(
                .note,
                .warn,
                code: "injection-lost",
                "a stanza that was injected before the resumption could not be injected again: \(fault)",
                direction: direction,
                part: .inject
            )
        case Injection.ruleNumber, Injection.copyNumber:
            guard case .failed(let fault) = outcome, fault != .noAnswer else { return }
            note(
                .note,
                .warn,
                code: "rule-injection-failed",
                "a stanza of a rule was not sent: \(fault)",
                direction: direction,
                part: .rules
            )
        default: context.outlet.request(.injected(number, outcome))
        }
    }

    private mutating func store(_ direction: Direction, _ injections: Injections) {
        guard context.directions[direction].isCutThrough else { return }
        injections.stored.insert(direction)
        storeAndForward(direction)
    }

    mutating func send(_ item: InjectedItem?, _ direction: Direction, _ injections: Injections) {
        guard let item else { return }
        context.outlet.inject(item, direction)
        followDivergence()
        if let rules, let event = item.event { judge(item, event, direction, rules) }
        var record = context.makeRecord(item.event == nil ? .bytes : .stanza, .info, part: .inject)
        record.origin = .tap
        record.direction = direction
        record.leg = direction.destination
        record.length = UInt64(item.bytes.count)
        if let event = item.event {
            record.length = event.length
            describe(event, of: item, direction, injections, in: &record)
        } else {
            describe(raw: item.bytes, in: &record)
        }
        if let level = rules?.ruling?.level { record.level = level }
        context.emit(record)
        if let rules, let event = item.event { endRuling(event, of: item, record, rules) }
        injected += 1
        counters.count(.injected(item.event?.head.kind ?? .nonza, direction))
        report(.sent, of: item.number, direction)
    }

    private mutating func describe(
        _ event: StreamEvent,
        of item: InjectedItem,
        _ direction: Direction,
        _ injections: Injections,
        in record: inout Record
    ) {
        record.xml = ByteRange(0, Int(event.length))
        let redacted = (item.isOfRule ? rules?.set.redactions ?? [] : []) + (rules?.ruling?.redacted ?? [])
        context.compose(event, of: item, direction, without: redacted, in: &record)
        if options.level >= .info { context.summarise(event, direction, in: &record, answering: nil) }
        guard item.isRequest else { return }
        let stanza = item.stanza
        if item.swallowsAnswer {
            store(direction.opposite, injections)
            injections.await(item, record.sequence, by: direction.opposite)
            injections.requests.note(event.head, stanza.span, direction, record, item.purpose, context.info)
        } else if requests.expectsAnswers(on: info.kind) {
            requests.note(event.head, stanza.span, direction, record, item.purpose, context.info)
        }
    }

    /// Bytes other than one stanza cannot be redacted: the record has a digest of them, as for all undecoded bytes.
    private mutating func describe(raw bytes: [UInt8], in record: inout Record) {
        record.code = "raw"
        record.message = "\(bytes.count) bytes injected as given"
        if options.redaction.showsRawBytes {
            record.bytes = bytes
        } else if let digest = run.makeByteDigest() {
            digest.update(bytes.span)
            record.digest = SessionContext.hexadecimal(digest)
        }
    }

    // MARK: Answers

    /// The answer to an injected request, which is for the code that injected it.
    func interceptInjected(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        guard let injections, injections.expects(direction), event.item == .element, event.head.kind == .iq,
            !event.isTruncated, let type = event.head.type
        else { return nil }
        let bytes = context.directions.bytes(direction)
        guard bytes.slice(type.range).equals("result") || bytes.slice(type.range).equals("error"),
            let request = injections.requests.answer(event.head, bytes, direction, context.info)
        else { return nil }
        reading = .injected(request)
        return .drop
    }

    /// Records such an answer, and passes it to the code that awaits it.
    mutating func handleInjected(_ event: StreamEvent, _ direction: Direction, _ request: IQTracker.Request) {
        info.count(.iq, direction)
        var record = context.makeRecord(event, direction, .stanza, level: .info, part: .inject, answering: request)
        let roundTrip = context.now.monotonic - request.monotonic
        record.answers = request.sequence
        record.roundTrip = roundTrip
        context.emit(consume record)
        if request.isPing { counters.addPing(direction.source, roundTrip) }
        // A late answer is dropped too, but it is no longer awaited.
        guard let number = injections?.takeAwaited(request.sequence) else { return }
        var bytes: [UInt8] = []
        bytes.append(context.directions.bytes(direction))
        report(.answered(bytes, roundTrip: roundTrip), of: number, direction)
    }
}

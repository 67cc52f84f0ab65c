internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// Inserts stanzas of users, rules and xmpptap itself into a stream, between the stanzas of the peers.
struct Injector {
    /// The unfinished injections; nil if there are none.
    private var pending: Injections?
    /// The number of stanzas that were sent.
    private(set) var sent: UInt64 = 0
    /// The pings that xmpptap sends to the client, which are injected too.
    var pings = ClientPings()

    // MARK: State

    /// Whether stanzas wait, or answers to injected stanzas are expected.
    var isActive: Bool { pending != nil }

    /// The next time limit, in nanoseconds of the run; nil if there is none.
    var deadline: Int64? {
        guard let deadline = pending?.deadline else { return pings.deadline }
        return min(deadline, pings.deadline ?? .max)
    }

    // MARK: Waiting stanzas

    /// Checks a stanza to inject, and queues it until the next item boundary.
    ///
    /// A direction in cut-through mode stores its items until the stanza is sent, and while the direction may carry an
    /// answer that must not be forwarded.
    ///
    /// - Parameter isResumable: Whether a later connection of the session can send the stanza.
    mutating func inject(_ injection: Injection, isResumable: Bool, _ context: inout SessionContext) {
        let direction = injection.destination.inbound.opposite
        do throws(InjectionFault) {
            let item = try context.makeItem(of: injection)
            let pending = pending ?? Injections()
            try pending.append(item, direction, byteLimit: context.options.injectedBytes)
            self.pending = pending
        } catch {
            if error == .ended, isResumable, InjectedItem.outlivesConnection(injection.number),
                Self.keeps(injection.item, direction, context)
            {
                return
            }
            report(.failed(error), of: injection.number, direction, &context)
        }
    }

    /// Injects the stanzas of rules, and records the rules' other reports.
    mutating func perform(_ effects: [RuleEffect], isResumable: Bool, _ context: inout SessionContext) {
        for effect in effects {
            switch effect {
            case .inject(let injection): inject(injection, isResumable: isResumable, &context)
            case .report(let remark, let place, let direction):
                SessionRules.report(remark, place, direction, &context)
            }
        }
    }

    /// Stores a stanza that was not sent on this connection for the session's next connection; returns false if it
    /// cannot.
    private static func keeps(_ item: [UInt8], _ direction: Direction, _ context: borrowing SessionContext) -> Bool {
        context.streamManagement?.keep(lost: item, direction) == true
    }

    /// Stores the unsent stanzas of rules for the session's next connection, as far as there is space; returns the requests
    /// whose answers must not be forwarded on that connection either, nil if there are none.
    func keepUnsent(_ context: borrowing SessionContext) -> IQTracker? {
        for direction in Direction.allCases { keepUnsent(direction, context) }
        return pending.flatMap { $0.requests.count > 0 ? $0.requests : nil }
    }

    /// Takes over the requests of the resumed session whose answers must not be forwarded.
    mutating func inherit(_ requests: IQTracker?, _ context: inout SessionContext) {
        guard let requests, !context.negotiation.isFinished else { return }
        let pending = pending ?? Injections()
        pending.inherit(requests, at: context.now.monotonic)
        self.pending = pending
        for direction in Direction.allCases where pending.expects(direction) {
            context.directions[direction].storesForInjection = true
            context.storeAndForward(direction)
        }
    }

    private func keepUnsent(_ direction: Direction, _ context: borrowing SessionContext) {
        pending?.removeUnsent(direction) { Self.keeps($0, direction, context) }
    }

    /// Removes and returns the first stanza that waits for a direction, if the forwarded bytes end at an item boundary.
    mutating func takeFirst(_ direction: Direction, _ context: borrowing SessionContext) -> InjectedItem? {
        guard let pending, pending.isWaiting(direction), context.mayInsert(direction) else { return nil }
        return pending.takeFirst(direction)
    }

    /// Removes and returns the next stanza to send in a direction; reports the stanzas that cannot be sent any more as
    /// failed. Called when all received input has been handled.
    mutating func advance(
        _ direction: Direction,
        isResumable: Bool,
        _ context: inout SessionContext
    ) -> InjectedItem? {
        guard let pending else { return nil }
        // Before the session is open, only stanzas of rules can wait.
        if let obstacle = context.obstacle(direction, isOfRule: true) {
            if isResumable { keepUnsent(direction, context) }
            for number in pending.removeAll(direction) { report(.failed(obstacle), of: number, direction, &context) }
        } else if pending.isWaiting(direction) {
            if context.mayInsert(direction) { return pending.takeFirst(direction) }
            Self.store(direction, &context)
        }
        guard !pending.isWaiting(direction), !pending.expects(direction), !context.directions[direction].isHeld,
            context.directions[direction].storesForInjection
        else { return nil }
        context.directions[direction].storesForInjection = false
        context.cutThrough(direction)
        return nil
    }

    /// Frees the injections if none is unfinished.
    mutating func removeFinished(_ context: borrowing SessionContext) {
        let isStoring = context.directions.send.storesForInjection || context.directions.recv.storesForInjection
        if context.negotiation.isFinished || pending?.isIdle == true && !isStoring { pending = nil }
    }

    /// Reports each stanza that has exceeded its time limit as failed; returns a ping if it is time for one.
    mutating func tick(_ context: inout SessionContext) -> Injection? {
        for (number, direction, fault) in pending?.expire(at: context.now.monotonic) ?? [] {
            report(.failed(fault), of: number, direction, &context)
        }
        return pings.advance(isOver: context.negotiation.isFinished, &context)
    }

    /// Reports the outcome of a stanza to the code that injected it in a direction.
    private mutating func report(
        _ outcome: InjectionOutcome,
        of number: UInt64,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
        switch number {
        case Injection.pingNumber: pings.end(outcome, &context)
        case Injection.repeatedNumber:
            guard case .failed(let fault) = outcome else { return }
            context.report(
                .note,
                .warn,
                code: "injection-lost",
                "a stanza that was injected before the resumption could not be injected again: \(fault)",
                direction: direction,
                part: .inject
            )
        case Injection.ruleNumber, Injection.copyNumber:
            guard case .failed(let fault) = outcome, fault != .noAnswer else { return }
            context.report(
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

    private static func store(_ direction: Direction, _ context: inout SessionContext) {
        guard context.directions[direction].isCutThrough else { return }
        context.directions[direction].storesForInjection = true
        context.storeAndForward(direction)
    }

    // MARK: Sent stanzas

    /// Records a stanza that was sent; returns its record.
    ///
    /// - Parameter requests: The session's pending requests; the stanza is added if its answer is to be forwarded.
    mutating func record(
        _ item: InjectedItem,
        _ direction: Direction,
        _ requests: inout IQTracker,
        _ context: inout SessionContext
    ) -> Record {
        var record = context.makeRecord(item.event == nil ? .bytes : .stanza, .info, part: .inject)
        record.origin = .tap
        record.direction = direction
        record.leg = direction.destination
        record.length = UInt64(item.bytes.count)
        if let event = item.event {
            record.length = event.length
            describe(event, of: item, direction, &requests, in: &record, &context)
        } else {
            Self.describe(raw: item.bytes, in: &record, context)
        }
        if let level = context.rules?.ruling?.level { record.level = level }
        context.emit(record)
        return record
    }

    /// Counts a stanza that was sent, and reports the outcome to the code that injected it.
    mutating func finish(_ item: InjectedItem, _ direction: Direction, _ context: inout SessionContext) {
        sent += 1
        context.counters.count(.injected(item.event?.head.kind ?? .nonza, direction))
        report(.sent, of: item.number, direction, &context)
    }

    private func describe(
        _ event: StreamEvent,
        of item: InjectedItem,
        _ direction: Direction,
        _ requests: inout IQTracker,
        in record: inout Record,
        _ context: inout SessionContext
    ) {
        record.xml = ByteRange(0, Int(event.length))
        let redacted =
            (item.isOfRule ? context.rules?.set.redactions ?? [] : []) + (context.rules?.ruling?.redacted ?? [])
        context.compose(event, of: item, direction, without: redacted, in: &record)
        if context.options.level >= .info { context.summarise(event, direction, in: &record, answering: nil) }
        guard item.isRequest else { return }
        let stanza = item.stanza
        if item.swallowsAnswer, let pending {
            Self.store(direction.opposite, &context)
            pending.await(item, record.sequence, by: direction.opposite)
            pending.requests.store(event.head, stanza.span, direction, record, item.purpose, context.info)
        } else if requests.expectsAnswers(on: context.info.kind) {
            requests.store(event.head, stanza.span, direction, record, item.purpose, context.info)
        }
    }

    /// Describes bytes that are not one stanza. They cannot be redacted, so the record has only a digest, as for all
    /// undecoded bytes.
    private static func describe(
        raw bytes: [UInt8],
        in record: inout Record,
        _ context: borrowing SessionContext
    ) {
        record.code = "raw"
        record.message = "\(bytes.count) bytes injected as given"
        if context.options.redaction.showsRawBytes {
            record.bytes = bytes
        } else if let digest = context.run.makeByteDigest() {
            digest.update(bytes.span)
            record.digest = SessionContext.hexadecimal(digest)
        }
    }

    // MARK: Answers

    /// Drops the answer to an injected request, because it is returned to the code that injected the request.
    func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard let pending, pending.expects(direction), event.item == .element, event.head.kind == .iq,
            !event.isTruncated, let type = event.head.type
        else { return nil }
        let bytes = context.directions.bytes(direction)
        // Servers answer from different addresses, and no peer chooses the ids of this run by chance.
        let id = bytes.slice(event.head.id?.range ?? .empty)
        let prefix = context.run.idPrefix
        let isOwn =
            id.count > prefix.utf8.count && id.extracting(0..<prefix.utf8.count).equals(prefix.utf8.span)
        guard bytes.slice(type.range).equals("result") || bytes.slice(type.range).equals("error"),
            let request = pending.requests.answer(event.head, bytes, direction, context.info, byIDAlone: isOwn)
        else { return nil }
        reading = .injected(request)
        return .drop
    }

    /// Records the answer to an injected request, and passes it to the code that awaits it.
    mutating func handleAnswer(
        _ event: StreamEvent,
        _ direction: Direction,
        _ request: IQTracker.Request,
        _ context: inout SessionContext
    ) {
        context.info.count(.iq, direction)
        var record = context.makeRecord(event, direction, .stanza, level: .info, part: .inject, answering: request)
        let roundTrip = context.now.monotonic - request.monotonic
        record.answers = request.sequence
        record.roundTrip = roundTrip
        context.emit(consume record)
        if request.isPing { context.counters.addPing(direction.source, roundTrip) }
        // An answer past its time limit is dropped too, but is no longer awaited.
        guard let number = pending?.takeAwaited(request.sequence) else { return }
        var bytes: [UInt8] = []
        bytes.append(context.directions.bytes(direction))
        report(.answered(bytes, roundTrip: roundTrip), of: number, direction, &context)
    }
}

extension SessionContext {
    /// Parses and checks an item to inject.
    func makeItem(of injection: Injection) throws(InjectionFault) -> InjectedItem {
        let direction = injection.destination.inbound.opposite
        let isOfRule = injection.number == Injection.ruleNumber
        if let obstacle = obstacle(direction, isOfRule: isOfRule) { throw obstacle }
        if injection.swallowsAnswer, let obstacle = obstacle(direction.opposite) { throw obstacle }
        let item = try InjectedItem(
            injection,
            in: directions[direction].decoder,
            options.limits,
            at: now.monotonic
        )
        guard !injection.isRaw else { return item }
        let limit = directions[direction].receiverBytes
        guard item.bytes.count <= limit else { throw .overReceiverLimit(limit, injection.destination) }
        if injection.number < Injection.copyNumber { try checkAddresses(of: item, direction) }
        return item
    }

    /// Returns why an item cannot be injected; nil if it can.
    func fault(in injection: Injection) -> InjectionFault? {
        do throws(InjectionFault) {
            _ = try makeItem(of: injection)
            return nil
        } catch {
            return error
        }
    }

    /// Throws if a user's stanza has an invalid address, or an address for which the server would end the session.
    /// Servers and components must write both `from` and `to`.
    func checkAddresses(of item: InjectedItem, _ direction: Direction) throws(InjectionFault) {
        guard let head = item.event?.head else { return }
        let isOfClient = directions[direction].decoder.contentNamespace == .client
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
                // The resource of a session that began elsewhere can be unknown.
                let isOwn = own.resource == nil ? address.bare == own : address == own || address == own.bare
                if !isOwn { throw .foreignSender(value, jid: jid) }
            } else if let own = own.jid, from.asciiDomain != own.asciiDomain, !hasFurtherDomains {
                throw .foreignDomain(value, domain: own.domain)
            }
        }
    }

    /// Returns why an item cannot be injected into a direction, or its answer cannot arrive in it; nil if it can.
    func obstacle(_ direction: Direction, isOfRule: Bool = false) -> InjectionFault? {
        if negotiation.isFinished || directions[direction].hasClosedStream || directions[direction].hasClosedSocket
            || directions[direction].end != nil
        {
            return .ended
        }
        if directions[direction].isOpaque { return .notDecoded }
        if outlet.hasLostCounts { return .notCounted }
        // A rule may answer in place of a peer during a login too.
        return info.opened != nil || isOfRule && directions[direction].decoder.epoch > 0
            ? nil : .notOpen
    }
}

internal import TapDiagnosis
public import TapRecord
import XMPPCore

// The inputs of a session from its driver.
extension Session {
    /// Handles an input. The resulting commands are returned by ``next()``.
    public mutating func handle(_ input: SessionInput, at now: Run.Instant) {
        context.now = now
        switch input {
        case .attempted(let step): made(step)
        case .chose(let domain): context.chosenDomain = domain
        case .connected(let address, let since, let beginsWithTLS):
            if beginsWithTLS { context.negotiation.asymmetric?.serverBeginsWithTLS() }
            connected(address, since)
        case .connectionFailed(let reason, let fault): connectionFailed(reason, fault)
        case .took(let step, let outcome): took(step, outcome, at: context.now)
        case .computed(let step): computed(step)
        case .ended(let leg, let end, let failure):
            perform(termination.handle(failure.map { .ended(leg, $0) } ?? .stopped(nil), &context))
            ended(leg, end)
        case .joined(let inTLS): join(inTLS)
        case .decrypts(let details, let consentFollows): decrypts(details, consentFollows)
        case .remark(let direction, let code, let words):
            context.login?.observe(.gap)
            context.note(code: code, words, direction: direction, part: .tls)
        case .missed(let direction, let count, let isSkipped): missed(direction, count, isSkipped)
        case .incomplete: context.login?.observe(.gap)
        case .tls(let leg, let event): perform(termination.handle(event, leg, &context))
        case .identityFound(let isServersOwn):
            perform(termination.handle(.found(isServersOwn: isServersOwn), &context))
        case .identityNotFound(let failure): perform(termination.handle(.notFound(failure), &context))
        case .inject(let injection): inject(injection)
        case .displaced(let session): giveUp(to: session)
        case .displaces: context.streamManagement?.endWaiting(for: .displacement)
        case .searchedJournal(let marks, let isFound):
            context.streamManagement?.endWaiting(for: .journal(marks), isInJournal: isFound)
        case .rules(let set): replaceRules(by: set)
        case .pause(let pause): self.pause(pause)
        case .release(let number, let release):
            if let rules = context.rules {
                rules.releaseHeld(number, release, &context)
            } else {
                SessionRules.reportNotHeld(number, &context)
            }
        case .shared(let answer): handle(answer)
        case .tick: tick()
        case .abort(let condition, let text, let code): abort(condition, text, code)
        case .stop: stop(.stopped)
        case .unrecorded: stop(.unrecorded)
        case .closed: if !context.negotiation.isClosed { finishRecords() }
        }
    }

    private mutating func connected(_ address: String, _ since: Run.Instant?) {
        context.negotiation.connected()
        context.directions.send.hasInput = true
        context.note(.session, .trace, code: "server-connected", "connected to \(address)", part: .net)
        if !context.timeline.has(.connect) {
            context.finishStep(.connect, .ok, since: since?.monotonic, details: ["address": .string(address)])
        }
    }

    private mutating func connectionFailed(_ reason: String, _ fault: ConnectionFault) {
        context.login?.observe(.unreachable(fault, Prose(reason)))
        if !context.timeline.hasFailure { context.finishStep(.connect, .failed(Prose(reason))) }
        context.note(
            .error,
            .error,
            code: "server-unreachable",
            Prose(reason),
            condition: .remoteConnectionFailed,
            part: .net
        )
        context.refuse(.remoteConnectionFailed, "Cannot connect to the server.")
    }

    private mutating func abort(_ condition: StreamErrorCondition, _ text: String, _ code: String) {
        guard !context.negotiation.isFinished, !context.negotiation.isRefusing else { return }
        if termination.isNegotiating {
            let failure = TLSFailure(code: "tls-timeout", "\(Prose(text).clause)")
            return perform(termination.handle(.stopped(failure), &context))
        }
        context.login?.observe(.refused(Prose(text)))
        context.note(.error, .error, code: code, Prose(text), condition: condition, part: .session)
        context.refuse(condition, text)
    }

    /// Handles received bytes.
    public mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, at now: Run.Instant) -> Disposition {
        context.now = now
        guard !bytes.isEmpty, !context.negotiation.isFinished else { return .keep }
        if termination.isNegotiating || context.directions[direction].received == 0,
            performs(termination.receive(direction, bytes, &context))
        {
            return .keep
        }
        if context.options.level >= .trace { traceChunk(direction, bytes) }
        let isFirst = context.directions[direction].count(bytes.count)
        liveness.observe(.received, at: context.now.monotonic)
        context.info.count(bytes: UInt64(bytes.count), direction)
        if isFirst {
            lookAtFirstBytes(direction, bytes)
            if context.negotiation.isFinished { return .keep }
        }
        if case .opaque(let why, _) = context.directions[direction].mode {
            lookIntoOpaque(direction, bytes)
            if context.negotiation.isFinished || context.drops(why) { return .keep }
        }
        if let rules = context.rules, context.directions[direction].isDelayed {
            let end = context.directions[direction].arrived + UInt64(bytes.count)
            rules[direction].noteArrival(upTo: end, at: context.now.monotonic)
        }
        if context.directions[direction].isCutThrough {
            if !context.directions[direction.opposite].hasInput { leading = direction }
            context.directions[direction].arrival = context.now
        }
        return context.directions[direction].take(bytes)
    }

    mutating func ended(_ leg: Leg, _ end: LegEnd) {
        let direction = leg.inbound
        guard !context.negotiation.isFinished else { return }
        if context.directions[direction].end == .finished, end != .finished {
            // The peer had only half-closed; now the connection is broken, and nothing can reach the peer.
            return context.finish(reset: !context.hasEndedInOrder(direction))
        }
        guard context.directions[direction].end == nil else { return }
        context.directions[direction].end = end
        context.directions[direction].hasInput = true
        // A half-closed client cannot start TLS: release the items that wait for the answer to its request. The server
        // receives the end after them; otherwise it might never answer and the session never end. A step of a login
        // that is being computed elsewhere completes, and the server still gets its result.
        if direction == .send, end == .finished, context.directions.send.isHeld,
            context.negotiation.bridged?.computing == nil
        {
            context.release(.send)
        }
        // The client has gone before the server is connected: the end cannot be passed on.
        if direction == .send, !context.negotiation.isConnected, end != .finished { context.finish(reset: true) }
    }

    private mutating func decrypts(_ details: Attributes, _ consentFollows: Bool) {
        startTLS.decrypt(details, &context)
        if isJoined {
            // A login begins, regardless of the state before.
            isJoined = false
            context.login = LoginObserver()
            context.negotiation.reopen()
        }
        guard !consentFollows else { return }
        context.finishStep(.tls, .ok, details: details)
        context.negotiation.enterTLS()
        for direction in Direction.allCases where context.directions[direction].received > 0 {
            giveUpItem(direction)
            context.directions[direction].enterTLS()
        }
    }

    private mutating func join(_ inTLS: Bool) {
        isJoined = context.negotiation.open()
        context.login = nil
        context.finishStep(.connect, .skipped("before the capture began"))
        guard inTLS else { return }
        context.finishStep(.tls, .skipped("TLS began before the capture and is not decrypted"))
        context.negotiation.turnOpaque(nil)
        for direction in Direction.allCases { turnOpaque(direction, .tls) }
    }

    /// Gives up the incomplete item of a direction.
    private mutating func giveUpItem(_ direction: Direction) {
        if !context.directions[direction].isOpaque, let event = context.directions[direction].finish() {
            handle(event, direction)
        }
    }

    private mutating func missed(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
        guard !context.negotiation.isFinished else { return }
        giveUpItem(direction)
        context.login?.observe(.gap)
        var record = context.makeRecord(.bytes, .warn, part: .net)
        record.code = Self.missedCode
        record.direction = direction
        record.leg = direction.source
        record.offset = context.directions[direction].received
        record.length = count
        let bytes = "\(count) byte\(count == 1 ? "" : "s")"
        record.message =
            isSkipped
            ? "\(bytes) skipped: the middle of an item, whose beginning was not captured"
            : "\(bytes) not captured; the item they belong to is incomplete"
        context.emit(consume record)
        // The counts of the peers include stanzas that were not captured.
        context.outlet.count(in: nil)
        if case .opaque(.tls, _) = context.directions[direction].mode { return }
        context.directions[direction].enterTLS()
    }

    /// The code of a record of bytes that were not captured.
    static let missedCode = "bytes-missed"

    /// Ends the session without sending anything to either end.
    private mutating func stop(_ ending: SessionInfo.Ending) {
        guard !context.negotiation.isFinished else { return }
        if context.info.ending == nil { context.info.ending = ending }
        context.finish(reset: false)
    }

    /// When ``SessionInput/tick`` is required, in nanoseconds of the run; nil without a time limit. Each call may
    /// change it.
    public var nextDeadline: Int64? {
        guard !context.negotiation.isFinished else { return nil }
        if let answerDeadline = context.answerDeadline { return answerDeadline }
        var next = min(loginDeadline ?? .max, idleDeadline ?? .max, injector.deadline ?? .max)
        next = min(next, context.rules?.deadline ?? .max, context.streamManagement?.deadline ?? .max)
        return next == .max ? nil : next
    }

    private var loginDeadline: Int64? {
        isPastLogin ? nil : context.options.loginTime.map { context.info.began.monotonic &+ $0 }
    }

    private var idleDeadline: Int64? { context.options.idleTime.map { liveness.lastReceived &+ $0 } }

    /// The time limit that the session has passed, with a sentence; nil if none.
    private var overdue: (limit: SessionCounters.Limit, words: String)? {
        guard context.answerDeadline == nil, !context.negotiation.isFinished else { return nil }
        if let limit = context.options.loginTime, let loginDeadline, context.now.monotonic >= loginDeadline {
            return (.login, "No login within \(Self.words(limit)) (limit login).")
        }
        guard let limit = context.options.idleTime, let idleDeadline, context.now.monotonic >= idleDeadline else {
            return nil
        }
        return (.idle, "No data for \(Self.words(limit)) (limit idle).")
    }

    /// Formats nanoseconds as seconds, in the shortest form.
    static func words(_ time: Int64) -> String {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest == 0 ? "\(seconds) s" : "\(time / 1_000_000) ms"
    }

    private mutating func tick() {
        if let (limit, words) = overdue {
            context.counters.count(.limitHit(limit))
            abort(.connectionTimeout, words, "aborted")
        }
        if let answerDeadline = context.answerDeadline, context.now.monotonic >= answerDeadline {
            context.finish(reset: false)
        }
        if let ping = injector.tick(&context) { inject(ping) }
        context.streamManagement?.expire(at: context.now.monotonic)
    }

    /// Whether the login is over: the session is open, only verifies keys of dialback, or is not decodable and both
    /// sides have sent bytes since.
    ///
    /// TLS passed through counts from the server's ServerHello that answers a complete ClientHello.
    public var isPastLogin: Bool {
        if context.info.opened != nil || context.negotiation.passedTLS?.isAnswered == true { return true }
        guard let login = context.login else { return false }
        if login.hasVerified { return true }
        // A server that has answered with the end of its stream or its connection has not accepted the login.
        return context.directions.recv.end == nil && !context.directions.recv.hasClosedStream
            && login.hasExchange(sent: context.directions.send.received, received: context.directions.recv.received)
    }

    /// Whether the leg may be read: false while its bytes must wait. Reported by ``Command/read(_:_:)``.
    func wantsBytes(from leg: Leg) -> Bool {
        if let tls = termination.negotiation { return tls.reads(leg) }
        let direction = leg.inbound
        guard context.directions[direction].isStoring else { return true }
        let isWaiting =
            context.directions[direction].isHeld || context.directions[direction].isDelayed
            || leg == .client && context.negotiation.isAwaitingServer
        guard isWaiting else { return true }
        return context.directions[direction].waiting < context.options.waitingBytes
    }

    /// Whether the buffer for a leg is full.
    func isFull(_ leg: Leg) -> Bool {
        let waiting =
            termination.negotiation.map { $0.kept(leg.inbound).count } ?? context.directions[leg.inbound].waiting
        return waiting >= context.options.waitingBytes
    }
}

internal import TapDiagnosis
package import TapRecord
import XMPPCore

// The inputs of a session from its driver.
extension Session {
    /// Handles an input. The resulting commands are returned by ``next()``.
    package mutating func handle(_ input: SessionInput, at now: Run.Instant) {
        leaveIfFinished()
        context.now = now
        switch input {
        case .attempted(let step): context.record(step)
        case .chose(let domain): context.chosenDomain = domain
        case .connected(let address, let since, let beginsWithTLS):
            if beginsWithTLS { context.negotiation.asymmetric?.serverBeginsWithTLS() }
            context.connected(address, since)
        case .connectionFailed(let reason, let fault): context.connectionFailed(reason, fault)
        case .took(let step, let outcome): took(step, outcome, at: context.now)
        case .computed(let step): computed(step)
        case .ended(let leg, let end, let failure):
            perform(termination.handle(failure.map { .ended(leg, $0) } ?? .stopped(nil), &context))
            context.ended(leg, end)
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
        case .stop: context.stop(.stopped)
        case .unrecorded: context.stop(.unrecorded)
        case .closed: if !context.negotiation.isClosed { finishRecords() }
        }
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
    package mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, at now: Run.Instant) -> Disposition {
        context.now = now
        guard !bytes.isEmpty, !context.negotiation.isFinished else { return .keep }
        if termination.isNegotiating || context.directions[direction].received == 0,
            performs(termination.receive(direction, bytes, &context))
        {
            return .keep
        }
        if context.options.level >= .trace { context.recordChunk(direction, bytes) }
        let isFirst = context.directions[direction].count(bytes.count)
        liveness.observe(.received, at: context.now.monotonic)
        context.info.count(bytes: UInt64(bytes.count), direction)
        if isFirst {
            context.lookAtFirstBytes(direction, bytes)
            if context.negotiation.isFinished { return .keep }
        }
        if case .opaque(let why, _) = context.directions[direction].mode {
            context.lookIntoOpaque(direction, bytes)
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

    private mutating func decrypts(_ details: Attributes, _ consentFollows: Bool) {
        startTLS.decrypt(details, &context)
        streams.beginLogin(&context)
        guard !consentFollows else { return }
        context.finishStep(.tls, .ok, details: details)
        context.negotiation.enterTLS()
        for direction in Direction.allCases where context.directions[direction].received > 0 {
            giveUpItem(direction)
            context.directions[direction].enterTLS()
        }
    }

    private mutating func join(_ inTLS: Bool) {
        streams.join(&context)
        context.finishStep(.connect, .skipped("before the capture began"))
        guard inTLS else { return }
        context.finishStep(.tls, .skipped("TLS began before the capture and is not decrypted"))
        context.negotiation.turnOpaque(nil)
        for direction in Direction.allCases { context.turnOpaque(direction, .tls) }
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
        context.recordMissed(direction, count, isSkipped)
        // The counts of the peers include stanzas that were not captured.
        context.outlet.count(in: nil)
        if case .opaque(.tls, _) = context.directions[direction].mode { return }
        context.directions[direction].enterTLS()
    }

    /// When ``SessionInput/tick`` is required, in nanoseconds of the run; nil without a time limit. Each call may
    /// change it.
    package var nextDeadline: Int64? {
        guard !context.negotiation.isFinished else { return nil }
        if let answerDeadline = context.answerDeadline { return answerDeadline }
        var next = min(
            context.loginDeadline ?? .max,
            context.idleDeadline(liveness.lastReceived) ?? .max,
            injector.deadline ?? .max
        )
        next = min(next, context.rules?.deadline ?? .max, context.streamManagement?.deadline ?? .max)
        return next == .max ? nil : next
    }

    private mutating func tick() {
        if let (limit, words) = context.overdue(liveness.lastReceived) {
            context.counters.count(.limitHit(limit))
            abort(.connectionTimeout, words, "aborted")
        }
        if let answerDeadline = context.answerDeadline, context.now.monotonic >= answerDeadline {
            context.finish(reset: false)
        }
        // Unsent stanzas of rules are left to the next connection before they can expire.
        leaveIfFinished()
        if let ping = injector.tick(&context) { inject(ping) }
        context.streamManagement?.expire(at: context.now.monotonic)
    }

    /// Whether the login is over: the session is open, only verifies keys of dialback, or is not decodable and both
    /// sides have sent bytes since.
    ///
    /// TLS passed through counts from the server's ServerHello that answers a complete ClientHello.
    package var isPastLogin: Bool { context.isPastLogin }

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

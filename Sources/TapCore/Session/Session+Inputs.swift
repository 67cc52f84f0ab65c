internal import TapDiagnosis
package import TapRecord
import XMPPCore

// The inputs of a session from its driver.
extension Session {
    /// Handles an input. The resulting commands are returned by ``next()``.
    package mutating func handle(_ input: SessionInput, at now: Run.Instant) {
        self.now = now
        switch input {
        case .attempted(let step): made(step)
        case .chose(let domain): chosenDomain = domain
        case .connected(let address, let since, let beginsWithTLS):
            if beginsWithTLS { negotiation.asymmetric?.serverBeginsWithTLS() }
            connected(address, since)
        case .connectionFailed(let reason, let fault): connectionFailed(reason, fault)
        case .took(let step, let outcome): took(step, outcome, at: now)
        case .computed(let step): computed(step)
        case .ended(let leg, let end, let failure):
            perform(termination.handle(failure.map { .ended(leg, $0) } ?? .stopped(nil), negotiation, &context))
            ended(leg, end)
        case .joined(let inTLS): join(inTLS)
        case .decrypts(let details, let consentFollows): decrypts(details, consentFollows)
        case .remark(let direction, let code, let words):
            login?.observe(.gap)
            note(code: code, words, direction: direction, part: .tls)
        case .missed(let direction, let count, let isSkipped): missed(direction, count, isSkipped)
        case .incomplete: login?.observe(.gap)
        case .tls(let leg, let event): perform(termination.handle(event, leg, negotiation, &context))
        case .identityFound(let isServersOwn):
            perform(termination.handle(.found(isServersOwn: isServersOwn), negotiation, &context))
        case .identityNotFound(let failure): perform(termination.handle(.notFound(failure), negotiation, &context))
        case .inject(let injection): inject(injection)
        case .displaced(let session): giveUp(to: session)
        case .displaces: streamManagement?.endWaiting(for: .displacement)
        case .searchedJournal(let marks, let isFound):
            streamManagement?.endWaiting(for: .journal(marks), isInJournal: isFound)
        case .rules(let set): replaceRules(by: set)
        case .pause(let pause): self.pause(pause)
        case .release(let number, let release): releaseHeld(number, release)
        case .shared(let answer): handle(answer)
        case .tick: tick()
        case .abort(let condition, let text, let code): abort(condition, text, code)
        case .stop: stop(.stopped)
        case .unrecorded: stop(.unrecorded)
        case .closed: if !negotiation.isClosed { finishRecords() }
        }
    }

    private mutating func connected(_ address: String, _ since: Run.Instant?) {
        negotiation.connected()
        context.directions.send.hasInput = true
        note(.session, .trace, code: "server-connected", "connected to \(address)", part: .net)
        if !timeline.has(.connect) {
            finish(.connect, .ok, since: since?.monotonic, details: ["address": .string(address)])
        }
    }

    private mutating func connectionFailed(_ reason: String, _ fault: ConnectionFault) {
        login?.observe(.unreachable(fault, Prose(reason)))
        if !timeline.hasFailure { finish(.connect, .failed(Prose(reason))) }
        note(.error, .error, code: "server-unreachable", Prose(reason), condition: .remoteConnectionFailed, part: .net)
        refuse(.remoteConnectionFailed, "Cannot connect to the server.")
    }

    private mutating func abort(_ condition: StreamErrorCondition, _ text: String, _ code: String) {
        guard !negotiation.isFinished, !negotiation.isRefusing else { return }
        if termination.isNegotiating {
            let failure = TLSFailure(code: "tls-timeout", "\(Prose(text).clause)")
            return perform(termination.handle(.stopped(failure), negotiation, &context))
        }
        login?.observe(.refused(Prose(text)))
        note(.error, .error, code: code, Prose(text), condition: condition, part: .session)
        refuse(condition, text)
    }

    /// Handles received bytes.
    package mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, at now: Run.Instant) -> Disposition {
        self.now = now
        guard !bytes.isEmpty, !negotiation.isFinished else { return .keep }
        if termination.isNegotiating || context.directions[direction].received == 0,
            performs(termination.receive(direction, bytes, negotiation, &context))
        {
            return .keep
        }
        if options.level >= .trace { traceChunk(direction, bytes) }
        let isFirst = context.directions[direction].count(bytes.count)
        liveness.observe(.received, at: context.now.monotonic)
        info.count(bytes: UInt64(bytes.count), direction)
        if isFirst {
            lookAtFirstBytes(direction, bytes)
            if negotiation.isFinished { return .keep }
        }
        if case .opaque(let why, _) = context.directions[direction].mode {
            lookIntoOpaque(direction, bytes)
            if negotiation.isFinished || drops(why) { return .keep }
        }
        if let rules, context.directions[direction].isDelayed {
            let end = context.directions[direction].arrived + UInt64(bytes.count)
            rules[direction].noteArrival(upTo: end, at: context.now.monotonic)
        }
        if context.directions[direction].isCutThrough {
            if !context.directions[direction.opposite].hasInput { leading = direction }
            context.directions[direction].arrival = now
        }
        return context.directions[direction].take(bytes)
    }

    mutating func ended(_ leg: Leg, _ end: LegEnd) {
        let direction = leg.inbound
        guard !negotiation.isFinished else { return }
        if context.directions[direction].end == .finished, end != .finished {
            // The peer had only half-closed; now the connection is broken, and nothing can reach the peer.
            return finish(reset: !hasEndedInOrder(direction))
        }
        guard context.directions[direction].end == nil else { return }
        context.directions[direction].end = end
        context.directions[direction].hasInput = true
        // A half-closed client cannot start TLS: release the items that wait for the answer to its request. The server
        // receives the end after them; otherwise it might never answer and the session never end. A step of a login
        // that is being computed elsewhere completes, and the server still gets its result.
        if direction == .send, end == .finished, context.directions.send.isHeld, negotiation.bridged?.computing == nil {
            release(.send)
        }
        // The client has gone before the server is connected: the end cannot be passed on.
        if direction == .send, !negotiation.isConnected, end != .finished { finish(reset: true) }
    }

    private mutating func decrypts(_ details: Attributes, _ consentFollows: Bool) {
        startTLS.decrypt(details, &context)
        if isJoined {
            // A login begins, regardless of the state before.
            isJoined = false
            login = LoginObserver()
            negotiation.reopen()
        }
        guard !consentFollows else { return }
        finish(.tls, .ok, details: details)
        negotiation.enterTLS()
        for direction in Direction.allCases where context.directions[direction].received > 0 {
            giveUpItem(direction)
            context.directions[direction].enterTLS()
        }
    }

    private mutating func join(_ inTLS: Bool) {
        isJoined = negotiation.open()
        login = nil
        finish(.connect, .skipped("before the capture began"))
        guard inTLS else { return }
        finish(.tls, .skipped("TLS began before the capture and is not decrypted"))
        negotiation.turnOpaque(nil)
        for direction in Direction.allCases { turnOpaque(direction, .tls) }
    }

    /// Gives up the incomplete item of a direction.
    private mutating func giveUpItem(_ direction: Direction) {
        if !context.directions[direction].isOpaque, let event = context.directions[direction].finish() {
            handle(event, direction)
        }
    }

    private mutating func missed(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
        guard !negotiation.isFinished else { return }
        giveUpItem(direction)
        login?.observe(.gap)
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
        guard !negotiation.isFinished else { return }
        if info.ending == nil { info.ending = ending }
        finish(reset: false)
    }

    /// The time in nanoseconds for a refused client to open its stream, in which it receives the stream error.
    static let answerTime: Int64 = 10_000_000_000

    /// When ``SessionInput/tick`` is required, in nanoseconds of the run; nil without a time limit. Each call may
    /// change it.
    package var nextDeadline: Int64? {
        guard !negotiation.isFinished else { return nil }
        if let answerDeadline { return answerDeadline }
        var next = min(loginDeadline ?? .max, idleDeadline ?? .max, injections?.deadline ?? .max)
        next = min(next, pings.deadline ?? .max, rules?.deadline ?? .max, streamManagement?.deadline ?? .max)
        return next == .max ? nil : next
    }

    private var loginDeadline: Int64? { isPastLogin ? nil : options.loginTime.map { info.began.monotonic &+ $0 } }

    private var idleDeadline: Int64? { options.idleTime.map { liveness.lastReceived &+ $0 } }

    /// The time limit that the session has passed, with a sentence; nil if none.
    private var overdue: (limit: SessionCounters.Limit, words: String)? {
        guard answerDeadline == nil, !negotiation.isFinished else { return nil }
        if let limit = options.loginTime, let loginDeadline, context.now.monotonic >= loginDeadline {
            return (.login, "No login within \(Self.words(limit)) (limit login).")
        }
        guard let limit = options.idleTime, let idleDeadline, context.now.monotonic >= idleDeadline else { return nil }
        return (.idle, "No data for \(Self.words(limit)) (limit idle).")
    }

    /// Formats nanoseconds as seconds, in the shortest form.
    static func words(_ time: Int64) -> String {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest == 0 ? "\(seconds) s" : "\(time / 1_000_000) ms"
    }

    private mutating func tick() {
        if let (limit, words) = overdue {
            counters.count(.limitHit(limit))
            abort(.connectionTimeout, words, "aborted")
        }
        if let answerDeadline, context.now.monotonic >= answerDeadline { finish(reset: false) }
        if let injections { expire(injections) }
        if let ping = pings.advance(isOver: negotiation.isFinished, &context) { inject(ping) }
        streamManagement?.expire(at: context.now.monotonic)
    }

    /// Resumes a held direction, unless a request to resume is still delayed: it was not forwarded.
    mutating func release(_ direction: Direction) {
        if direction == .send, streamManagement?.isWaiting == true { return }
        context.outlet.passBuffered(of: &context.directions[direction])
        context.directions[direction].release()
    }

    /// Holds a direction that stores items: later items wait, and the leg is not read when the buffer is full. Does
    /// nothing in cut-through: bytes would accumulate although they were already forwarded.
    mutating func hold(_ direction: Direction) {
        if recording == nil { context.directions[direction].hold() }
    }

    /// Whether the login is over: the session is open, only verifies keys of dialback, or is not decodable and both
    /// sides have sent bytes since.
    ///
    /// TLS passed through counts from the server's ServerHello that answers a complete ClientHello.
    package var isPastLogin: Bool {
        if info.opened != nil || negotiation.passedTLS?.isAnswered == true { return true }
        guard let login else { return false }
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
            || leg == .client && negotiation.isAwaitingServer
        guard isWaiting else { return true }
        return context.directions[direction].waiting < options.waitingBytes
    }

    /// Whether the buffer for a leg is full.
    func isFull(_ leg: Leg) -> Bool {
        let waiting =
            termination.negotiation.map { $0.kept(leg.inbound).count } ?? context.directions[leg.inbound].waiting
        return waiting >= options.waitingBytes
    }
}

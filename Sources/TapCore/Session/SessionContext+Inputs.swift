internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Connections and their ends, and time limits.
extension SessionContext {
    /// Handles an input of the driver that concerns no component of the session.
    mutating func handle(_ input: SessionInput) {
        switch input {
        case .attempted(let step): record(step)
        case .chose(let domain): chosenDomain = domain
        case .connected(let address, let since, let beginsWithTLS):
            if beginsWithTLS { negotiation.asymmetric?.serverBeginsWithTLS() }
            connected(address, since)
        case .connectionFailed(let reason, let fault): connectionFailed(reason, fault)
        case .took(let step, let outcome): finishStep(step, outcome)
        case .blamed(let diagnosis): login?.observe(.blamed(diagnosis))
        case .remark(let direction, let code, let words):
            login?.observe(.gap)
            report(code: code, words, direction: direction, part: .tls)
        case .incomplete: login?.observe(.gap)
        case .displaced(let session): closeSuperseded(by: session)
        case .displaces: streamManagement?.endWaiting(for: .displacement)
        case .searchedJournal(let marks, let isFound):
            streamManagement?.endWaiting(for: .journal(marks), isInJournal: isFound)
        case .pause(let pause): self.pause(pause)
        case .release(let number, let release):
            if let rules {
                rules.releaseHeld(number, release, &self)
            } else {
                SessionRules.reportNotHeld(number, &self)
            }
        case .stop: stop(.stopped)
        case .unrecorded: stop(.unrecorded)
        // Session handles these.
        case .computed, .joined, .decrypts, .missed, .ended, .tls, .identityFound, .identityNotFound, .inject, .rules,
            .shared, .tick, .abort, .closed:
            assertionFailure("an input that a component handles")
        }
    }

    /// Handles received bytes of a direction, which its counts include.
    mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, isFirst: Bool) -> Disposition {
        if isFirst {
            lookAtFirstBytes(direction, bytes)
            if negotiation.isFinished { return .keep }
        }
        if case .opaque(let why, _) = directions[direction].mode {
            lookIntoOpaque(direction, bytes)
            if negotiation.isFinished || drops(why) { return .keep }
        }
        if let rules, directions[direction].isDelayed {
            let end = directions[direction].arrived + UInt64(bytes.count)
            rules[direction].storeArrivalTime(upTo: end, at: now.monotonic)
        }
        if directions[direction].isCutThrough { directions[direction].arrival = now }
        return directions[direction].receive(bytes)
    }

    private mutating func connected(_ address: String, _ since: Run.Instant?) {
        negotiation.connected()
        directions.send.hasInput = true
        report(.session, .trace, code: "server-connected", "connected to \(address)", part: .net)
        if !timeline.has(.connect) {
            finishStep(.connect, .ok, since: since?.monotonic, details: ["address": .string(address)])
        }
    }

    private mutating func connectionFailed(_ reason: String, _ fault: ConnectionFault) {
        login?.observe(.unreachable(fault, Prose(reason)))
        if !timeline.hasFailure { finishStep(.connect, .failed(Prose(reason))) }
        report(
            .error,
            .error,
            code: "server-unreachable",
            Prose(reason),
            condition: .remoteConnectionFailed,
            part: .net
        )
        refuse(.remoteConnectionFailed, "Cannot connect to the server.")
    }

    mutating func ended(_ leg: Leg, _ end: LegEnd) {
        let direction = leg.inbound
        guard !negotiation.isFinished else { return }
        if directions[direction].end == .finished, end != .finished {
            // The peer had only half-closed; now the connection is broken, and nothing can reach the peer.
            return finish(reset: !hasEndedInOrder(direction))
        }
        guard directions[direction].end == nil else { return }
        directions[direction].end = end
        directions[direction].hasInput = true
        // A half-closed client cannot start TLS: release the items that wait for the answer to its request. The server
        // receives the end after them; otherwise it might never answer and the session never end. A step of a login
        // that is being computed elsewhere completes, and the server still gets its result.
        if direction == .send, end == .finished, directions.send.isHeld,
            negotiation.bridged?.isComputing != true
        {
            release(.send)
        }
        // The client has gone before the server is connected: the end cannot be passed on.
        if direction == .send, !negotiation.isConnected, end != .finished { finish(reset: true) }
    }

    /// Bytes of a direction were not captured.
    mutating func recordGap(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
        guard !negotiation.isFinished else { return }
        login?.observe(.gap)
        recordMissed(direction, count, isSkipped)
        // The counts of the peers include stanzas that were not captured.
        outlet.count(in: nil)
        if case .opaque(.tls, _) = directions[direction].mode { return }
        directions[direction].enterTLS()
    }

    private mutating func recordMissed(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
        var record = makeRecord(.bytes, .warn, part: .net)
        record.code = "bytes-missed"
        record.direction = direction
        record.leg = direction.source
        record.offset = directions[direction].received
        record.length = count
        let bytes = "\(count) byte\(count == 1 ? "" : "s")"
        record.message =
            isSkipped
            ? "\(bytes) skipped: the middle of an item, whose beginning was not captured"
            : "\(bytes) not captured; the item they belong to is incomplete"
        emit(consume record)
    }

    /// Ends the session without sending anything to either end.
    private mutating func stop(_ ending: SessionInfo.Ending) {
        guard !negotiation.isFinished else { return }
        if info.ending == nil { info.ending = ending }
        finish(reset: false)
    }

    // MARK: Time limits

    /// The next time limit, in nanoseconds of the run, if nothing arrives after `last`; the largest number without one.
    func deadline(_ last: Int64) -> Int64 {
        if let answerDeadline { return answerDeadline }
        let limit = min(loginDeadline ?? .max, idleDeadline(last) ?? .max)
        return min(limit, rules?.deadline ?? .max, streamManagement?.deadline ?? .max)
    }

    /// When a login is given up.
    private var loginDeadline: Int64? {
        isPastLogin ? nil : options.loginTime.map { info.began.monotonic &+ $0 }
    }

    /// When a silent session is ended, if nothing arrives after `last`.
    private func idleDeadline(_ last: Int64) -> Int64? { options.idleTime.map { last &+ $0 } }

    /// The time limit that the session has passed, with a sentence; nil if none.
    func overdue(_ last: Int64) -> (limit: SessionCounters.Limit, words: String)? {
        guard answerDeadline == nil, !negotiation.isFinished else { return nil }
        if let limit = options.loginTime, let loginDeadline, now.monotonic >= loginDeadline {
            return (.login, "No login within \(Self.words(limit)) (limit login).")
        }
        guard let limit = options.idleTime, let idleDeadline = idleDeadline(last), now.monotonic >= idleDeadline else {
            return nil
        }
        return (.idle, "No data for \(Self.words(limit)) (limit idle).")
    }

    /// Formats nanoseconds as seconds, in the shortest form.
    static func words(_ time: Int64) -> String {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest == 0 ? "\(seconds) s" : "\(time / 1_000_000) ms"
    }

    /// Whether the login is over: the session is open, only verifies keys of dialback, or is not decodable and both sides
    /// have sent bytes since.
    ///
    /// TLS passed through counts from the server's ServerHello that answers a complete ClientHello.
    var isPastLogin: Bool {
        if info.opened != nil || negotiation.passedTLS?.isAnswered == true { return true }
        guard let login else { return false }
        if login.hasVerified { return true }
        // A server that has answered with the end of its stream or its connection has not accepted the login.
        return directions.recv.end == nil && !directions.recv.hasClosedStream
            && login.hasExchange(sent: directions.send.received, received: directions.recv.received)
    }
}

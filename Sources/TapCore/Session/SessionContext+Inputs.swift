internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Handles connections, the ends of connections, and time limits.
extension SessionContext {
    /// Handles an input of the driver that no component handles.
    mutating func handle(_ input: SessionInput) {
        switch input {
        case .attempted(let step): record(step)
        case .chose(let domain): chosenDomain = domain
        case .connected(let address, let since, let beginsWithTLS):
            if beginsWithTLS { negotiation.asymmetric?.serverBeginsWithTLS() }
            connected(address, since)
        case .upgraded(let upgrade): upgraded(upgrade)
        case .upgradeFailed(let failure): upgradeFailed(failure)
        case .bosh(let event): handle(event)
        case .connectionFailed(let reason, let fault): connectionFailed(reason, fault)
        case .finishedStep(let step, let outcome): finishStep(step, outcome)
        case .blamed(let diagnosis): login?.observe(.blamed(diagnosis))
        case .remark(let direction, let code, let message):
            login?.observe(.gap)
            report(code: code, message, direction: direction, part: .tls)
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
            .tick, .abort, .closed:
            assertionFailure("an input that a component handles")
        }
    }

    /// Handles the received bytes of a direction, which are counted already.
    ///
    /// - Parameter records: The offsets in the bytes at which further TLS records begin; nil without TLS.
    mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, records: [Int]?) -> Disposition {
        let isFirst = directions[direction].count(bytes.count)
        info.count(bytes: UInt64(bytes.count), direction)
        if isFirst, !isOfMessages {
            inspectFirstBytes(direction, bytes)
            if negotiation.isFinished { return .keep }
        }
        if case .opaque(let why, _) = directions[direction].mode {
            inspectUndecoded(direction, bytes)
            if negotiation.isFinished || drops(why) { return .keep }
        }
        if let rules, directions[direction].isDelayed {
            let end = directions[direction].arrived + UInt64(bytes.count)
            rules[direction].storeArrivalTime(upTo: end, at: now.monotonic)
        }
        if directions[direction].isCutThrough { directions[direction].arrival = now }
        return directions[direction].receive(bytes, records: records)
    }

    /// Whether bytes of a direction were forwarded on arrival, and none of the other direction wait to be decoded.
    func isFirstToArrive(_ direction: Direction) -> Bool {
        directions[direction].isCutThrough && !directions[direction.opposite].hasInput
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
        reportUnreachable(reason, fault)
        refuse(.remoteConnectionFailed, "Cannot connect to the server.")
    }

    /// Records that the server cannot be reached, as the reason for the failed login.
    mutating func reportUnreachable(_ reason: String, _ fault: ConnectionFault) {
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
    }

    /// Stores that xmpptap ends the session without a connection to the server.
    mutating func endUnconnected() {
        if info.ending == nil { info.ending = .tap(condition: StreamErrorCondition.remoteConnectionFailed.rawValue) }
    }

    mutating func ended(_ leg: Leg, _ end: LegEnd) {
        let direction = leg.inbound
        guard !negotiation.isFinished else { return }
        if directions[direction].end == .finished, end != .finished {
            // The peer had half-closed its connection before. Now the connection is broken, and the peer receives
            // nothing more.
            return finish(reset: !hasEndedInOrder(direction))
        }
        guard directions[direction].end == nil else { return }
        directions[direction].end = end
        directions[direction].hasInput = true
        // A half-closed client cannot start TLS, so release the items that wait for the answer to its request. The
        // server must receive these items and the end: otherwise it might never answer, and the session would never
        // end. A login step that another thread computes is still completed, and the server gets its result.
        if direction == .send, end == .finished, directions.send.isHeld,
            negotiation.bridged?.isComputing != true
        {
            release(.send)
        }
        // The client left before the server was connected, so its end cannot be forwarded.
        if direction == .send, !negotiation.isConnected, end != .finished { finish(reset: true) }
    }

    /// Handles a gap: bytes of a direction that were not captured.
    mutating func recordGap(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
        guard !negotiation.isFinished else { return }
        login?.observe(.gap)
        recordMissed(direction, count, isSkipped)
        // The peers also count the stanzas that were not captured, so xmpptap's counts are no longer right.
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

    /// Ends the session without sending anything to the peers.
    private mutating func stop(_ ending: SessionInfo.Ending) {
        guard !negotiation.isFinished else { return }
        if info.ending == nil { info.ending = ending }
        finish(reset: false)
    }

    // MARK: Time limits

    /// Returns the next time limit, in nanoseconds of the run, if nothing arrives after `last`; `Int64.max` if there is
    /// none.
    func deadline(_ last: Int64) -> Int64 {
        if let answerDeadline { return answerDeadline }
        let limit = min(loginDeadline ?? .max, idleDeadline(last) ?? .max)
        return min(limit, rules?.deadline ?? .max, streamManagement?.deadline ?? .max)
    }

    /// The time limit for the login, in nanoseconds of the run; nil after the login.
    private var loginDeadline: Int64? {
        isPastLogin ? nil : options.loginTime.map { info.began.monotonic &+ $0 }
    }

    /// Returns the time at which a silent session is closed, if nothing arrives after `last`.
    private func idleDeadline(_ last: Int64) -> Int64? { options.idleTime.map { last &+ $0 } }

    /// Returns the time limit that was exceeded, with a sentence for the peers; nil if there is none.
    func overdue(_ last: Int64) -> (limit: SessionCounters.Limit, explanation: String)? {
        guard answerDeadline == nil, !negotiation.isFinished else { return nil }
        if let limit = options.loginTime, let loginDeadline, now.monotonic >= loginDeadline {
            return (.login, "No login within \(Self.format(limit)) (limit login).")
        }
        guard let limit = options.idleTime, let idleDeadline = idleDeadline(last), now.monotonic >= idleDeadline else {
            return nil
        }
        return (.idle, "No data for \(Self.format(limit)) (limit idle).")
    }

    /// Formats a time in nanoseconds, as whole seconds or in milliseconds.
    static func format(_ time: Int64) -> String {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest == 0 ? "\(seconds) s" : "\(time / 1_000_000) ms"
    }

    /// Whether the login is over: the session is open, the stream only verifies dialback keys, or the session cannot be
    /// decoded and both sides have sent bytes since decoding stopped.
    ///
    /// With TLS that is passed through, the login counts as over when the server's ServerHello answers a complete
    /// ClientHello.
    var isPastLogin: Bool {
        if info.opened != nil || negotiation.passedTLS?.isAnswered == true { return true }
        guard let login else { return false }
        if login.hasVerified { return true }
        // A server that answers with the end of its stream or connection has not accepted the login.
        return directions.recv.end == nil && !directions.recv.hasClosedStream
            && login.hasExchange(sent: directions.send.received, received: directions.recv.received)
    }
}

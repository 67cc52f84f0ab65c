internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Connections and their ends, and time limits.
extension SessionContext {
    mutating func connected(_ address: String, _ since: Run.Instant?) {
        negotiation.connected()
        directions.send.hasInput = true
        note(.session, .trace, code: "server-connected", "connected to \(address)", part: .net)
        if !timeline.has(.connect) {
            finishStep(.connect, .ok, since: since?.monotonic, details: ["address": .string(address)])
        }
    }

    mutating func connectionFailed(_ reason: String, _ fault: ConnectionFault) {
        login?.observe(.unreachable(fault, Prose(reason)))
        if !timeline.hasFailure { finishStep(.connect, .failed(Prose(reason))) }
        note(
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

    /// Records bytes that were not captured.
    mutating func recordMissed(_ direction: Direction, _ count: UInt64, _ isSkipped: Bool) {
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
    mutating func stop(_ ending: SessionInfo.Ending) {
        guard !negotiation.isFinished else { return }
        if info.ending == nil { info.ending = ending }
        finish(reset: false)
    }

    // MARK: Time limits

    /// When a login is given up.
    var loginDeadline: Int64? {
        isPastLogin ? nil : options.loginTime.map { info.began.monotonic &+ $0 }
    }

    /// When a silent session is ended, if nothing arrives after `last`.
    func idleDeadline(_ last: Int64) -> Int64? { options.idleTime.map { last &+ $0 } }

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

    /// See ``Session/isPastLogin``.
    var isPastLogin: Bool {
        if info.opened != nil || negotiation.passedTLS?.isAnswered == true { return true }
        guard let login else { return false }
        if login.hasVerified { return true }
        // A server that has answered with the end of its stream or its connection has not accepted the login.
        return directions.recv.end == nil && !directions.recv.hasClosedStream
            && login.hasExchange(sent: directions.send.received, received: directions.recv.received)
    }
}

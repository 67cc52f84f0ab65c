internal import TapRecord
import XMPPCore

// How bytes pass: whole items, as they come, undecoded; and how their end is passed on.
extension Session {
    /// How a session's bytes pass.
    public enum RelayMode: String, Sendable, Hashable, CaseIterable {
        /// In a direction at least, items pass when they are complete.
        case store
        /// In both directions bytes pass as they come.
        case cutThrough = "cut-through"
        /// In a direction at least, bytes are not decoded.
        case opaque
        /// The session is over; its connections are not closed yet.
        case closing
    }

    /// How its bytes pass at this moment.
    public var relayMode: RelayMode {
        if negotiation.isFinished { return .closing }
        if directions.send.isOpaque || directions.recv.isOpaque { return .opaque }
        return directions.send.isCutThrough && directions.recv.isCutThrough ? .cutThrough : .store
    }

    /// Passes bytes as they come from now on, beginning with those of an item that is not complete yet.
    mutating func cutThrough(_ direction: Direction) {
        guard !directions[direction].isCutThrough, !directions[direction].isOpaque else { return }
        if directions[direction].isHeld { release(direction) }
        guard !options.storesAlways, !hasDiverged, !rulesAlter(direction),
            !directions[direction].isDelayed, !directions[direction].isHeld
        else { return }
        directions[direction].enterCutThrough()
        note(
            .note,
            .trace,
            code: "cut-through",
            "from here on, bytes are relayed as they arrive",
            direction: direction,
            part: .net
        )
        flushRest(direction)
    }

    /// Passes items when they are complete, from the next one on: an item of which a part has passed goes on as it comes.
    mutating func storeAndForward(_ direction: Direction) {
        guard directions[direction].isCutThrough else { return }
        directions[direction].leaveCutThrough()
        note(
            .note,
            .trace,
            code: "store-and-forward",
            "from the next item on, items are relayed when they are complete",
            direction: direction,
            part: .net
        )
    }

    /// Passes on what has come of an incomplete item and has not passed, after the commands of the current event.
    mutating func flushRest(_ direction: Direction) {
        if let rest = directions[direction].takeRest() { enqueue(.send(direction.destination, rest)) }
    }

    /// Stops decoding a direction: what waits, and all that comes, passes as it is.
    mutating func turnOpaque(_ direction: Direction, _ why: DirectionRelay.Opacity) {
        guard !directions[direction].isOpaque else { return }
        // It has a record, which is not this event's.
        if let rules, rules[direction].item != nil {
            rules[direction].item?.endWait(why)
            return
        }
        // Like an item that a rule delays, it has a record of its own.
        if direction == .send, endWaiting(why) { return }
        // It is read in its stream, which nobody follows any more.
        if direction == .recv { readRoster() }
        let position = directions[direction].decoder.position
        if why != .tls {
            let (sent, received) = (directions.send.received, directions.recv.received)
            login?.observe(
                direction == .send
                    ? .unread(sent: position, received: received) : .unread(sent: sent, received: position)
            )
        }
        if !drops(why) { flushRest(direction) }
        var rest: [UInt8] = []
        rest.append(directions.pending(direction))
        directions[direction].turnOpaque(why)
        if !rest.isEmpty { lookIntoOpaque(direction, rest.span) }
    }

    /// Passes the end of a leg on as it came.
    mutating func passEnd(_ direction: Direction) {
        guard let end = directions[direction].end, !directions[direction].hasPassedEnd else { return }
        directions[direction].hasPassedEnd = true
        if !directions[direction].isOpaque, !directions[direction].isWaiting {
            if let event = directions[direction].finish() { handle(event, direction) }
            if !directions[direction].isOpaque { flushRest(direction) }
        }
        judgeEnd(direction, end)
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = directions[other].hasPassedEnd || !negotiation.isConnected
            enqueue(.finish(direction.destination))
            // The answer that the other direction waits for will not come any more.
            if direction == .recv, directions[other].isHeld { release(other) }
            if isOtherOver { finish(reset: false) }
        case .reset, .failed: finish(reset: !hasEndedInOrder(direction))
        }
    }

    /// Whether a connection that breaks ends nothing that was not over: the peer behind it had closed its stream, or the
    /// other one had and has sent its FIN. Of a direction that is not decoded the FIN alone is known, and of TLS the alert
    /// before it: a server that closes with bytes unread sends its close_notify and then no FIN, but an RST.
    ///
    /// A reset passed on then would take bytes from the other peer that are on their way to it.
    func hasEndedInOrder(_ direction: Direction) -> Bool {
        let (own, other) = (direction, direction.opposite)
        let hasClosed =
            directions[own].hasClosedStream || directions[own].isOpaque && directions[own].end == .finished
            || negotiation.passedTLS?.endsWithAlert(own) == true
        return hasClosed
            || directions[other].end == .finished && (directions[other].hasClosedStream || directions[other].isOpaque)
    }

    /// Whether bytes are thrown away that come after the end of a stream: where nothing may pass unread.
    func drops(_ why: DirectionRelay.Opacity) -> Bool { why == .ended && refusesUnread }

    /// Ends both legs in order, each with a FIN.
    mutating func finishLegs() {
        enqueue(.finish(.client))
        enqueue(.finish(.server))
        finish(reset: false)
    }

    /// Ends both legs after all that has been written.
    mutating func finish(reset: Bool) {
        tls = nil
        guard negotiation.finish() else { return }
        // Nothing is relayed any more: whoever resumes the session need not wait for its connections.
        endResumption()
        enqueue(.close(reset: reset))
    }
}

internal import TapRecord
import XMPPCore

// Relay modes: whole items, cut-through or undecoded; and how the end of a leg is passed on.
extension Session {
    /// The relay mode of a session.
    package enum RelayMode: String, Sendable, Hashable, CaseIterable {
        /// At least one direction forwards items when they are complete.
        case store
        /// Both directions forward bytes on arrival.
        case cutThrough = "cut-through"
        /// At least one direction is not decoded.
        case opaque
        /// The session is over; its connections are not closed yet.
        case closing
    }

    /// The current relay mode.
    package var relayMode: RelayMode {
        if negotiation.isFinished { return .closing }
        if context.directions.send.isOpaque || context.directions.recv.isOpaque { return .opaque }
        return context.directions.send.isCutThrough && context.directions.recv.isCutThrough ? .cutThrough : .store
    }

    /// Switches to cut-through, beginning with the bytes of an incomplete item.
    mutating func cutThrough(_ direction: Direction) {
        guard !context.directions[direction].isCutThrough, !context.directions[direction].isOpaque else { return }
        if context.directions[direction].isHeld { release(direction) }
        guard !options.storesAlways, !context.outlet.hasDiverged, !rulesAlter(direction),
            !context.directions[direction].isDelayed, !context.directions[direction].isHeld
        else { return }
        context.directions[direction].enterCutThrough()
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

    /// Switches to store-and-forward from the next item: a partly forwarded item continues on arrival.
    mutating func storeAndForward(_ direction: Direction) {
        guard context.directions[direction].isCutThrough else { return }
        context.directions[direction].leaveCutThrough()
        note(
            .note,
            .trace,
            code: "store-and-forward",
            "from the next item on, items are relayed when they are complete",
            direction: direction,
            part: .net
        )
    }

    /// Forwards the received part of an incomplete item, after the commands of the current event.
    mutating func flushRest(_ direction: Direction) {
        context.outlet.passRest(of: &context.directions[direction])
    }

    /// Stops decoding a direction: pending and later bytes are forwarded unchanged.
    mutating func turnOpaque(_ direction: Direction, _ why: DirectionRelay.Opacity) {
        guard !context.directions[direction].isOpaque else { return }
        // Its record is separate from this event's.
        if let rules, rules[direction].item != nil {
            rules[direction].item?.endWait(why)
            return
        }
        // Like an item that a rule delays, it has a separate record.
        if direction == .send, endWaiting(why) { return }
        // The roster must be read in its stream, which is no longer decoded.
        if direction == .recv { roster.read(context) }
        let position = context.directions[direction].decoder.position
        if why != .tls {
            let (sent, received) = (context.directions.send.received, context.directions.recv.received)
            login?.observe(
                direction == .send
                    ? .unread(sent: position, received: received) : .unread(sent: sent, received: position)
            )
        }
        if !drops(why) { flushRest(direction) }
        var rest: [UInt8] = []
        rest.append(context.directions.pending(direction))
        context.directions[direction].turnOpaque(why)
        if !rest.isEmpty { lookIntoOpaque(direction, rest.span) }
    }

    /// Passes on the end of a leg in the same way.
    mutating func passEnd(_ direction: Direction) {
        guard let end = context.directions[direction].end, !context.directions[direction].hasPassedEnd else { return }
        context.directions[direction].hasPassedEnd = true
        if !context.directions[direction].isOpaque, !context.directions[direction].isWaiting {
            if let event = context.directions[direction].finish() { handle(event, direction) }
            if !context.directions[direction].isOpaque { flushRest(direction) }
        }
        judgeEnd(direction, end)
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = context.directions[other].hasPassedEnd || !negotiation.isConnected
            context.outlet.end(direction.destination)
            // The answer that the other direction waits for will never arrive.
            if direction == .recv, context.directions[other].isHeld { release(other) }
            if isOtherOver { finish(reset: false) }
        case .reset, .failed: finish(reset: !hasEndedInOrder(direction))
        }
    }

    /// Whether a broken connection follows an orderly end: its peer had closed its stream, or the other one had and has
    /// sent its FIN. For an undecoded direction only the FIN is known, and for TLS the alert before it: a server that
    /// closes with unread bytes sends close_notify and then an RST instead of a FIN.
    ///
    /// A reset passed on then would discard bytes that are still in transit to the other peer.
    func hasEndedInOrder(_ direction: Direction) -> Bool {
        let (own, other) = (direction, direction.opposite)
        let hasClosed =
            context.directions[own].hasClosedStream
            || context.directions[own].isOpaque && context.directions[own].end == .finished
            || negotiation.passedTLS?.endsWithAlert(own) == true
        return hasClosed
            || context.directions[other].end == .finished
                && (context.directions[other].hasClosedStream || context.directions[other].isOpaque)
    }

    /// Whether an undecodable session is closed: if TLS is required, undecoded bytes could be a login in clear; if both
    /// ends count differently, a wrong count; if rules alter items, an unaltered item.
    var refusesUnread: Bool {
        options.onUnparsable == .close || negotiation.isRefusing || TLSPolicy.legDueTLS(negotiation, options) != nil
            || hasDiverged || rulesAlter(.send) || rulesAlter(.recv)
    }

    /// Whether bytes after the end of a stream are dropped: if undecoded bytes must not be forwarded.
    func drops(_ why: DirectionRelay.Opacity) -> Bool { why == .ended && refusesUnread }

    /// Ends both legs in order, each with a FIN.
    mutating func finishLegs() {
        context.outlet.end(.client)
        context.outlet.end(.server)
        finish(reset: false)
    }

    /// Ends both legs after all queued writes.
    mutating func finish(reset: Bool) {
        termination.end()
        guard negotiation.finish() else { return }
        // Relaying has ended: the session that resumes this one need not wait for its connections.
        resumption.end(&roster, injections, &context)
        context.outlet.end(reset: reset)
    }
}

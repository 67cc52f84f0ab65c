internal import TapRecord
import XMPPCore

// Relay modes: whole items, cut-through or undecoded; and how the end of a leg is passed on.
extension Session {
    /// The relay mode of a session.
    public enum RelayMode: String, Sendable, Hashable, CaseIterable {
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
    public var relayMode: RelayMode {
        if context.negotiation.isFinished { return .closing }
        if context.directions.send.isOpaque || context.directions.recv.isOpaque { return .opaque }
        return context.directions.send.isCutThrough && context.directions.recv.isCutThrough ? .cutThrough : .store
    }

    /// Stops decoding a direction: pending and later bytes are forwarded unchanged.
    mutating func turnOpaque(_ direction: Direction, _ why: DirectionRelay.Opacity) {
        guard !context.directions[direction].isOpaque else { return }
        // Its record is separate from this event's.
        if let rules = context.rules, rules[direction].item != nil {
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
            context.login?.observe(
                direction == .send
                    ? .unread(sent: position, received: received) : .unread(sent: sent, received: position)
            )
        }
        if !context.drops(why) { context.flushRest(direction) }
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
            if !context.directions[direction].isOpaque { context.flushRest(direction) }
        }
        judgeEnd(direction, end)
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = context.directions[other].hasPassedEnd || !context.negotiation.isConnected
            context.outlet.end(direction.destination)
            // The answer that the other direction waits for will never arrive.
            if direction == .recv, context.directions[other].isHeld { context.release(other) }
            if isOtherOver { context.finish(reset: false) }
        case .reset, .failed: context.finish(reset: !context.hasEndedInOrder(direction))
        }
    }
}

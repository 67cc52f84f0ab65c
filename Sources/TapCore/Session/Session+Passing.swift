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
        if context.negotiation.isFinished { return .closing }
        if context.directions.send.isOpaque || context.directions.recv.isOpaque { return .opaque }
        return context.directions.send.isCutThrough && context.directions.recv.isCutThrough ? .cutThrough : .store
    }

    /// Passes on the end of a leg in the same way.
    mutating func passEnd(_ direction: Direction) {
        guard let end = context.directions[direction].end, !context.directions[direction].hasPassedEnd else { return }
        context.directions[direction].hasPassedEnd = true
        if !context.directions[direction].isOpaque, !context.directions[direction].isWaiting {
            if let event = context.directions[direction].finish() { handle(event, direction) }
            if !context.directions[direction].isOpaque { context.flushRest(direction) }
        }
        context.judgeEnd(direction, end, unheard(by: direction))
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

    /// Returns the unanswered request of this direction's sender, if any.
    func unheard(by direction: Direction) -> Liveness.Finding? {
        let ping = requests.oldestPing(direction)
        return liveness.unheard(
            by: direction,
            ping: ping,
            isOpen: context.info.opened != nil,
            at: context.now.monotonic
        )
    }
}

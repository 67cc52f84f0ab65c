internal import TapRecord
import XMPPCore

// How bytes pass: whole items, as they come, undecoded; and how their end is passed on.
extension Session {
    /// Passes on an item that is complete, if its bytes have not passed already.
    mutating func forward(_ event: StreamEvent, _ direction: Direction) {
        guard !isRefusing else { return }
        let end = event.position + event.length
        guard end > directions[direction].forwarded, !event.isTruncated else { return }
        directions[direction].forwarded = end
        enqueue(.forward(direction))
    }

    /// Passes on bytes of this program's in the place of an item; false where the item has passed already, or will not.
    mutating func forward(_ event: StreamEvent, _ direction: Direction, as bytes: [UInt8]) -> Bool {
        let end = event.position + event.length
        guard !isRefusing, directions[direction].mode == .store, end > directions[direction].forwarded else {
            return false
        }
        directions[direction].forwarded = end
        enqueue(.send(direction.destination, bytes))
        return true
    }

    /// Whether an item is kept back until ``Session/release(_:)``.
    func shouldHold(_ event: StreamEvent, _ direction: Direction) -> Bool {
        guard options.holdsProceed, direction == .recv, event.head.namespace.namespace == .tls,
            case .startingTLS = phase,
            case .none = tls
        else { return false }
        return isNamed("proceed", event, direction)
    }

    /// Keeps an item back, and all that follows it.
    mutating func holdItem(_ event: StreamEvent, _ direction: Direction) {
        var bytes: [UInt8] = []
        bytes.append(directions.bytes(direction))
        directions[direction].held = bytes
        directions[direction].forwarded = event.position + event.length
        hold(direction)
        enqueue(.held(direction))
    }

    /// Passes bytes as they come from now on, beginning with those of an item that is not complete yet.
    mutating func cutThrough(_ direction: Direction) {
        guard directions[direction].mode == .store else { return }
        if directions[direction].isHeld { release(direction) }
        guard options.onUnparsable == .relay else { return }
        directions[direction].mode = .cutThrough
        note(
            .note,
            .trace,
            code: "cut-through",
            "bytes pass as they come from here on",
            direction: direction,
            part: .net
        )
        flushPending(direction)
    }

    /// Passes on what waits of an incomplete item, after the commands of the current event.
    private mutating func flushPending(_ direction: Direction) {
        let position = directions[direction].decoder.position
        let waiting = directions[direction].waiting
        guard waiting > 0, directions[direction].forwarded <= position else { return }
        var pending: [UInt8] = []
        pending.append(directions.pending(direction))
        directions[direction].forwarded = position + UInt64(waiting)
        enqueue(.send(direction.destination, pending))
    }

    /// Stops decoding a direction: what waits, and all that comes, passes as it is.
    mutating func turnOpaque(_ direction: Direction, _ why: DirectionRelay.Opacity) {
        guard !directions[direction].isOpaque else { return }
        let position = directions[direction].decoder.position
        if why != .tls, let login, login.unreadFrom == nil {
            login.unreadFrom =
                direction == .send
                ? (send: position, recv: directions.recv.received) : (send: directions.send.received, recv: position)
        }
        if !drops(why) { flushPending(direction) }
        var rest: [UInt8] = []
        rest.append(directions.pending(direction))
        directions[direction].mode = .opaque(why)
        directions[direction].opaqueFrom = position
        directions[direction].isHeld = false
        if !rest.isEmpty { lookIntoOpaque(direction, rest.span) }
    }

    /// Passes the end of a leg on as it came.
    mutating func passEnd(_ direction: Direction) {
        guard let end = directions[direction].end, !directions[direction].hasPassedEnd else { return }
        directions[direction].hasPassedEnd = true
        let isHeld = directions[direction].isHeld
        if !directions[direction].isOpaque, !isHeld {
            if let event = directions[direction].decoder.finish() { handle(event, direction) }
            if !directions[direction].isOpaque { flushPending(direction) }
        }
        judgeEnd(direction, end)
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = directions[other].hasPassedEnd || !isConnected
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
            || endsWithAlert(own)
        return hasClosed
            || directions[other].end == .finished && (directions[other].hasClosedStream || directions[other].isOpaque)
    }

    /// Whether bytes are thrown away that come after the end of a stream: where nothing may pass unread.
    func drops(_ why: DirectionRelay.Opacity) -> Bool { why == .ended && refusesUnread }

    /// Ends both legs after all that has been written.
    mutating func finish(reset: Bool) {
        guard !isFinished else { return }
        isFinished = true
        enqueue(.close(reset: reset))
    }
}

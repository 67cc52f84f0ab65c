import XMPPCore

// How bytes pass: whole items, as they come, undecoded; and how their end is passed on.
extension Session {
    /// Passes on an item that is complete, if its bytes have not passed already.
    mutating func forward(_ event: StreamEvent, _ direction: Direction) {
        guard !isRefusing else { return }
        let end = event.position + event.length
        guard end > pipes[direction].forwarded, !event.isTruncated else { return }
        pipes[direction].forwarded = end
        enqueue(.forward(direction))
    }

    /// Passes on bytes of this program's in the place of an item; false where the item has passed already, or will not.
    mutating func forward(_ event: StreamEvent, _ direction: Direction, as bytes: [UInt8]) -> Bool {
        let end = event.position + event.length
        guard !isRefusing, pipes[direction].mode == .store, end > pipes[direction].forwarded else { return false }
        pipes[direction].forwarded = end
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
        bytes.append(pipes.bytes(direction))
        pipes[direction].held = bytes
        pipes[direction].forwarded = event.position + event.length
        hold(direction)
        enqueue(.held(direction))
    }

    /// Passes bytes as they come from now on, beginning with those of an item that is not complete yet.
    mutating func cutThrough(_ direction: Direction) {
        guard pipes[direction].mode == .store else { return }
        if pipes[direction].isHeld { release(direction) }
        guard options.onUnparsable == .relay else { return }
        pipes[direction].mode = .cutThrough
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
        let position = pipes[direction].decoder.position
        let waiting = pipes[direction].waiting
        guard waiting > 0, pipes[direction].forwarded <= position else { return }
        var pending: [UInt8] = []
        pending.append(pipes.pending(direction))
        pipes[direction].forwarded = position + UInt64(waiting)
        enqueue(.send(direction.destination, pending))
    }

    /// Stops decoding a direction: what waits, and all that comes, passes as it is.
    mutating func turnOpaque(_ direction: Direction, _ why: Pipe.Opacity) {
        guard !pipes[direction].isOpaque else { return }
        let position = pipes[direction].decoder.position
        if why != .tls, let login, login.unreadFrom == nil {
            login.unreadFrom =
                direction == .send
                ? (send: position, recv: pipes.recv.received) : (send: pipes.send.received, recv: position)
        }
        if !drops(why) { flushPending(direction) }
        var rest: [UInt8] = []
        rest.append(pipes.pending(direction))
        pipes[direction].mode = .opaque(why)
        pipes[direction].opaqueFrom = position
        pipes[direction].isHeld = false
        if !rest.isEmpty { lookIntoOpaque(direction, rest.span) }
    }

    /// Passes the end of a leg on as it came.
    mutating func passEnd(_ direction: Direction) {
        guard let end = pipes[direction].end, !pipes[direction].hasPassedEnd else { return }
        pipes[direction].hasPassedEnd = true
        let isHeld = pipes[direction].isHeld
        if !pipes[direction].isOpaque, !isHeld {
            if let event = pipes[direction].decoder.finish() { handle(event, direction) }
            if !pipes[direction].isOpaque { flushPending(direction) }
        }
        judgeEnd(direction, end)
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = pipes[other].hasPassedEnd || !isConnected
            enqueue(.finish(direction.destination))
            // The answer that the other direction waits for will not come any more.
            if direction == .recv, pipes[other].isHeld { release(other) }
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
            pipes[own].hasClosedStream || pipes[own].isOpaque && pipes[own].end == .finished || endsWithAlert(own)
        return hasClosed || pipes[other].end == .finished && (pipes[other].hasClosedStream || pipes[other].isOpaque)
    }

    /// Whether bytes are thrown away that come after the end of a stream: where nothing may pass unread.
    func drops(_ why: Pipe.Opacity) -> Bool { why == .ended && refusesUnread }

    /// Ends both legs after all that has been written.
    mutating func finish(reset: Bool) {
        guard !isFinished else { return }
        isFinished = true
        enqueue(.close(reset: reset))
    }
}

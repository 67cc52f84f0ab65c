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

    /// Whether an item is kept back until ``Session/release(_:)``.
    func shouldHold(_ event: StreamEvent, _ direction: Direction) -> Bool {
        options.holdsProceed && direction == .recv && event.head.namespace.namespace == .tls
            && isNamed("proceed", event, direction)
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
        flushPending(direction)
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
        case .reset: finish(reset: true)
        case .failed: finish(reset: true)
        }
    }

    /// Ends both legs after all that has been written.
    mutating func finish(reset: Bool) {
        guard !isFinished else { return }
        isFinished = true
        enqueue(.close(reset: reset))
    }
}

// What this program says for itself: stream errors.
extension Session {
    /// Whether the session only waits for the client's header to answer it with a stream error.
    var isRefusing: Bool {
        if case .refusing = phase { return true }
        return false
    }

    /// Ends the session with a stream error: to the client at once if its header has come, else when it comes. Where
    /// the server's stream is at fault the error goes there, and the client is told that it cannot be served.
    mutating func refuse(_ condition: StreamErrorCondition, _ text: String, fault: Direction = .send) {
        guard !isFinished, !isRefusing else { return }
        if isConnected {
            facts.ending = .tap(condition: condition.rawValue)
            if !pipes.recv.isOpaque, !pipes.send.isOpaque {
                if mayInsert(.recv) {
                    let told = fault == .send ? condition : .internalServerError
                    let before = pipes.recv.decoder.epoch > 0 ? [] : header()
                    enqueue(.send(.client, before + Self.streamError(told, text)))
                }
                if mayInsert(.send), pipes.send.decoder.epoch > 0 {
                    let end = Array("</stream:stream>".utf8)
                    enqueue(.send(.server, fault == .recv ? Self.streamError(condition, text) : end))
                }
            }
            enqueue(.finish(.client))
            enqueue(.finish(.server))
            finish(reset: false)
            return
        }
        phase = .refusing(condition, text)
        if pipes.send.isOpaque { return finish(reset: false) }
        pipes.send.hasInput = true
        if facts.domain != nil { answerRefused() }
    }

    /// Whether what has been passed on ends with a whole item that is not the last, so that another may follow.
    private func mayInsert(_ direction: Direction) -> Bool {
        guard !pipes[direction].hasClosedStream else { return false }
        return pipes[direction].mode == .store || pipes[direction].decoder.isBetweenItems
    }

    /// Answers the header of a client that is refused.
    mutating func answerRefused() {
        guard case .refusing(let condition, let text) = phase, !isFinished else { return }
        facts.ending = .tap(condition: condition.rawValue)
        enqueue(.send(.client, header() + Self.streamError(condition, text)))
        enqueue(.finish(.client))
        finish(reset: false)
    }

    private func header() -> [UInt8] {
        var writer = XMLWriter()
        writer.start(
            "stream:stream",
            xmlns: "jabber:client",
            [
                "xmlns:stream": "http://etherx.jabber.org/streams", "id": "xmpptap-\(number)", "from": facts.domain,
                "version": "1.0",
            ]
        )
        writer.text("")
        return Array("<?xml version='1.0'?>".utf8) + writer.take()
    }

    static func streamError(_ condition: StreamErrorCondition, _ text: String) -> [UInt8] {
        XMLWriter.bytes { xml in
            xml.element("stream:error") {
                $0.element(condition.rawValue, xmlns: "urn:ietf:params:xml:ns:xmpp-streams")
                $0.element("text", xmlns: "urn:ietf:params:xml:ns:xmpp-streams", ["xml:lang": "en"]) { $0.text(text) }
            }
        } + Array("</stream:stream>".utf8)
    }
}

internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Relays bytes, as whole items or on arrival.
extension SessionContext {
    // MARK: Items

    /// Performs a decision. Only this function determines how an item is forwarded.
    mutating func apply(_ decision: ItemDecision, to event: StreamEvent, _ direction: Direction) {
        action = directions[direction].isStoring ? decision.action : nil
        let rule = rules?.ruling?.answers ?? 0
        switch decision {
        // A refused session has no connection to the server.
        case .pass where negotiation.isRefusing: break
        case .pass:
            // If a rule's memory affected the decision, the decision must be repeated when the stanza is retransmitted.
            let isStateful = rules?.ruling?.isStateful == true
            outlet.pass(event, of: &directions[direction], by: isStateful ? rule : nil)
        case .replace(var edited):
            if isOfMessages { edited = edited.qualified }
            self.edited = edited
            outlet.replace(event, of: &directions[direction], with: edited.bytes, by: rule)
        case .buffer(.serverTLS):
            directions[direction].buffer(event)
            hold(direction)
        case .buffer(.features): directions[direction].buffer(event)
        case .buffer(.counts): directions[direction].keep()
        case .buffer(.restart), .drop, .answer: outlet.drop(event, of: &directions[direction], by: rule)
        case .refuse(let refusal):
            if let part = refusal.itemPart { recordItem(event, direction, .element, level: .info, part: part) }
            refuse(refusal)
        case .fault(let fault):
            recordItem(event, direction, event.head.kind == .nonza ? .element : .stanza, level: .info)
            rules?.recordHits(event, direction, &self)
            SessionRules.carryOut(fault, event, direction, &self)
        }
    }

    /// Returns whether both peers have ended, so that the waiting items of a direction will never be forwarded.
    func isStalledForGood(_ direction: Direction) -> Bool {
        directions[direction].end != nil && directions[direction.opposite].hasPassedEnd
            && rules?[direction].isEndless == true
    }

    /// Returns whether the next item of a direction is handled although the direction waits. This is white space after
    /// a request for TLS: it is forwarded with the request, although RFC 6120 §5.3.3 forbids it. go-sendxmpp sends a
    /// line feed after the request, and a server that received it after its consent would mistake it for TLS.
    func passesWhileWaiting(_ direction: Direction) -> Bool {
        guard direction == .send, negotiation.isStartingTLS, !directions.send.isDelayed else { return false }
        let pending = directions.pending(.send)
        return !pending.isEmpty && [0x20, 0x09, 0x0A, 0x0D].contains(pending[0])
    }

    /// Passes the end of a leg on to the other leg: a FIN as a FIN, a reset as a reset.
    mutating func pass(_ end: LegEnd, _ direction: Direction) {
        switch end {
        case .finished:
            let other = direction.opposite
            let isOtherOver = directions[other].hasPassedEnd || !negotiation.isConnected
            outlet.end(direction.destination)
            // The answer that the other direction waits for will never arrive.
            if direction == .recv, directions[other].isHeld { release(other) }
            if isOtherOver { finish(reset: false) }
        case .reset, .failed: finish(reset: !hasEndedInOrder(direction))
        }
    }

    /// Removes and returns the item of a direction that a rule has delayed; nil if there is none, or if TLS has begun
    /// since.
    mutating func takeDelayed(_ direction: Direction, _ rules: SessionRules) -> WaitingItem? {
        guard let item = rules[direction].takeItem() else { return nil }
        directions[direction].endDelay()
        counters.addDelay(now.monotonic &- item.since)
        guard item.event.position + item.event.length == directions[direction].decoder.position else { return nil }
        rules.ruling = item.ruling
        return item
    }

    /// Frees the decoders of opaque directions. Called after the commands that use their bytes.
    mutating func dropIdleDecoders() {
        directions.send.dropIdleDecoder()
        directions.recv.dropIdleDecoder()
    }

    // MARK: Modes

    /// Switches to cut-through mode, and forwards the received part of an incomplete item.
    mutating func cutThrough(_ direction: Direction) {
        guard !directions[direction].isCutThrough, !directions[direction].isOpaque else { return }
        if directions[direction].isHeld { release(direction) }
        guard !options.storesAlways, !outlet.hasDiverged, !rulesAlter(direction),
            !directions[direction].isDelayed, !directions[direction].isHeld, !directions[direction].storesForInjection
        else { return }
        directions[direction].enterCutThrough()
        report(
            .note,
            .trace,
            code: "cut-through",
            "from here on, bytes are relayed as they arrive",
            direction: direction,
            part: .net
        )
        flushRest(direction)
    }

    /// Switches to store-and-forward mode from the next item on. The rest of a partly forwarded item is forwarded on
    /// arrival.
    mutating func storeAndForward(_ direction: Direction) {
        guard directions[direction].isCutThrough else { return }
        directions[direction].leaveCutThrough()
        report(
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
        outlet.passRest(of: &directions[direction])
    }

    /// Resumes a held direction, unless a request to resume the session still waits.
    mutating func release(_ direction: Direction) {
        if direction == .send, streamManagement?.isWaiting == true { return }
        outlet.passBuffered(of: &directions[direction])
        directions[direction].release()
    }

    /// Holds a direction that stores items: later items wait, and the leg is not read while the buffer is full. Does
    /// nothing in cut-through mode, because bytes would accumulate although they were forwarded already.
    mutating func hold(_ direction: Direction) {
        if !options.isRecorded, !options.isBOSH { directions[direction].hold() }
    }

    /// Returns whether a rule can alter items of a direction, which must then be relayed item by item.
    func rulesAlter(_ direction: Direction) -> Bool {
        rules?.canAlter(direction, isRepeating: isRepeating(direction)) ?? false
    }

    /// Returns whether the next stanza of a direction is a retransmission.
    func isRepeating(_ direction: Direction) -> Bool {
        streamManagement?.ledgers[direction].isRepeating == true
    }

    /// Switches an open session between cut-through and store-and-forward mode, as its rules require.
    mutating func updateRelayMode(_ direction: Direction) {
        guard info.opened != nil else { return }
        if rulesAlter(direction) {
            storeAndForward(direction)
        } else if !directions[direction].storesForInjection {
            cutThrough(direction)
        }
    }

    /// Returns whether a broken connection follows an orderly end: its peer had closed the stream, or the other peer
    /// had closed its stream and sent a FIN. In an undecoded direction, only the FIN is visible, or the TLS alert
    /// before it: a server that closes while it has unread bytes sends close_notify, and then an RST instead of a FIN.
    ///
    /// In these cases, passing on the reset would discard bytes that are still in transit to the other peer.
    func hasEndedInOrder(_ direction: Direction) -> Bool {
        let (own, other) = (direction, direction.opposite)
        let hasClosed =
            directions[own].hasClosedStream
            || directions[own].isOpaque && directions[own].end == .finished
            || negotiation.passedTLS?.endsWithAlert(own) == true
        return hasClosed
            || directions[other].end == .finished
                && (directions[other].hasClosedStream || directions[other].isOpaque)
    }

    /// Whether a session that cannot be decoded is closed instead of relayed. If TLS is required, the bytes could be a
    /// login in clear; if the stanza counts have diverged, they could contain wrong counts; if rules alter items, they
    /// could contain items that the rules should have altered.
    var refusesUnread: Bool {
        options.onUnparsable == .close || negotiation.isRefusing || TLSPolicy.legDueTLS(self) != nil
            || outlet.hasDiverged || rulesAlter(.send) || rulesAlter(.recv)
    }

    /// Returns whether bytes that follow the end of a stream are dropped, because undecoded bytes must not be
    /// forwarded.
    func drops(_ why: DirectionRelay.UndecodedReason) -> Bool { why == .ended && refusesUnread }
}

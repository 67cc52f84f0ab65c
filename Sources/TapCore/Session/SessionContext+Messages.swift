internal import TapRecord
import XMPPCore

// Handles the frames of WebSockets (RFC 6455), and messages that are not one element (RFC 7395).
extension SessionContext {
    /// Handles a control frame, or bytes that are not frames; returns false if there are none.
    mutating func handleSignal(_ direction: Direction) -> Bool {
        switch directions[direction].takeSignal() {
        case nil: return false
        case .control(let frame): handle(frame, direction)
        case .fault(let fault): handle(fault, direction)
        }
        return true
    }

    // MARK: Control frames

    private mutating func handle(_ frame: ControlFrame, _ direction: Direction) {
        if !negotiation.isRefusing { outlet.passControl(of: &directions[direction]) }
        if let code = frame.closeCode {
            directions[direction].hasClosedSocket = true
            endsWebSocket(code, frame.reason, direction)
        }
        guard options.level >= .trace else { return }
        var record = makeRecord(.frame, .trace, part: .net)
        record.direction = direction
        record.leg = direction.source
        record.length = UInt64(frame.length)
        switch frame.opcode {
        case .ping: record.code = "ping"
        case .pong: record.code = "pong"
        default: record.code = "close"
        }
        if let code = frame.closeCode {
            record.message = "close\(closeDetail(code, frame.reason))"
            if code != .noStatus { record.details = ["close_code": .integer(Int64(code.rawValue))] }
        } else {
            record.message = "\(frame.opcode == .ping ? "ping" : "pong"), \(frame.length) bytes"
        }
        emit(consume record)
    }

    /// Sends a ping frame to a peer. Its answer is relayed like any other frame, since a pong needs no ping (RFC 6455
    /// §5.5.3).
    mutating func pingWebSocket(_ leg: Leg) {
        outlet.answer(ping: Array("xmpptap".utf8), to: leg)
        guard options.level >= .trace else { return }
        var record = makeRecord(.frame, .trace, part: .inject)
        record.origin = .tap
        record.direction = leg.inbound.opposite
        record.leg = leg
        record.code = "ping"
        record.message = "ping"
        emit(consume record)
    }

    /// Stores how the session ended, if a peer closes the WebSocket before any stream was closed (RFC 7395 §3.6).
    private mutating func endsWebSocket(_ code: WebSocketCloseCode, _ reason: String, _ direction: Direction) {
        guard info.ending == nil, !directions.send.hasClosedStream, !directions.recv.hasClosedStream else { return }
        info.ending = .unclean(leg: direction.source, .finished)
        info.reason = "the \(direction.source.name) closed the WebSocket without <close/>\(closeDetail(code, reason))"
    }

    private func closeDetail(_ code: WebSocketCloseCode, _ reason: String) -> Prose {
        guard code != .noStatus else { return "" }
        let name = code.meaning.map { ", \($0)" } ?? ""
        let detail = reason.isEmpty ? "" : ": \(tools.redactor.disclose(text: reason))"
        return "; code \(code.rawValue)\(name)\(detail)"
    }

    // MARK: Faults

    private mutating func handle(_ fault: WebSocketFault, _ direction: Direction) {
        // After the close frame, the peer's bytes have no effect.
        let isLate = fault.code == .afterClose
        if !isLate { counters.count(.frameError(direction.source, fault.code)) }
        let place = "\(fault.explanation), at byte \(fault.offset) of the WebSocket"
        let outcome =
            switch (refusesUnread, isLate) {
            case (true, false): "session closed"
            case (true, true): "the rest of this direction is dropped"
            case (false, _): "the rest of this direction is relayed without parsing"
            }
        report(
            isLate ? .note : .error,
            isLate ? .verbose : .error,
            code: fault.code.rawValue,
            "\(place); \(outcome)",
            condition: isLate ? nil : .policyViolation,
            direction: direction
        )
        if !isLate { failStep(condition: StreamErrorCondition.policyViolation.rawValue, Prose(fault.explanation)) }
        if negotiation.isRefusing { return finish(reset: false) }
        if refusesUnread, !isLate {
            return refuse(.policyViolation, place, fault: direction, closing: fault.closeCode)
        }
        stopDecoding(direction, isLate ? .ended : .unparsable)
    }

    /// Reports an element without a namespace: ejabberd treats it as a stanza of `jabber:client`, Prosody refuses it. So it
    /// is refused if rules could have altered it.
    mutating func interceptUnqualified(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard isOfMessages, event.item == .element, event.head.namespace.namespace == .none, !negotiation.isRefusing
        else { return nil }
        let message: Prose =
            "an element without xmlns, which RFC 7395 §3.3.3 requires; servers differ in what they do with it"
        guard refusesUnread else {
            report(code: "framing-no-namespace", message, direction: direction)
            outlet.stopCounting()
            return nil
        }
        return .refuse(
            Refusal(
                answer: .streamError(.invalidNamespace, "The element has no namespace.", fault: direction),
                code: "framing-no-namespace",
                message: "\(message); session closed",
                condition: .invalidNamespace,
                direction: direction,
                diagnosis: message
            )
        )
    }

    /// Handles a message that is not one acceptable element, after it was recorded. Only this message is affected: it is
    /// forwarded unchanged, unless rules could have altered an element in it.
    mutating func handleMessageFault(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) {
        // In an ordinary logout, an acknowledgement or a presence may arrive after `<close/>`.
        let isLate = fault.code == .afterStreamEnd
        if refusesUnread, isLate { return outlet.drop(event, of: &directions[direction], by: 0) }
        if refusesUnread {
            return refuse(fault.condition, "\(fault.explanation), at offset \(fault.offset)", fault: direction)
        }
        apply(.pass, to: event, direction)
        action = nil
        // The message may contain stanzas, and receivers differ in whether they accept and count them.
        if !isLate, fault.code != .emptyMessage { outlet.stopCounting() }
    }
}

extension WebSocketCloseCode {
    /// The meaning of the code (RFC 6455 §7.4.1); nil for a code without a registered meaning.
    fileprivate var meaning: StaticString? {
        switch self {
        case .normal: "normal closure"
        case .goingAway: "going away"
        case .protocolError: "protocol error"
        case .unsupportedData: "unsupported data"
        case .invalidPayload: "invalid payload"
        case .policyViolation: "policy violation"
        case .messageTooBig: "message too big"
        case .internalError: "internal error"
        default: nil
        }
    }
}

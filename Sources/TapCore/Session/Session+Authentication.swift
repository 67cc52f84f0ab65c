import XMPPCore

// SASL (RFC 6120 §6) and SASL2 (XEP-0388), as far as relaying and telling them goes.
extension Session {
    mutating func handleSASL(_ event: StreamEvent, _ direction: Direction) {
        guard let element = parse(direction) else {
            return recordItem(event, direction, .element, level: .info, part: .sasl)
        }
        var record = makeRecord(event, direction, .element, level: .info, part: .sasl)
        if direction == .send, element.isNamed("auth") || element.isNamed("authenticate") {
            facts.mechanism = element.attribute("mechanism")
            facts.authentication = .none
            phase = .authenticating
        }
        if direction == .recv, element.isNamed("failure") {
            let condition =
                element.firstChild { $0.namespace == .sasl && !$0.isNamed("text") }?.name ?? "undefined-condition"
            record.level = .error
            record.condition = condition
            record.code = "sasl-failure"
            record.message = element.childText("text", .sasl)
            facts.authentication = .failed(condition: condition)
            phase = .opening
        }
        emit(record)
        guard direction == .recv, element.isNamed("success") else { return }
        facts.authentication = .succeeded
        // Before authentication a stranger had little room; from here on the session has its own.
        for direction in Direction.allCases { pipes[direction].decoder.limits = options.limits }
        guard element.namespace == .sasl2 else { return phase = .restarting }
        phase = .binding
        handleSASL2Success(element, event)
    }

    /// SASL2 has no restart: the success itself may hold what was bound or resumed (XEP-0386, XEP-0198).
    private mutating func handleSASL2Success(_ success: Element, _ event: StreamEvent) {
        let identifier = success.childText("authorization-identifier", .sasl2)
        let isBound = success.firstChild {
            $0.isNamed("bound") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy)
        }
        let isResumed = success.firstChild { $0.isNamed("resumed") && $0.namespace == .streamManagement }
        if let identifier, JID(identifier)?.resource != nil { facts.jid = identifier }
        if isBound != nil { return becomeOpen(event, "bound") }
        if isResumed != nil { becomeOpen(event, "the session is resumed") }
    }
}

internal import TapRecord
import XMPPCore

// Dialback between servers (XEP-0220). Its streams bind no resource: stanzas are relayed once a domain is verified.
extension SessionContext {
    /// A dialback request of one of the two kinds, or the answer to it.
    private struct DialbackStep {
        enum Answer { case none, valid, refused }

        /// Whether the element is `<verify/>`, by which one server asks the other whether it generated a key, and not
        /// `<result/>`, which contains the key.
        var isVerification: Bool
        var answer: Answer
        /// The condition of an error (XEP-0220 §2.4); nil for other answers.
        var condition: String?
        var from: String?
        var to: String?

        var summary: Prose {
            switch (isVerification, answer) {
            case (false, .none): "dialback key for its domain"
            case (false, .valid): "dialback succeeded: the domain is verified"
            case (false, .refused):
                condition == nil ? "dialback failed: the domain is not verified" : "dialback could not be performed"
            case (true, .none): "requests verification of a dialback key"
            case (true, .valid): "the dialback key is valid"
            case (true, .refused):
                condition == nil ? "the dialback key is invalid" : "the dialback key could not be verified"
            }
        }

        /// The two domains, in the order of the request, as the key of the timeline step; nil if they are too long.
        var key: String? {
            let pair = answer == .none ? [from, to] : [to, from]
            let text = pair.map { $0 ?? "" }.joined(separator: " ")
            // Two domains of at most 1023 bytes each (RFC 7622 §3.2), and the space between them.
            return text.utf8.count <= 2047 ? text : nil
        }
    }

    /// Handles a dialback element that was relayed.
    mutating func handleDialback(_ event: StreamEvent, _ direction: Direction) -> [SessionEffect] {
        guard let step = dialbackStep(event, direction) else {
            recordItem(event, direction, .element, level: .info, part: .sasl)
            return []
        }
        let isRefused = step.answer == .refused
        var record = makeRecord(event, direction, .element, level: isRefused ? .error : .info, part: .sasl)
        record.message = step.summary
        record.condition = step.condition
        if isRefused { record.code = "dialback-failed" }
        emit(consume record)
        let loginStep: LoginStep.Name = step.isVerification ? .dialbackVerification : .dialback
        switch step.answer {
        case .none:
            var details: Attributes = [:]
            details["from"] = step.from.map { .string($0) }
            details["to"] = step.to.map { .string($0) }
            beginStep(loginStep, key: step.key, awaits: direction.destination, details: details)
            if !step.isVerification, direction == .send, info.opened == nil {
                info.mechanism = "dialback"
            }
        case .valid:
            finishStep(loginStep, key: step.key, .ok)
            if step.isVerification { login?.observe(.verifiedKey) }
            guard !step.isVerification, direction == .recv else { break }
            guard info.opened == nil else {
                hasFurtherDomains = true
                break
            }
            info.authentication = .succeeded
            info.jid = step.to
            return [.open("dialback succeeded")]
        case .refused:
            finishStep(loginStep, key: step.key, .failed(condition: step.condition, step.summary))
            guard !step.isVerification, direction == .recv, info.opened == nil else { break }
            info.authentication = .failed(condition: step.condition ?? "invalid")
        }
        return []
    }

    private mutating func dialbackStep(_ event: StreamEvent, _ direction: Direction) -> DialbackStep? {
        let isVerification = isNamed("verify", event, direction)
        guard isVerification || isNamed("result", event, direction) else { return nil }
        var step = DialbackStep(isVerification: isVerification, answer: .none)
        step.from = text(event.head.from, direction)
        step.to = text(event.head.to, direction)
        switch text(event.head.type, direction) {
        case nil: break
        case "valid": step.answer = .valid
        case "error":
            step.answer = .refused
            let error = parse(direction)?.firstChild { $0.isNamed("error") }
            step.condition =
                error?.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }?.name
                ?? "undefined-condition"
        default: step.answer = .refused
        }
        return step
    }
}

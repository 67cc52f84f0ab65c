internal import TapRecord
import XMPPCore

/// Follows dialback between servers (XEP-0220). Such streams bind no resource: once a domain is verified, stanzas flow.
enum Dialback {
    /// One of the two requests of dialback, or an answer to it.
    private struct Step {
        enum Answer { case none, valid, refused }

        /// `<verify/>`: one server asks the other whether it generated a key. Otherwise `<result/>`, which carries the
        /// key.
        var isVerification: Bool
        var answer: Answer
        /// For an error (XEP-0220 §2.4).
        var condition: String?
        var from: String?
        var to: String?

        var words: Prose {
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

        /// The two domains, in the order of the request.
        var key: String? {
            let pair = answer == .none ? [from, to] : [to, from]
            let text = pair.map { $0 ?? "" }.joined(separator: " ")
            // No domain has more than 1023 bytes (RFC 7622 §3.2).
            return text.utf8.count <= 2047 ? text : nil
        }
    }

    /// Handles an element of dialback that was relayed.
    static func handle(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        guard let step = Self.step(event, direction, &context) else {
            context.recordItem(event, direction, .element, level: .info, part: .sasl)
            return []
        }
        let isRefused = step.answer == .refused
        var record = context.makeRecord(event, direction, .element, level: isRefused ? .error : .info, part: .sasl)
        record.message = step.words
        record.condition = step.condition
        if isRefused { record.code = "dialback-failed" }
        context.emit(consume record)
        let loginStep: LoginStep.Name = step.isVerification ? .dialbackVerification : .dialback
        switch step.answer {
        case .none:
            var details: Attributes = [:]
            details["from"] = step.from.map { .string($0) }
            details["to"] = step.to.map { .string($0) }
            context.beginStep(loginStep, key: step.key, awaits: direction.destination, details: details)
            if !step.isVerification, direction == .send, context.info.opened == nil {
                context.info.mechanism = "dialback"
            }
        case .valid:
            context.finishStep(loginStep, key: step.key, .ok)
            if step.isVerification { context.login?.observe(.verifiedKey) }
            guard !step.isVerification, direction == .recv else { break }
            guard context.info.opened == nil else {
                context.hasFurtherDomains = true
                break
            }
            context.info.authentication = .succeeded
            context.info.jid = step.to
            return [.open("dialback succeeded")]
        case .refused:
            context.finishStep(loginStep, key: step.key, .failed(condition: step.condition, step.words))
            guard !step.isVerification, direction == .recv, context.info.opened == nil else { break }
            context.info.authentication = .failed(condition: step.condition ?? "invalid")
        }
        return []
    }

    private static func step(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> Step? {
        let isVerification = context.isNamed("verify", event, direction)
        guard isVerification || context.isNamed("result", event, direction) else { return nil }
        var step = Step(isVerification: isVerification, answer: .none)
        step.from = context.text(event.head.from, direction)
        step.to = context.text(event.head.to, direction)
        switch context.text(event.head.type, direction) {
        case nil: break
        case "valid": step.answer = .valid
        case "error":
            step.answer = .refused
            let error = context.parse(direction)?.firstChild { $0.isNamed("error") }
            step.condition =
                error?.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }?.name
                ?? "undefined-condition"
        default: step.answer = .refused
        }
        return step
    }
}

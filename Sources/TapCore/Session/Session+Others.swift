internal import TapRecord
import XMPPCore

// Streams of components (XEP-0114) and between servers (XEP-0220, RFC 6120 §6 with EXTERNAL). They bind no resource:
// after authentication, stanzas may flow.
extension Session {
    /// The description of a header besides its addresses; nil for clients with version 1.0.
    func headerWords(_ event: StreamEvent, _ direction: Direction) -> String? {
        var words: [String] = []
        switch context.info.kind {
        case .client, .unknown: break
        case .server: if direction == .send { words.append("of a server") }
        // A component's header has no version (XEP-0114 §3).
        case .component: return direction == .send ? "of a component" : nil
        }
        if context.info.kind != .unknown, event.head.version == nil { words.append("before version 1.0") }
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }

    // MARK: Components

    /// `<handshake/>`: the component's hash, or the server's consent. A refusal is a stream error.
    mutating func handleHandshake(_ event: StreamEvent, _ direction: Direction) {
        let step = context.parse(direction).flatMap { decodeStep($0, direction) }
        var record = context.makeRecord(event, direction, .element, level: .info, part: .sasl)
        record.sasl = step?.details
        // The component's handshake proves nothing until the server has accepted it.
        record.message =
            direction == .send
            ? "component sent its handshake (hash of stream ID and secret)" : "server accepted the handshake"
        context.emit(consume record)
        guard direction == .recv else {
            context.negotiation.beginAuthentication()
            return context.beginStep(.handshake, awaits: .server)
        }
        context.info.authentication = .succeeded
        context.info.jid = context.info.domain
        context.finishStep(.handshake, .ok)
        becomeOpen("component accepted")
    }

    // MARK: Servers

    /// A server's stream is open when its certificate is accepted; dialback may still be used for other domains.
    mutating func openServerStream(_ event: StreamEvent) {
        context.info.jid = context.info.from
        becomeOpen("server authenticated")
    }

    /// One of the two requests of dialback, or an answer to it.
    private struct DialbackStep {
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

    mutating func handleDialback(_ event: StreamEvent, _ direction: Direction) {
        guard let step = dialbackStep(event, direction) else {
            return context.recordItem(event, direction, .element, level: .info, part: .sasl)
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
            guard !step.isVerification, direction == .recv else { return }
            guard context.info.opened == nil else {
                context.hasFurtherDomains = true
                return
            }
            context.info.authentication = .succeeded
            context.info.jid = step.to
            becomeOpen("dialback succeeded")
        case .refused:
            context.finishStep(loginStep, key: step.key, .failed(condition: step.condition, step.words))
            guard !step.isVerification, direction == .recv, context.info.opened == nil else { return }
            context.info.authentication = .failed(condition: step.condition ?? "invalid")
        }
    }

    private mutating func dialbackStep(_ event: StreamEvent, _ direction: Direction) -> DialbackStep? {
        let isVerification = context.isNamed("verify", event, direction)
        guard isVerification || context.isNamed("result", event, direction) else { return nil }
        var step = DialbackStep(isVerification: isVerification, answer: .none)
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

internal import TapRecord
import XMPPCore

// SASL (RFC 6120 §6) and SASL2 (XEP-0388): relaying and logging.
extension Session {
    /// - Parameter element: The element, if it has been parsed.
    mutating func handleSASL(_ event: StreamEvent, _ direction: Direction, _ element: Element? = nil) {
        guard let element = element ?? context.parse(direction), let step = decodeStep(element, direction) else {
            return context.recordItem(event, direction, .element, level: .info, part: .sasl)
        }
        recordStep(step, event, direction)
        switch step.kind {
        case .begin:
            context.info.authentication = .none
            context.negotiation.beginAuthentication()
        case .failure:
            context.info.authentication = .failed(condition: step.condition ?? "undefined-condition")
            context.negotiation.failAuthentication()
        default: break
        }
        noteTimeline(step, element)
        if direction == .recv, step.kind == .failure { noteBindingOutcome(accepted: false) }
        if direction == .recv, step.kind == .success { authenticated(element, event) }
    }

    private mutating func recordStep(_ step: AuthenticationStep, _ event: StreamEvent, _ direction: Direction) {
        let isFailure = step.kind == .failure
        let level = isFailure ? Level.error : .info
        guard level <= context.options.level else { return }
        var record = context.makeRecord(event, direction, .element, level: level, part: .sasl)
        record.sasl = step.details
        if isFailure {
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = step.text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        }
        context.emit(consume record)
    }

    /// The server has reported a successful authentication.
    mutating func authenticated(_ element: Element, _ event: StreamEvent) {
        context.info.authentication = .succeeded
        noteBindingOutcome(accepted: true)
        // Unauthenticated clients have lower limits; from now on the session has its own.
        for direction in Direction.allCases { context.directions[direction].limits = context.options.limits }
        context.negotiation.authenticate(isSASL2: element.namespace.isSASL2)
        if element.namespace.isSASL2 { handleSASL2Success(element, event) }
    }

    /// Decodes the authentication step of an element, and stores its facts in the session.
    mutating func decodeStep(_ element: Element, _ direction: Direction) -> AuthenticationStep? {
        if let user = recording?.sasl?["user"] { sasl.recall(user: user.text) }
        guard var step = sasl.decode(element, direction) else { return nil }
        if context.info.mechanism != sasl.mechanism { context.info.bindingFlag = nil }
        if let flag = step.details["channel_binding_flag"] { context.info.bindingFlag = flag.text }
        context.info.mechanism = sasl.mechanism
        if let user = sasl.user { context.info.user = user }
        // For a redacted message, use the recording's details, which were decoded when the message was relayed.
        if step.details["redacted"] != nil, let told = recording?.sasl {
            step.details = told
            if let user = told["user"] { context.info.user = user.text }
        }
        return step
    }

    /// SASL2 has no restart: the success itself may contain the result of binding or resumption (XEP-0386, XEP-0198).
    private mutating func handleSASL2Success(_ success: Element, _ event: StreamEvent) {
        let identifier = success.childText("authorization-identifier", success.namespace)
        let isBound = success.firstChild {
            $0.isNamed("bound") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy)
        }
        let isResumed = success.firstChild { $0.isNamed("resumed") && $0.namespace == .streamManagement }
        let refusal = success.child("failed", .streamManagement)
        if refusal != nil || isResumed != nil, context.timeline.isUnderWay(.resume) {
            let condition = refusal?.firstChild { $0.namespace == .stanzaErrors }?.name
            context.finishStep(.resume, isResumed == nil ? .failed(condition: condition) : .ok)
        }
        // If the earlier session continues, nothing is bound (XEP-0388 with XEP-0198).
        if isResumed != nil { context.timeline.cancel(.bind2) }
        if context.timeline.isUnderWay(.bind2) {
            context.finishStep(.bind2, isBound == nil ? .failed("nothing was bound") : .ok)
        }
        if isBound == nil, isResumed == nil {
            // Features follow at once, as there is no new stream (XEP-0388 §2.4).
            context.beginStep(.features, awaits: .server)
        }
        if let identifier, Address(identifier).resource != nil { context.info.jid = identifier }
        if isBound != nil { becomeOpen("bound") }
        for enabled in (isBound?.children ?? []) + success.children {
            noteEnabled(enabled)
        }
        if isBound == nil, let isResumed { resume(isResumed, identifier: identifier) }
    }
}

internal import TapRecord
import XMPPCore

/// Follows a login: SASL (RFC 6120 §6), SASL2 (XEP-0388), the handshake of a component (XEP-0114), and the requests of
/// a client until its session is open.
struct Authentication {
    /// Decodes the client's messages, and those that it receives.
    private(set) var decoder: SASLDecoder
    /// In a recorded session, the details that were decoded from the item's SASL message when it was relayed.
    private var recorded: Attributes?

    init(_ options: SessionOptions) { decoder = SASLDecoder(policy: options.redaction) }

    /// Receives the details of the next recorded item.
    mutating func recall(_ details: Attributes?) { recorded = details }

    /// Decodes the step of an element, and stores its facts in the session.
    mutating func decode(
        _ element: Element,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> AuthenticationStep? {
        if let user = recorded?["user"] { decoder.recall(user: user.text) }
        guard var step = decoder.decode(element, direction) else { return nil }
        if context.info.mechanism != decoder.mechanism { context.info.bindingFlag = nil }
        if let flag = step.details["channel_binding_flag"] { context.info.bindingFlag = flag.text }
        context.info.mechanism = decoder.mechanism
        if let user = decoder.user { context.info.user = user }
        // For a redacted message, use the recording's details, which were decoded when the message was relayed.
        if step.details["redacted"] != nil, let recorded {
            step.details = recorded
            if let user = recorded["user"] { context.info.user = user.text }
        }
        return step
    }

    // MARK: SASL

    /// Handles a SASL message that was relayed, or that xmpptap answers.
    ///
    /// - Parameter element: The element, if it has been parsed.
    mutating func handle(
        _ event: StreamEvent,
        _ direction: Direction,
        parsed element: Element? = nil,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        guard let element = element ?? context.parse(direction), let step = decode(element, direction, &context) else {
            context.recordItem(event, direction, .element, level: .info, part: .sasl)
            return []
        }
        Self.record(step, event, direction, &context)
        switch step.kind {
        case .begin:
            context.info.authentication = .none
            context.negotiation.beginAuthentication()
        case .failure:
            context.info.authentication = .failed(condition: step.condition ?? "undefined-condition")
            context.negotiation.failAuthentication()
        default: break
        }
        let effects = Self.observe(step, element, &context)
        guard direction == .recv else { return effects }
        if step.kind == .failure { context.recordBindingOutcome(accepted: false) }
        return step.kind == .success ? effects + succeed(element, &context) : effects
    }

    private static func record(
        _ step: AuthenticationStep,
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
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

    // MARK: Success

    /// The server has reported a successful authentication.
    func succeed(_ element: Element, _ context: inout SessionContext) -> [SessionEffect] {
        context.info.authentication = .succeeded
        context.recordBindingOutcome(accepted: true)
        // Unauthenticated clients have lower limits; from now on the session has its own.
        for direction in Direction.allCases { context.directions[direction].limits = context.options.limits }
        context.negotiation.authenticate(isSASL2: element.namespace.isSASL2)
        return element.namespace.isSASL2 ? Self.handleSASL2Success(element, &context) : []
    }

    /// SASL2 has no restart: the success itself may contain the result of binding or resumption (XEP-0386, XEP-0198).
    private static func handleSASL2Success(_ success: Element, _ context: inout SessionContext) -> [SessionEffect] {
        let identifier = success.childText("authorization-identifier", success.namespace)
        let bound = success.firstChild {
            $0.isNamed("bound") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy)
        }
        let resumed = success.firstChild { $0.isNamed("resumed") && $0.namespace == .streamManagement }
        let refusal = success.child("failed", .streamManagement)
        if refusal != nil || resumed != nil, context.timeline.isUnderWay(.resume) {
            let condition = refusal?.firstChild { $0.namespace == .stanzaErrors }?.name
            context.finishStep(.resume, resumed == nil ? .failed(condition: condition) : .ok)
        }
        // If the earlier session continues, nothing is bound (XEP-0388 with XEP-0198).
        if resumed != nil { context.timeline.cancel(.bind2) }
        if context.timeline.isUnderWay(.bind2) {
            context.finishStep(.bind2, bound == nil ? .failed("nothing was bound") : .ok)
        }
        if bound == nil, resumed == nil {
            // Features follow at once, as there is no new stream (XEP-0388 §2.4).
            context.beginStep(.features, awaits: .server)
        }
        if let identifier, Address(identifier).resource != nil { context.info.jid = identifier }
        var effects: [SessionEffect] = bound == nil ? [] : [.open("bound")]
        for child in (bound?.children ?? []) + success.children where child.isNamed("enabled") {
            effects.append(.enabled(child))
        }
        if bound == nil, let resumed { effects.append(.resumed(resumed, identifier: identifier)) }
        return effects
    }

    // MARK: Timeline

    /// Adds a SASL message to the timeline.
    private static func observe(
        _ step: AuthenticationStep,
        _ element: Element,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        let words = step.text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        context.login?.observe(.step(step, words: words))
        if step.kind == .begin || step.kind == .challenge { context.forecastBinding() }
        switch step.kind {
        case .begin: return begin(loginStep, element, &context)
        case .challenge, .response, .proceed, .task:
            context.finishStep(loginStep, .ok, details: details(of: step, context))
            context.beginStep(loginStep, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success:
            context.timeline.cancel(.mechanism)
            context.finishStep(loginStep, .ok, details: details(of: step, context))
        case .failure:
            for other in [LoginStep.Name.bind2, .resume, .mechanism] { context.timeline.cancel(other) }
            context.finishStep(
                loginStep,
                .failed(condition: step.condition, words),
                details: details(of: step, context)
            )
        case .abort: break
        }
        return []
    }

    private static func details(of step: AuthenticationStep, _ context: borrowing SessionContext) -> Attributes {
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = context.info.mechanism.map { .string($0) }
        return details
    }

    private static func begin(
        _ loginStep: LoginStep.Name,
        _ element: Element,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        context.warnOfDowngrade()
        if context.info.features.contains("starttls"), !context.timeline.has(.startTLS) {
            context.finishStep(.startTLS, .skipped("offered, not used"))
        }
        var details: Attributes = [:]
        details["mechanism"] = context.info.mechanism.map { .string($0) }
        if !context.info.mechanisms.isEmpty { details["offered"] = .strings(context.info.mechanisms) }
        context.finishStep(.mechanism, .ok, details: details)
        context.beginStep(loginStep, awaits: .server)
        guard loginStep == .sasl2 else { return [] }
        let agent = element.child("user-agent", element.namespace)
        if let agent { context.login?.observe(.userAgent(agent)) }
        beginInline(element, &context)
        return agent.map { [.software($0.childText("software", element.namespace))] } ?? []
    }

    /// The inline requests of a SASL2 authentication.
    private static func beginInline(_ element: Element, _ context: inout SessionContext) {
        for child in element.children {
            switch child.namespace {
            case .bind2 where child.isNamed("bind"), .bind2Legacy where child.isNamed("bind"):
                context.login?.observe(.requestedResource(child.childText("tag", child.namespace)))
                context.beginStep(.bind2, awaits: .server)
            case .streamManagement where child.isNamed("resume"): context.beginStep(.resume, awaits: .server)
            default: break
            }
        }
    }

    // MARK: Logins that xmpptap performs itself

    /// Sends a message of the login to the client, as its server would.
    mutating func answer(_ bytes: [UInt8], _ context: inout SessionContext) -> [SessionEffect] {
        guard let element = context.sendLogin(bytes, to: .client), let step = decode(element, .recv, &context) else {
            return []
        }
        context.recordLogin(bytes, step, .client)
        let effects = Self.observe(step, element, &context)
        guard step.kind == .failure else { return effects }
        context.login?.observe(.refusedHere(bindings: context.negotiation.bridged?.clientBindings ?? []))
        context.info.authentication = .failed(condition: step.condition ?? "undefined-condition")
        context.negotiation.failAuthentication()
        return effects
    }

    /// Sends a message of the client to the server. The client's message was decoded when it arrived.
    func relay(_ bytes: [UInt8], _ context: inout SessionContext) {
        guard let element = context.sendLogin(bytes, to: .server) else { return }
        var copy = decoder
        if let step = copy.decode(element, .send) { context.recordLogin(bytes, step, .server) }
    }

    /// Handles the server's failure, which was relayed to the client unchanged.
    mutating func fail(_ element: Element, _ context: inout SessionContext) {
        let condition = context.login?.attempts.last?.condition
        context.info.authentication = .failed(condition: condition ?? "undefined-condition")
        context.negotiation.failAuthentication()
        for inline in [LoginStep.Name.bind2, .resume] { context.timeline.cancel(inline) }
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        context.finishStep(loginStep, .failed(condition: condition, "xmpptap's own login failed"))
        _ = decoder.decode(element, .recv)
    }
}

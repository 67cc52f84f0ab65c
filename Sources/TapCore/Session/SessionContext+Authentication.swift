internal import TapRecord
import XMPPCore

// Handles the steps of a login: their records, the timeline, and their results.
extension SessionContext {
    /// Records a SASL message.
    mutating func record(_ step: AuthenticationStep, _ event: StreamEvent, _ direction: Direction) {
        let isFailure = step.kind == .failure
        let level = isFailure ? Level.error : .info
        guard level <= options.level else { return }
        var record = makeRecord(event, direction, .element, level: level, part: .sasl)
        record.sasl = step.details
        if isFailure {
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = step.text.map { Prose(tools.redactor.disclose(text: $0)) }
        }
        emit(consume record)
    }

    // MARK: Success

    /// Handles the server's success.
    mutating func authenticate(_ element: Element) -> [SessionEffect] {
        info.authentication = .succeeded
        recordBindingOutcome(accepted: true)
        // After the login, the limits for authenticated clients apply.
        for direction in Direction.allCases { directions[direction].limits = options.limits }
        negotiation.authenticate(isSASL2: element.namespace.isSASL2)
        return element.namespace.isSASL2 ? handleSASL2Success(element) : []
    }

    /// Handles a SASL2 success. It may contain the result of binding or resumption (XEP-0386, XEP-0198), because SASL2
    /// has no stream restart.
    private mutating func handleSASL2Success(_ success: Element) -> [SessionEffect] {
        let identifier = success.childText("authorization-identifier", success.namespace)
        let bound = success.firstChild {
            $0.isNamed("bound") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy)
        }
        let resumed = success.firstChild { $0.isNamed("resumed") && $0.namespace == .streamManagement }
        let refusal = success.child("failed", .streamManagement)
        if refusal != nil || resumed != nil, timeline.isUnderWay(.resume) {
            let condition = refusal?.firstChild { $0.namespace == .stanzaErrors }?.name
            finishStep(.resume, resumed == nil ? .failed(condition: condition) : .ok)
        }
        // A session that is resumed binds no resource (XEP-0388 with XEP-0198).
        if resumed != nil { timeline.cancel(.bind2) }
        if timeline.isUnderWay(.bind2) {
            finishStep(.bind2, bound == nil ? .failed("nothing was bound") : .ok)
        }
        if bound == nil, resumed == nil {
            // The features follow at once, without a new stream (XEP-0388 §2.4).
            beginStep(.features, awaits: .server)
        }
        // The server can name a session that it resumes by the bare address. `Resumption` completes it.
        if let identifier, resumed != nil || Address(identifier).resource != nil { info.jid = identifier }
        var effects: [SessionEffect] = bound == nil ? [] : [.open("bound")]
        for child in (bound?.children ?? []) + success.children where child.isNamed("enabled") {
            effects.append(.enabled(child))
        }
        if bound == nil, let resumed { effects.append(.resumed(resumed, identifier: identifier)) }
        return effects
    }

    // MARK: Timeline

    /// Adds a SASL message to the timeline.
    mutating func observe(_ step: AuthenticationStep, _ element: Element) -> [SessionEffect] {
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        let text = step.text.map { Prose(tools.redactor.disclose(text: $0)) }
        login?.observe(.step(step, text: text))
        if step.kind == .begin || step.kind == .challenge { forecastBinding() }
        switch step.kind {
        case .begin: return beginLogin(loginStep, element)
        case .challenge, .response, .proceed, .task:
            finishStep(loginStep, .ok, details: details(of: step))
            beginStep(loginStep, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success:
            timeline.cancel(.mechanism)
            finishStep(loginStep, .ok, details: details(of: step))
        case .failure:
            for other in [LoginStep.Name.bind2, .resume, .mechanism] { timeline.cancel(other) }
            finishStep(loginStep, .failed(condition: step.condition, text), details: details(of: step))
        case .abort: break
        }
        return []
    }

    private func details(of step: AuthenticationStep) -> Attributes {
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = info.mechanism.map { .string($0) }
        return details
    }

    private mutating func beginLogin(_ loginStep: LoginStep.Name, _ element: Element) -> [SessionEffect] {
        warnOfDowngrade()
        if info.features.contains("starttls"), !timeline.has(.startTLS) {
            finishStep(.startTLS, .skipped("offered, not used"))
        }
        var details: Attributes = [:]
        details["mechanism"] = info.mechanism.map { .string($0) }
        if !info.mechanisms.isEmpty { details["offered"] = .strings(info.mechanisms) }
        finishStep(.mechanism, .ok, details: details)
        beginStep(loginStep, awaits: .server)
        guard loginStep == .sasl2 else { return [] }
        let agent = element.child("user-agent", element.namespace)
        if let agent { login?.observe(.userAgent(agent)) }
        beginInline(element)
        return agent.map { [.software($0.childText("software", element.namespace))] } ?? []
    }

    /// Begins the timeline steps of the inline requests in a SASL2 authentication.
    private mutating func beginInline(_ element: Element) {
        for child in element.children {
            switch child.namespace {
            case .bind2 where child.isNamed("bind"), .bind2Legacy where child.isNamed("bind"):
                login?.observe(.requestedResource(child.childText("tag", child.namespace)))
                beginStep(.bind2, awaits: .server)
            case .streamManagement where child.isNamed("resume"): beginStep(.resume, awaits: .server)
            default: break
            }
        }
    }

    // MARK: Requests

    /// Handles the result of a request with this purpose.
    mutating func handleResult(_ purpose: IQTracker.Purpose, _ direction: Direction) -> [SessionEffect] {
        switch purpose {
        case .ordinary, .ping: return []
        case .registration: finishStep(.registration, .ok)
        case .legacyFields: finishStep(.legacyAuthentication, .ok)
        case .session: finishStep(.session, .ok)
        case .bind:
            guard let jid = parse(direction)?.child("bind", .bind)?.childText("jid", .bind) else { return [] }
            info.jid = jid
            finishStep(.bind, .ok)
            return [.open("bound")]
        case .legacyAuthentication(let jid):
            info.jid = jid
            info.authentication = .succeeded
            finishStep(.legacyAuthentication, .ok)
            return [.open("logged in by legacy authentication")]
        }
        return []
    }

    /// Handles the error in the answer to a request with this purpose.
    mutating func handle(_ error: IQTracker.Failure, _ purpose: IQTracker.Purpose, _ direction: Direction) {
        switch purpose {
        case .legacyAuthentication:
            info.authentication = .failed(condition: error.code ?? "undefined-condition")
            finishStep(.legacyAuthentication, .failed(condition: error.code, error.text))
        case .legacyFields: finishStep(.legacyAuthentication, .failed(condition: error.code, error.text))
        case .registration: finishStep(.registration, .failed(condition: error.code, error.text))
        case .session: finishStep(.session, .failed(condition: error.condition, error.text))
        case .bind:
            finishStep(.bind, .failed(condition: error.condition, error.text))
            report(
                .error,
                .error,
                code: "bind-failed",
                "the server refused the resource: \(error.code ?? "no condition")",
                direction: direction
            )
        case .ping, .ordinary: break
        }
    }
}

internal import TapRecord
import XMPPCore

// The login timeline of a session: relayed items begin and end its steps.
extension Session {
    /// A step outside the streams, such as a DNS look-up or a connection attempt.
    ///
    /// - Parameters:
    ///   - since: When it began; nil for the end of the step before.
    ///   - details: The details that distinguish it from other steps with its name, such as `name` or `address`.
    mutating func took(
        _ name: LoginStep.Name,
        _ outcome: LoginStep.Outcome,
        since: Run.Instant? = nil,
        details: Attributes = [:],
        at now: Run.Instant
    ) {
        context.now = now
        context.finishStep(name, outcome, since: since?.monotonic, details: details)
    }

    // MARK: Streams and features

    /// A header was relayed.
    mutating func timelineHeader(_ event: StreamEvent, _ direction: Direction) {
        guard !context.negotiation.isRefusing, !isJoined else { return }
        let epoch = Attributes.Value.integer(Int64(clamping: event.epoch))
        switch direction {
        case .send:
            var details = Attributes()
            details.reserveCapacity(2)
            details.append("epoch", epoch)
            details.append("to", context.info.domain.map { .string($0) })
            context.beginStep(.streamOpen, awaits: .server, details: details)
        case .recv:
            context.finishStep(.streamOpen, .ok, details: ["epoch": epoch])
            // A stream without a version has no features (RFC 6120 §4.7.5).
            if event.head.version != nil { context.beginStep(.features, awaits: .server, details: ["epoch": epoch]) }
        }
    }

    /// Features were relayed: the initiator acts next.
    mutating func noteTimeline(_ features: StreamFeaturesSummary, _ offer: StreamFeatures) {
        // Features after a SASL2 success, or repeated ones, answer no header.
        let isDue = context.timeline.isUnderWay(.features)
        if isDue { context.finishStep(.features, .ok, details: ["features": .strings(features.names)]) }
        if context.negotiation.isBinding, isDue, offer.offersBinding { context.beginStep(.bind, awaits: .client) }
        guard context.negotiation.isOpening else { return }
        forecastBinding()
        if offer.startTLS == .required {
            context.beginStep(.startTLS, awaits: .client)
        } else if !features.allMechanisms.isEmpty {
            context.beginStep(.mechanism, awaits: .client)
        }
    }

    // MARK: Authentication

    /// A SASL message was relayed.
    mutating func noteTimeline(_ step: AuthenticationStep, _ element: Element) {
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        let words = step.text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        context.login?.observe(.step(step, words: words))
        if step.kind == .begin || step.kind == .challenge { forecastBinding() }
        switch step.kind {
        case .begin:
            noteDowngrade()
            if context.info.features.contains("starttls"), !context.timeline.has(.startTLS) {
                context.finishStep(.startTLS, .skipped("offered, not used"))
            }
            var details: Attributes = [:]
            details["mechanism"] = context.info.mechanism.map { .string($0) }
            if !context.info.mechanisms.isEmpty { details["offered"] = .strings(context.info.mechanisms) }
            context.finishStep(.mechanism, .ok, details: details)
            context.beginStep(loginStep, awaits: .server)
            if loginStep == .sasl2 {
                if let agent = element.child("user-agent", element.namespace) {
                    context.login?.observe(.userAgent(agent))
                    software.observe(agent.childText("software", element.namespace), &context)
                }
                beginInline(element)
            }
        case .challenge, .response, .proceed, .task:
            context.finishStep(loginStep, .ok, details: stepDetails(step))
            context.beginStep(loginStep, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success:
            context.timeline.cancel(.mechanism)
            context.finishStep(loginStep, .ok, details: stepDetails(step))
        case .failure:
            for other in [LoginStep.Name.bind2, .resume, .mechanism] { context.timeline.cancel(other) }
            context.finishStep(loginStep, .failed(condition: step.condition, words), details: stepDetails(step))
        case .abort: break
        }
    }

    private func stepDetails(_ step: AuthenticationStep) -> Attributes {
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = context.info.mechanism.map { .string($0) }
        return details
    }

    /// The inline requests of a SASL2 authentication.
    private mutating func beginInline(_ element: Element) {
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

    mutating func becameReady() {
        // Inline requests that this granted are finished too.
        for name in [LoginStep.Name.bind, .mechanism] { context.timeline.cancel(name) }
        context.finishStep(.ready, .ok, since: context.info.began.monotonic)
        context.timeline.forgetDetails()
    }
}

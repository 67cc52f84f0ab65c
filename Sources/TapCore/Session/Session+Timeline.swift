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
        self.now = now
        finish(name, outcome, since: since?.monotonic, details: details)
    }

    mutating func begin(_ name: LoginStep.Name, key: String? = nil, awaits leg: Leg, details: Attributes = [:]) {
        timeline.begin(name, key: key, awaits: leg, details: details, at: context.now.monotonic)
    }

    mutating func finish(
        _ name: LoginStep.Name,
        key: String? = nil,
        _ outcome: LoginStep.Outcome,
        since: Int64? = nil,
        details: Attributes = [:]
    ) {
        tell(timeline.finish(name, key: key, outcome, since: since, details: details, at: context.now.monotonic))
    }

    /// An error that ends all pending steps.
    mutating func failStep(condition: String?, _ words: Prose? = nil) {
        if let loginStep = timeline.failLast(.failed(condition: condition, words), at: context.now.monotonic) {
            tell(loginStep)
        }
    }

    /// The session has ended: its pending steps have failed.
    mutating func endTimeline() {
        let outcome: LoginStep.Outcome? =
            switch info.ending {
            case .stopped: .skipped("xmpptap stopped")
            case .tap(let condition): .failed(condition: condition)
            case .unrecorded: .skipped("nothing more is recorded")
            // A log can leave out the answer.
            case _ where options.isDecoded || login?.hasGap == true: .skipped("not recorded")
            default: nil
            }
        for loginStep in timeline.end(outcome, at: context.now.monotonic) { tell(loginStep) }
    }

    private mutating func tell(_ loginStep: LoginStep) {
        let isOver = loginStep.outcome.result != .skipped
        if loginStep.name == .resume, isOver { counters.count(.resumed(loginStep.outcome.result == .ok)) }
        guard options.level >= .verbose else { return }
        var record = context.makeRecord(.session, .verbose, part: loginStep.name.part)
        record.code = LoginStep.code
        record.roundTrip = loginStep.duration
        var reason: Prose?
        switch loginStep.outcome {
        case .ok: break
        case .failed(let condition, let text): (record.condition, reason) = (condition, text)
        case .skipped(let why): reason = why
        }
        let result = loginStep.outcome.result.rawValue
        var words = "\(loginStep.name.rawValue): \(result)"
        for part in [record.condition, reason.map { "\($0)" }] { if let part { words += ", \(part)" } }
        record.message = Prose(words)
        var details: Attributes = [
            LoginStep.code: .string(loginStep.name.rawValue), LoginStep.outcomeDetail: .string(result),
        ]
        details[LoginStep.reasonDetail] = reason.map { .string("\($0)") }
        for entry in loginStep.details.entries { details[entry.name] = entry.value }
        record.details = details
        context.emit(consume record)
    }

    // MARK: Streams and features

    /// A header was relayed.
    mutating func timelineHeader(_ event: StreamEvent, _ direction: Direction) {
        guard !negotiation.isRefusing, !isJoined else { return }
        let epoch = Attributes.Value.integer(Int64(clamping: event.epoch))
        switch direction {
        case .send:
            var details = Attributes()
            details.reserveCapacity(2)
            details.append("epoch", epoch)
            details.append("to", info.domain.map { .string($0) })
            begin(.streamOpen, awaits: .server, details: details)
        case .recv:
            finish(.streamOpen, .ok, details: ["epoch": epoch])
            // A stream without a version has no features (RFC 6120 §4.7.5).
            if event.head.version != nil { begin(.features, awaits: .server, details: ["epoch": epoch]) }
        }
    }

    /// Features were relayed: the initiator acts next.
    mutating func noteTimeline(_ features: StreamFeaturesSummary, _ offer: StreamFeatures) {
        // Features after a SASL2 success, or repeated ones, answer no header.
        let isDue = timeline.isUnderWay(.features)
        if isDue { finish(.features, .ok, details: ["features": .strings(features.names)]) }
        if negotiation.isBinding, isDue, offer.offersBinding { begin(.bind, awaits: .client) }
        guard negotiation.isOpening else { return }
        forecastBinding()
        if offer.startTLS == .required {
            begin(.startTLS, awaits: .client)
        } else if !features.allMechanisms.isEmpty {
            begin(.mechanism, awaits: .client)
        }
    }

    // MARK: Authentication

    /// A SASL message was relayed.
    mutating func noteTimeline(_ step: AuthenticationStep, _ element: Element) {
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        let words = step.text.map { Prose(tools.redactor.disclose(text: $0)) }
        login?.observe(.step(step, words: words))
        if step.kind == .begin || step.kind == .challenge { forecastBinding() }
        switch step.kind {
        case .begin:
            noteDowngrade()
            if info.features.contains("starttls"), !timeline.has(.startTLS) {
                finish(.startTLS, .skipped("offered, not used"))
            }
            var details: Attributes = [:]
            details["mechanism"] = info.mechanism.map { .string($0) }
            if !info.mechanisms.isEmpty { details["offered"] = .strings(info.mechanisms) }
            finish(.mechanism, .ok, details: details)
            begin(loginStep, awaits: .server)
            if loginStep == .sasl2 {
                if let agent = element.child("user-agent", element.namespace) {
                    login?.observe(.userAgent(agent))
                    software.observe(agent.childText("software", element.namespace), &context)
                }
                beginInline(element)
            }
        case .challenge, .response, .proceed, .task:
            finish(loginStep, .ok, details: stepDetails(step))
            begin(loginStep, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success:
            timeline.cancel(.mechanism)
            finish(loginStep, .ok, details: stepDetails(step))
        case .failure:
            for other in [LoginStep.Name.bind2, .resume, .mechanism] { timeline.cancel(other) }
            finish(loginStep, .failed(condition: step.condition, words), details: stepDetails(step))
        case .abort: break
        }
    }

    private func stepDetails(_ step: AuthenticationStep) -> Attributes {
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = info.mechanism.map { .string($0) }
        return details
    }

    /// The inline requests of a SASL2 authentication.
    private mutating func beginInline(_ element: Element) {
        for child in element.children {
            switch child.namespace {
            case .bind2 where child.isNamed("bind"), .bind2Legacy where child.isNamed("bind"):
                login?.observe(.requestedResource(child.childText("tag", child.namespace)))
                begin(.bind2, awaits: .server)
            case .streamManagement where child.isNamed("resume"): begin(.resume, awaits: .server)
            default: break
            }
        }
    }

    mutating func becameReady() {
        // Inline requests that this granted are finished too.
        for name in [LoginStep.Name.bind, .mechanism] { timeline.cancel(name) }
        finish(.ready, .ok, since: info.began.monotonic)
        timeline.forgetDetails()
    }
}

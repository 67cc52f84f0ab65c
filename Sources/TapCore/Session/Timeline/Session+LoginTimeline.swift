public import TapRecord
import XMPPCore

// The timeline of a session: which step of its way begins and ends with what passes.
extension Session {
    /// A step that is took outside the streams, such as a look-up of names or an attempt to connect.
    ///
    /// - Parameters:
    ///   - since: When it began; nil is when the step before it ended.
    ///   - details: What tells it from others of its name, such as `name` or `address`.
    public mutating func took(
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
        timeline.begin(name, key: key, awaits: leg, details: details, at: now.monotonic)
    }

    mutating func finish(
        _ name: LoginStep.Name,
        key: String? = nil,
        _ outcome: LoginStep.Outcome,
        since: Int64? = nil,
        details: Attributes = [:]
    ) {
        tell(timeline.finish(name, key: key, outcome, since: since, details: details, at: now.monotonic))
    }

    /// An error that ends what is under way, whatever that is.
    mutating func failStep(condition: String?, _ words: String? = nil) {
        if let loginStep = timeline.failLast(.failed(condition: condition, words), at: now.monotonic) {
            tell(loginStep)
        }
    }

    /// The session has ended: whatever it waited for has not come.
    mutating func endTimeline() {
        let outcome: LoginStep.Outcome? =
            switch info.ending {
            case .stopped: .skipped("xmpptap stopped before")
            case .tap(let condition): .failed(condition: condition)
            default: nil
            }
        for loginStep in timeline.end(outcome, at: now.monotonic) { tell(loginStep) }
    }

    private mutating func tell(_ loginStep: LoginStep) {
        guard options.level >= .verbose else { return }
        var record = makeRecord(.session, .verbose, part: loginStep.name.part)
        record.code = LoginStep.code
        record.roundTrip = loginStep.duration
        var words = "\(loginStep.name.rawValue): \(loginStep.outcome.name)"
        switch loginStep.outcome {
        case .ok: break
        case .failed(let condition, let text):
            record.condition = condition
            for part in [condition, text].compactMap({ $0 }) { words += ", \(part)" }
        case .skipped(let why): words += ", \(why)"
        }
        record.message = words
        var details: Attributes = [
            LoginStep.code: .string(loginStep.name.rawValue), LoginStep.outcomeDetail: .string(loginStep.outcome.name),
        ]
        for entry in loginStep.details.entries { details[entry.name] = entry.value }
        record.details = details
        emit(record)
    }

    // MARK: Streams and features

    /// A header has gone by.
    mutating func timelineHeader(_ event: StreamEvent, _ direction: Direction) {
        guard !isRefusing else { return }
        let epoch: Attributes = ["epoch": .integer(Int64(clamping: event.epoch))]
        switch direction {
        case .send:
            var details = epoch
            details["to"] = info.domain.map { .string(tools.redactor.disclose(address: $0)) }
            begin(.streamOpen, awaits: .server, details: details)
        case .recv:
            finish(.streamOpen, .ok, details: epoch)
            // A stream without a version has no features (RFC 6120 §4.7.5).
            if event.head.version != nil { begin(.features, awaits: .server, details: epoch) }
        }
    }

    /// Features have gone by: the initiator has to do something about them.
    mutating func noteTimeline(_ features: StreamFeaturesSummary, _ offer: StreamFeatures) {
        // Those that follow a success of SASL2, or that come again, are an answer to nothing.
        let isDue = timeline.isUnderWay(.features)
        if isDue { finish(.features, .ok, details: ["features": .strings(features.names)]) }
        if case .opening = phase { forecastBinding() }
        switch phase {
        case .opening where offer.startTLS == .required: begin(.startTLS, awaits: .client)
        case .opening where !features.allMechanisms.isEmpty: begin(.mechanism, awaits: .client)
        case .binding where isDue && offer.offersBinding: begin(.bind, awaits: .client)
        default: break
        }
    }

    // MARK: Authentication

    /// A step of SASL has gone by.
    mutating func noteTimeline(_ step: AuthenticationStep, _ element: Element) {
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        login?.note(step, words: step.text.map { tools.redactor.disclose(text: $0) })
        if step.kind == .begin || step.kind == .challenge { forecastBinding() }
        switch step.kind {
        case .begin:
            noteDowngrade()
            if info.features.contains("starttls"), !timeline.has(.startTLS) {
                finish(.startTLS, .skipped("offered and not taken"))
            }
            var details: Attributes = [:]
            details["mechanism"] = info.mechanism.map { .string($0) }
            if !info.mechanisms.isEmpty { details["offered"] = .strings(info.mechanisms) }
            finish(.mechanism, .ok, details: details)
            begin(loginStep, awaits: .server)
            if loginStep == .sasl2 {
                login?.note(agent: element.child("user-agent", element.namespace))
                beginInline(element)
            }
        case .challenge, .response, .proceed, .task:
            finish(loginStep, .ok, details: stepDetails(step))
            begin(loginStep, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success: finish(loginStep, .ok, details: stepDetails(step))
        case .failure:
            for inline in [LoginStep.Name.bind2, .resume] { timeline.cancel(inline) }
            let words = step.text.map { tools.redactor.disclose(text: $0) }
            finish(loginStep, .failed(condition: step.condition, words), details: stepDetails(step))
        case .abort: break
        }
    }

    private func stepDetails(_ step: AuthenticationStep) -> Attributes {
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = info.mechanism.map { .string($0) }
        return details
    }

    /// What is asked for together with an authentication of SASL2.
    private mutating func beginInline(_ element: Element) {
        for child in element.children {
            switch child.namespace {
            case .bind2 where child.isNamed("bind"), .bind2Legacy where child.isNamed("bind"):
                login?.requestedResource = child.childText("tag", child.namespace)
                begin(.bind2, awaits: .server)
            case .streamManagement where child.isNamed("resume"): begin(.resume, awaits: .server)
            default: break
            }
        }
    }

    /// The session is ready.
    mutating func becameReady() {
        // What was asked for besides, and is granted by what made it ready, is not missed.
        for name in [LoginStep.Name.bind, .mechanism] { timeline.cancel(name) }
        finish(.ready, .ok, since: info.began.monotonic)
        timeline.forget()
    }
}

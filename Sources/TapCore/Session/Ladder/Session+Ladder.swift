import XMPPCore

// The ladder of a session: which step of its way begins and ends with what passes.
extension Session {
    /// A rung that is climbed outside the streams, such as a look-up of names or an attempt to connect.
    ///
    /// - Parameters:
    ///   - since: When it began; nil is when the rung before it ended.
    ///   - details: What tells it from others of its name, such as `name` or `address`.
    public mutating func climbed(
        _ name: Rung.Name,
        _ outcome: Rung.Outcome,
        since: Run.Instant? = nil,
        details: Facts = [:],
        at now: Run.Instant
    ) {
        self.now = now
        finish(name, outcome, since: since?.monotonic, details: details)
    }

    mutating func begin(_ name: Rung.Name, key: String? = nil, awaits leg: Leg, details: Facts = [:]) {
        ladder.begin(name, key: key, awaits: leg, details: details, at: now.monotonic)
    }

    mutating func finish(
        _ name: Rung.Name,
        key: String? = nil,
        _ outcome: Rung.Outcome,
        since: Int64? = nil,
        details: Facts = [:]
    ) {
        tell(ladder.finish(name, key: key, outcome, since: since, details: details, at: now.monotonic))
    }

    /// An error that ends what is under way, whatever that is.
    mutating func failRung(condition: String?, _ words: String? = nil) {
        if let rung = ladder.failLast(.failed(condition: condition, words), at: now.monotonic) { tell(rung) }
    }

    /// The session has ended: whatever it waited for has not come.
    mutating func endLadder() {
        let outcome: Rung.Outcome? =
            switch facts.ending {
            case .stopped: .skipped("xmpptap stopped before")
            case .tap(let condition): .failed(condition: condition)
            default: nil
            }
        for rung in ladder.end(outcome, at: now.monotonic) { tell(rung) }
    }

    private mutating func tell(_ rung: Rung) {
        guard options.level >= .verbose else { return }
        var record = makeRecord(.session, .verbose, part: rung.name.part)
        record.code = Rung.code
        record.roundTrip = rung.duration
        var words = "\(rung.name.rawValue): \(rung.outcome.name)"
        switch rung.outcome {
        case .ok: break
        case .failed(let condition, let text):
            record.condition = condition
            for part in [condition, text].compactMap({ $0 }) { words += ", \(part)" }
        case .skipped(let why): words += ", \(why)"
        }
        record.message = words
        var details: Facts = [
            Rung.code: .string(rung.name.rawValue), Rung.outcomeDetail: .string(rung.outcome.name),
        ]
        for entry in rung.details.entries { details[entry.name] = entry.value }
        record.details = details
        emit(record)
    }

    // MARK: Streams and features

    /// A header has gone by.
    mutating func climbHeader(_ event: StreamEvent, _ direction: Direction) {
        guard !isRefusing else { return }
        let epoch: Facts = ["epoch": .integer(Int64(clamping: event.epoch))]
        switch direction {
        case .send:
            var details = epoch
            details["to"] = facts.domain.map { .string(tools.redactor.disclose(address: $0)) }
            begin(.streamOpen, awaits: .server, details: details)
        case .recv:
            finish(.streamOpen, .ok, details: epoch)
            // A stream without a version has no features (RFC 6120 §4.7.5).
            if event.head.version != nil { begin(.features, awaits: .server, details: epoch) }
        }
    }

    /// Features have gone by: the initiator has to do something about them.
    mutating func climb(_ features: StreamFeaturesSummary, _ offer: StreamFeatures) {
        // Those that follow a success of SASL2, or that come again, are an answer to nothing.
        let isDue = ladder.isUnderWay(.features)
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
    mutating func climb(_ step: AuthenticationStep, _ element: Element) {
        let rung: Rung.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        login?.note(step, words: step.text.map { tools.redactor.disclose(text: $0) })
        if step.kind == .begin || step.kind == .challenge { forecastBinding() }
        switch step.kind {
        case .begin:
            noteDowngrade()
            if facts.features.contains("starttls"), !ladder.has(.startTLS) {
                finish(.startTLS, .skipped("offered and not taken"))
            }
            var details: Facts = [:]
            details["mechanism"] = facts.mechanism.map { .string($0) }
            if !facts.mechanisms.isEmpty { details["offered"] = .strings(facts.mechanisms) }
            finish(.mechanism, .ok, details: details)
            begin(rung, awaits: .server)
            if rung == .sasl2 {
                login?.note(agent: element.child("user-agent", element.namespace))
                beginInline(element)
            }
        case .challenge, .response, .proceed, .task:
            finish(rung, .ok, details: stepDetails(step))
            begin(rung, awaits: step.kind == .challenge || step.kind == .proceed ? .client : .server)
        case .success: finish(rung, .ok, details: stepDetails(step))
        case .failure:
            for inline in [Rung.Name.bind2, .resume] { ladder.cancel(inline) }
            let words = step.text.map { tools.redactor.disclose(text: $0) }
            finish(rung, .failed(condition: step.condition, words), details: stepDetails(step))
        case .abort: break
        }
    }

    private func stepDetails(_ step: AuthenticationStep) -> Facts {
        var details: Facts = ["step": .string(step.kind.rawValue)]
        details["mechanism"] = facts.mechanism.map { .string($0) }
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
    mutating func climbToTop() {
        // What was asked for besides, and is granted by what made it ready, is not missed.
        for name in [Rung.Name.bind, .mechanism] { ladder.cancel(name) }
        finish(.ready, .ok, since: facts.began.monotonic)
        ladder.forget()
    }
}

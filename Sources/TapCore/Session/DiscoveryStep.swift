package import TapRecord
internal import XMPPCore

/// One step of connecting to a session's server: a step of the session's timeline.
package struct DiscoveryStep: Sendable {
    /// The kind of step. The raw value begins a record's message.
    package enum Step: String, Sendable {
        /// SRV records of a domain were looked up.
        case records = "srv"
        /// Addresses of a host were looked up.
        case addresses = "address"
        /// The certificates of a host were looked up (DANE, RFC 7673).
        case associations = "tlsa"
        /// A TCP connection was attempted.
        case connection = "tcp"
    }

    /// The outcome of a step. The raw value is the value of `details.outcome` in the record.
    package enum Outcome: String, Sendable {
        /// The step succeeded.
        case ok
        /// The name has no records.
        case none
        /// The domain does not offer the service, or xmpptap does not connect to that address.
        case refused
        /// The step was skipped, because it does not fit the client's first bytes.
        case skipped
        case failed
    }

    /// The kind of step.
    package var step: Step
    /// The outcome.
    package var outcome: Outcome
    /// The step of the timeline to which this step belongs.
    var loginStep: LoginStep.Name { step == .connection ? .connect : .nameLookup }
    /// The name that was looked up, or the `HOST:PORT` of the connection.
    package var subject: String
    /// The result, or the reason for a failure, as a human-readable clause.
    package var finding: Prose
    /// The duration in nanoseconds; nil for a skipped step.
    package var duration: Int64?
    /// Whether the step is logged at level `verbose` instead of `info`.
    package var isDetail: Bool

    package init(
        _ step: Step,
        _ outcome: Outcome,
        _ subject: String,
        _ finding: String,
        duration: Int64? = nil,
        isDetail: Bool = false
    ) {
        self.step = step
        self.outcome = outcome
        self.subject = subject
        self.finding = Prose(finding)
        self.duration = duration
        self.isDetail = isDetail
    }
}

extension SessionContext {
    /// Records a step of connecting to the server, with the code `step`.
    mutating func record(_ step: DiscoveryStep) {
        guard !negotiation.isClosed else { return }
        let outcome: LoginStep.Outcome =
            switch step.outcome {
            case .ok: .ok
            case .skipped: .skipped(step.finding)
            case .none, .refused, .failed: .failed(step.finding)
            }
        _ = timeline.finish(
            step.loginStep,
            outcome,
            since: step.duration.map { now.monotonic - $0 },
            details: ["subject": .string(step.subject)],
            at: now.monotonic
        )
        var record = makeRecord(.note, step.isDetail ? .verbose : .info, part: .net)
        record.code = LoginStep.code
        record.leg = .server
        record.message = "\(step.step.rawValue) \(step.subject): \(step.finding)"
        record.roundTrip = step.duration
        record.details = [
            LoginStep.code: .string(step.loginStep.rawValue), LoginStep.outcomeDetail: .string(step.outcome.rawValue),
            LoginStep.reasonDetail: .string("\(step.finding)"), "subject": .string(step.subject),
        ]
        emit(consume record)
    }

    /// Refuses a stream header that names a domain other than the one of the session.
    func interceptOtherDomain(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard event.item == .header, direction == .send, let chosenDomain,
            !negotiation.isRefusing,
            let to = text(event.head.to, .send), !Self.isSame(chosenDomain, to)
        else { return nil }
        return .refuse(
            Refusal(
                answer: .streamError(
                    .hostUnknown,
                    "This session is for \(chosenDomain) and cannot change to another domain."
                ),
                code: "host-unknown",
                message:
                    "the session is for \(chosenDomain), a new stream for \(tools.redactor.disclose(address: to))",
                condition: .hostUnknown,
                direction: .send,
                diagnosis: "the session is for \(chosenDomain), but the client requested another domain"
            )
        )
    }
}

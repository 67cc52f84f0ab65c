internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Tracks the steps of the login, and the facts for its diagnosis.
extension SessionContext {
    /// Begins a step, which waits for the peer at this leg.
    mutating func beginStep(_ name: LoginStep.Name, key: String? = nil, awaits leg: Leg, details: Attributes = [:]) {
        timeline.begin(name, key: key, awaits: leg, details: details, at: now.monotonic)
    }

    /// Ends a step. If the start of the step is unknown, it is `since`, or the end of the previous step.
    mutating func finishStep(
        _ name: LoginStep.Name,
        key: String? = nil,
        _ outcome: LoginStep.Outcome,
        since: Int64? = nil,
        details: Attributes = [:]
    ) {
        record(timeline.finish(name, key: key, outcome, since: since, details: details, at: now.monotonic))
    }

    /// Ends all pending steps, because of an error.
    mutating func failStep(condition: String?, _ text: Prose? = nil) {
        if let loginStep = timeline.failLast(.failed(condition: condition, text), at: now.monotonic) {
            record(loginStep)
        }
    }

    /// Ends the pending steps as failed or skipped, because the session has ended.
    mutating func endTimeline() {
        let outcome: LoginStep.Outcome? =
            switch info.ending {
            case .stopped: .skipped("xmpptap stopped")
            case .tap(let condition): .failed(condition: condition)
            case .unrecorded: .skipped("nothing more is recorded")
            // A log may lack the answer.
            case _ where options.isDecoded || login?.hasGap == true: .skipped("not recorded")
            default: nil
            }
        for loginStep in timeline.end(outcome, at: now.monotonic) { record(loginStep) }
    }

    private mutating func record(_ loginStep: LoginStep) {
        let isOver = loginStep.outcome.result != .skipped
        if loginStep.name == .resume, isOver { counters.count(.resumed(loginStep.outcome.result == .ok)) }
        guard options.level >= .verbose else { return }
        var record = makeRecord(.session, .verbose, part: loginStep.name.part)
        record.code = LoginStep.code
        record.roundTrip = loginStep.duration
        var reason: Prose?
        switch loginStep.outcome {
        case .ok: break
        case .failed(let condition, let text): (record.condition, reason) = (condition, text)
        case .skipped(let why): reason = why
        }
        let result = loginStep.outcome.result.rawValue
        var message = "\(loginStep.name.rawValue): \(result)"
        for part in [record.condition, reason.map { "\($0)" }] { if let part { message += ", \(part)" } }
        record.message = Prose(message)
        var details: Attributes = [
            LoginStep.code: .string(loginStep.name.rawValue), LoginStep.outcomeDetail: .string(result),
        ]
        details[LoginStep.reasonDetail] = reason.map { .string("\($0)") }
        for entry in loginStep.details.entries { details[entry.name] = entry.value }
        record.details = details
        emit(consume record)
    }

    /// Stores a cause of failure that the streams do not show.
    mutating func blame(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        remedy: Remedy? = nil
    ) {
        var diagnosis = LoginDiagnosis(cause, at: loginStep, Prose(finding), condition: condition, side: side)
        if let remedy { diagnosis.remedy = remedy }
        login?.observe(.blamed(diagnosis))
    }

    /// Discards the facts that were received in clear, because these could have been forged.
    mutating func forgetClear() {
        info.features = []
        info.mechanisms = []
        info.mechanism = nil
        login?.observe(.enteredTLS)
    }
}

internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Records the beginning, the readiness and the end of a session.
extension SessionContext {
    /// Records the beginning of the session, and what its options mean for it.
    mutating func begin(_ beginning: Record.Beginning) {
        isRelayed = beginning.source == nil
        recordBeginning(beginning)
        TLSPolicy.reportClearLegs(&self)
        if options.isBlind { relayBlind() }
    }

    private mutating func recordBeginning(_ beginning: Record.Beginning) {
        guard options.level >= .info else { return }
        var record = makeRecord(.session, .info, part: .net)
        record.code = Record.Code.sessionBegan
        record.message = beginning.message
        var details: Attributes = [:]
        details[Record.Detail.source] = beginning.source.map { .string($0) }
        details[Record.Detail.upstream] = beginning.upstream.map { .string($0) }
        details[Record.Detail.transport] = transport.map { .string($0) }
        details[Record.Detail.request] = beginning.request.map { .string($0.code) }
        details[Record.Detail.target] = beginning.request.map { .string($0.target) }
        if !details.entries.isEmpty { record.details = details }
        emit(consume record)
    }

    /// Opens the session: stanzas are relayed in cut-through mode, within the limits of an authenticated session.
    ///
    /// - Parameter earlier: The number of the session that this one resumes.
    mutating func open(_ summary: String, resumes earlier: UInt64?) {
        info.opened = now
        login = nil
        for direction in Direction.allCases {
            directions[direction].limits = options.limits
            cutThrough(direction)
        }
        // The inline requests that the server has granted are finished too.
        for name in [LoginStep.Name.bind, .mechanism] { timeline.cancel(name) }
        finishStep(.ready, .ok, since: info.began.monotonic)
        timeline.forgetDetails()
        recordReady(summary, resumes: earlier)
    }

    private mutating func recordReady(_ summary: String, resumes earlier: UInt64?) {
        guard options.level >= .info else { return }
        let elapsed = now.monotonic - info.began.monotonic
        var record = makeRecord(.session, .info, part: .session)
        record.code = Record.Code.sessionReady
        record.message =
            "ready\(info.jid.map { " as \(tools.redactor.disclose(address: $0))" } ?? ""): \(summary)"
        var details: Attributes = [:]
        if info.isUnverified { details["unverified"] = true }
        details[Record.Detail.resumes] = earlier.map { .integer(Int64(clamping: $0)) }
        if !details.entries.isEmpty { record.details = details }
        record.roundTrip = elapsed
        emit(consume record)
    }

    mutating func recordChunk(_ direction: Direction, _ bytes: Span<UInt8>) {
        var record = makeRecord(.chunk, .trace, part: .net)
        record.direction = direction
        record.leg = direction.source
        record.offset = directions[direction].received
        record.length = UInt64(bytes.count)
        emit(consume record)
    }

    /// Creates the final records about the session, except the last one, because the legs are closed.
    mutating func close(isPartial: Bool) {
        rules?.recordUnsent(&self)
        negotiation.close()
        endTimeline()
        for direction in Direction.allCases { recordOpaqueBytes(direction) }
        recordDiagnosis(isPartial: isPartial)
    }

    /// Records the end of the session, its last record.
    ///
    /// - Parameter recorded: The record of the end in a recording; nil if the items show the end.
    mutating func recordEnd(as recorded: Record?) {
        let level = recorded?.level ?? info.endingLevel
        guard level <= options.level else { return }
        var record = makeRecord(.session, level, part: .session)
        record.code = Record.Code.sessionEnded
        record.leg = info.endingLeg
        record.message = recorded?.message ?? Prose(info.endingDescription)
        record.condition = info.endingCondition
        record.roundTrip = now.monotonic - info.began.monotonic
        record.details = info.summary
        emit(consume record)
    }
}

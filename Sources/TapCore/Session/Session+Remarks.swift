internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Records about the session's beginning and end, and about faults.
extension Session {
    mutating func noteBeginning(_ beginning: Record.Beginning) {
        guard context.options.level >= .info else { return }
        var record = context.makeRecord(.session, .info, part: .net)
        record.code = Record.Code.sessionBegan
        record.message = beginning.words
        var details: Attributes = [:]
        details[Record.Detail.source] = beginning.source.map { .string($0) }
        details[Record.Detail.upstream] = beginning.upstream.map { .string($0) }
        if !details.entries.isEmpty { record.details = details }
        context.emit(consume record)
    }

    /// - Parameter earlier: The session that this one continues.
    mutating func noteReady(_ words: String, resumes earlier: UInt64? = nil) {
        guard context.options.level >= .info else { return }
        let elapsed = context.now.monotonic - context.info.began.monotonic
        var record = context.makeRecord(.session, .info, part: .session)
        record.code = Record.Code.sessionReady
        record.message =
            "ready\(context.info.jid.map { " as \(context.tools.redactor.disclose(address: $0))" } ?? ""): \(words)"
        var details: Attributes = [:]
        if context.info.isUnverified { details["unverified"] = true }
        details[Record.Detail.resumes] = earlier.map { .integer(Int64(clamping: $0)) }
        if !details.entries.isEmpty { record.details = details }
        record.roundTrip = elapsed
        context.emit(consume record)
    }

    mutating func traceChunk(_ direction: Direction, _ bytes: Span<UInt8>) {
        var record = context.makeRecord(.chunk, .trace, part: .net)
        record.direction = direction
        record.leg = direction.source
        record.offset = context.directions[direction].received
        record.length = UInt64(bytes.count)
        context.emit(consume record)
    }

    /// Records notes about the session as a whole.
    mutating func finishRecords() {
        if context.outlet.isEmpty { context.outlet.showNothing() }
        context.rules?.recordUnsent(&context)
        context.info.unanswered = requests.count + requests.forgotten
        context.negotiation.close()
        context.endTimeline()
        for direction in Direction.allCases { context.recordOpaqueBytes(direction) }
        noteDiagnosis()
        if !reconnects.askAboutLoop(&context) { recordEnd() }
    }

    /// Records the end of the session, its last record.
    private mutating func recordEnd() {
        leaveIfFinished()
        let level = recording?.ending?.level ?? context.info.endingLevel
        guard level <= context.options.level else { return }
        var record = context.makeRecord(.session, level, part: .session)
        record.code = Record.Code.sessionEnded
        record.leg = context.info.endingLeg
        record.message = recording?.ending?.message ?? Prose(context.info.endingWords)
        record.condition = context.info.endingCondition
        record.roundTrip = context.now.monotonic - context.info.began.monotonic
        record.details = context.info.summary
        context.emit(consume record)
    }

    /// Handles the answer about state that sessions share.
    mutating func handle(_ answer: SharedAnswer) {
        switch answer.kind {
        case .loop(let count, let span):
            reconnects.recordLoop(count, span, &context)
            recordEnd()
        case .noLoop: recordEnd()
        case .bindings(let accepted): context.login?.observe(.history(accepted))
        case .mark(let mark): context.outlet.request(.addToJournal(mark))
        case .claim(let claim): context.streamManagement?.endWaiting(by: claim)
        case .resumed(let earlier, let key): resumed(earlier, by: key)
        case .inherited(let legacy):
            roster.inherit(legacy.roster, context)
            resumption.inherit(legacy.counts)
        }
    }
}

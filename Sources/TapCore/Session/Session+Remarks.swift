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

    mutating func recordFault(
        _ fault: ScanFault,
        _ event: StreamEvent,
        _ direction: Direction,
        isForeign: Bool,
        isLate: Bool
    ) {
        let level = isLate ? Level.verbose : .error
        guard level <= context.options.level else { return }
        var record = context.makeRecord(isLate ? .note : .error, level, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = fault.offset
        record.length = event.length
        record.code = fault.code.rawValue
        if !isLate { record.condition = fault.condition.rawValue }
        let outcome =
            switch (context.refusesUnread, isLate) {
            case (true, false): "session closed"
            case (true, true): "the rest of this direction is dropped"
            case (false, _): "the rest of this direction is relayed without parsing"
            }
        record.message = Prose(
            isForeign
                ? foreignWords(direction)
                : "\(fault.explanation), at offset \(fault.offset) of stream \(event.epoch)\(offence(fault, event, direction)); "
                    + outcome
        )
        context.emit(consume record)
    }

    /// The offending bytes: up to 120 around the fault after authentication; before that, and in an item that may
    /// contain a secret, only the item's name and the one byte, so that no part of a password is shown.
    private func offence(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) -> String {
        let bytes = context.directions.bytes(direction)
        let start = fault.offset - event.offset
        guard start < UInt64(bytes.count) else { return "" }
        let at = Int(start)
        guard
            context.info.opened != nil && !event.head.mayHoldSecret && !event.isTruncated
                || context.options.redaction.showsRawBytes,
            let around = context.tools.redactor.excerpt(of: bytes, around: at)
        else {
            let name = event.head.name.isEmpty ? "" : " in <\(bytes.slice(event.head.name).string())>"
            return "\(name), byte 0x\(String(bytes[at], radix: 16, uppercase: true))"
        }
        return ", near \(bytes.slice(around).string())"
    }

    private func foreignWords(_ direction: Direction) -> String {
        let outcome = context.refusesUnread ? "session closed" : "relayed without parsing"
        if direction == .recv, context.login?.hasServerTLS == true {
            return "the server answered the clear-text stream with a TLS record: this port expects direct TLS; "
                + outcome
        }
        let guess = ProtocolGuess(context.directions.bytes(direction), isFinal: true)
        if direction == .recv, let name = guess?.serverProtocol {
            return "\(context.advised("the server's port speaks \(name), not XMPP; \(outcome)", .checkUpstream))"
        }
        let advice = guess?.advice.map { " \($0)" } ?? ""
        return "\(guess?.words ?? "these bytes"), not XMPP; \(outcome).\(advice)"
    }

    mutating func recordTorn(_ event: StreamEvent, _ direction: Direction) {
        var record = context.makeRecord(.note, .warn, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = event.offset
        record.length = event.length
        context.digest(direction, isFirst: true)
        record.digest = context.takeDigest(direction)
        record.code = "torn"
        record.message = "the connection ended inside an item, after \(event.length) bytes of it"
        record.isTruncated = true
        context.emit(consume record)
    }

    /// Records notes about the session as a whole.
    mutating func finishRecords() {
        if context.outlet.isEmpty { context.outlet.showNothing() }
        context.rules?.recordUnsent(&context)
        context.info.unanswered = requests.count + requests.forgotten
        context.negotiation.close()
        context.endTimeline()
        for direction in Direction.allCases { recordOpaqueBytes(direction) }
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

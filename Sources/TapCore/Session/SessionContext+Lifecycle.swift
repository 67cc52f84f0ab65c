internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Records of a session's beginning and end, and of faults.
extension SessionContext {
    mutating func recordBeginning(_ beginning: Record.Beginning) {
        guard options.level >= .info else { return }
        var record = makeRecord(.session, .info, part: .net)
        record.code = Record.Code.sessionBegan
        record.message = beginning.words
        var details: Attributes = [:]
        details[Record.Detail.source] = beginning.source.map { .string($0) }
        details[Record.Detail.upstream] = beginning.upstream.map { .string($0) }
        if !details.entries.isEmpty { record.details = details }
        emit(consume record)
    }

    /// The session is open: stanzas flow, in cut-through, under the limits of an authenticated session.
    ///
    /// - Parameter earlier: The session that this one continues.
    mutating func open(_ words: String, resumes earlier: UInt64?) {
        info.opened = now
        login = nil
        for direction in Direction.allCases {
            directions[direction].limits = options.limits
            cutThrough(direction)
        }
        // Inline requests that this granted are finished too.
        for name in [LoginStep.Name.bind, .mechanism] { timeline.cancel(name) }
        finishStep(.ready, .ok, since: info.began.monotonic)
        timeline.forgetDetails()
        recordReady(words, resumes: earlier)
    }

    private mutating func recordReady(_ words: String, resumes earlier: UInt64?) {
        guard options.level >= .info else { return }
        let elapsed = now.monotonic - info.began.monotonic
        var record = makeRecord(.session, .info, part: .session)
        record.code = Record.Code.sessionReady
        record.message =
            "ready\(info.jid.map { " as \(tools.redactor.disclose(address: $0))" } ?? ""): \(words)"
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

    mutating func recordFault(
        _ fault: ScanFault,
        _ event: StreamEvent,
        _ direction: Direction,
        isForeign: Bool,
        isLate: Bool
    ) {
        let level = isLate ? Level.verbose : .error
        guard level <= options.level else { return }
        var record = makeRecord(isLate ? .note : .error, level, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = fault.offset
        record.length = event.length
        record.code = fault.code.rawValue
        if !isLate { record.condition = fault.condition.rawValue }
        let outcome =
            switch (refusesUnread, isLate) {
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
        emit(consume record)
    }

    /// The offending bytes: up to 120 around the fault after authentication; before that, and in an item that may
    /// contain a secret, only the item's name and the one byte, so that no part of a password is shown.
    private func offence(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) -> String {
        let bytes = directions.bytes(direction)
        let start = fault.offset - event.offset
        guard start < UInt64(bytes.count) else { return "" }
        let at = Int(start)
        guard
            info.opened != nil && !event.head.mayHoldSecret && !event.isTruncated
                || options.redaction.showsRawBytes,
            let around = tools.redactor.excerpt(of: bytes, around: at)
        else {
            let name = event.head.name.isEmpty ? "" : " in <\(bytes.slice(event.head.name).string())>"
            return "\(name), byte 0x\(String(bytes[at], radix: 16, uppercase: true))"
        }
        return ", near \(bytes.slice(around).string())"
    }

    private func foreignWords(_ direction: Direction) -> String {
        let outcome = refusesUnread ? "session closed" : "relayed without parsing"
        if direction == .recv, login?.hasServerTLS == true {
            return "the server answered the clear-text stream with a TLS record: this port expects direct TLS; "
                + outcome
        }
        let guess = ProtocolGuess(directions.bytes(direction), isFinal: true)
        if direction == .recv, let name = guess?.serverProtocol {
            return "\(advised("the server's port speaks \(name), not XMPP; \(outcome)", .checkUpstream))"
        }
        let advice = guess?.advice.map { " \($0)" } ?? ""
        return "\(guess?.words ?? "these bytes"), not XMPP; \(outcome).\(advice)"
    }

    mutating func recordTorn(_ event: StreamEvent, _ direction: Direction) {
        var record = makeRecord(.note, .warn, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = event.offset
        record.length = event.length
        digest(direction, isFirst: true)
        record.digest = takeDigest(direction)
        record.code = "torn"
        record.message = "the connection ended inside an item, after \(event.length) bytes of it"
        record.isTruncated = true
        emit(consume record)
    }

    /// Records the end of the session, its last record.
    ///
    /// - Parameter recorded: The record of the end in a recording, if items do not show it.
    mutating func recordEnd(as recorded: Record?) {
        let level = recorded?.level ?? info.endingLevel
        guard level <= options.level else { return }
        var record = makeRecord(.session, level, part: .session)
        record.code = Record.Code.sessionEnded
        record.leg = info.endingLeg
        record.message = recorded?.message ?? Prose(info.endingWords)
        record.condition = info.endingCondition
        record.roundTrip = now.monotonic - info.began.monotonic
        record.details = info.summary
        emit(consume record)
    }
}

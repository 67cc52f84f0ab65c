internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// Handles items that are too long, and bytes that are not XMPP.
extension SessionContext {
    /// Refuses an item larger than the limit in store mode; nil for other items.
    func interceptOversize(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard event.isTruncated, directions[direction].isStoring else { return nil }
        return .refuse(oversize(event, direction))
    }

    /// Handles a fragment of an item larger than the limit.
    mutating func handleFragment(_ event: StreamEvent, _ direction: Direction, isFirst: Bool) {
        // In an open session, the item is relayed as without rules and injections.
        if passesOversize(event, direction) { directions[direction].drain() }
        if isFirst, let rules { warnOfUnjudged(event, direction, rules) }
        // In store mode, the first fragment of the item closes the session.
        guard directions[direction].isStoring else {
            if isFirst { counters.count(.limitHit(itemLimit(direction))) }
            apply(.pass, to: event, direction)
            return digest(direction, isFirst: isFirst)
        }
        if isFirst { apply(.refuse(oversize(event, direction)), to: event, direction) }
        action = nil
    }

    /// Returns whether an item larger than the limit is forwarded although the direction stores items.
    ///
    /// An element other than a stanza may begin compression, or contain the counts of stream management. It is not
    /// forwarded if undecoded bytes must not be.
    private func passesOversize(_ event: StreamEvent, _ direction: Direction) -> Bool {
        guard !options.storesAlways, info.opened != nil, directions[direction].isStoring else { return false }
        return event.head.kind != .nonza || !refusesUnread
    }

    /// Warns if a stanza is forwarded without evaluating the rules, or the pause, that apply to it.
    private mutating func warnOfUnjudged(_ event: StreamEvent, _ direction: Direction, _ rules: SessionRules) {
        guard !directions[direction].isStoring, event.head.kind != .nonza, info.opened != nil,
            rules.set.mayMatch(direction, isOpen: true, event.head.kind) || rules.pause?.covers(direction) == true
        else { return }
        let limit = directions[direction].limits.itemBytes
        report(
            .note,
            .warn,
            code: "rules-not-evaluated",
            "rules were not evaluated for a stanza larger than \(limit) bytes, the limit of an item; it is relayed",
            direction: direction,
            part: .rules,
            remedy: .refuseOversize
        )
    }

    private func oversize(_ event: StreamEvent, _ direction: Direction) -> Refusal {
        let limit = directions[direction].limits.itemBytes
        let isStranger = itemLimit(direction) == .loginItem
        let size = "\(limit) bytes, the limit \(isStranger ? "before authentication" : "of a session")"
        return Refusal(
            answer: .streamError(.policyViolation, "An item is larger than \(size).", fault: direction),
            code: ScanFault.Code.itemTooLong.rawValue,
            message:
                "an item longer than \(size), at offset \(event.offset) of stream \(event.epoch); the session is closed",
            condition: .policyViolation,
            direction: direction,
            diagnosis: "an item of the \(direction.source.name) is larger than \(size)"
        )
    }

    // MARK: Faults

    /// Returns whether the fault is a second end tag, which some clients send, and which is harmless.
    private func isRepeatedEnd(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) -> Bool {
        guard fault.code == .afterStreamEnd else { return false }
        let bytes = directions.bytes(direction)
        if isOfMessages { return bytes.count > 6 && bytes.extracting(..<6).equals("<close") }
        return bytes.count > 1 && bytes[0] == 0x3C && bytes[1] == 0x2F
    }

    /// Returns whether the first bytes of a server are a TLS alert or handshake record (RFC 8446 §5.1). XML cannot
    /// begin like that.
    private func isTLSRecord(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty, bytes[0] == 0x15 || bytes[0] == 0x16 else { return false }
        return bytes.count < 2 || bytes[1] == 3
    }

    mutating func handleFault(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) {
        if direction == .recv, let effects = negotiation.asymmetric?.refuseEarlyBytes(self) {
            return effects.forEach { perform($0) }
        }
        let isForeign = directions[direction].decoder.epoch == 0 && fault.code == .notXML && !isOfMessages
        // In an ordinary logout, an acknowledgement or a presence may arrive after the end of the stream.
        let isLate = fault.code == .afterStreamEnd && info.opened != nil
        if isRepeatedEnd(fault, event, direction) {
            report(
                .note,
                .verbose,
                code: "repeated-end",
                "the end of the stream, repeated",
                direction: direction
            )
        } else {
            if !isLate { counters.count(.parseError(direction.source, fault.code)) }
            if isForeign, direction == .recv, isTLSRecord(directions.bytes(.recv)) {
                login?.observe(.serverBeganTLS)
            } else if isForeign, direction == .recv,
                let name = ProtocolGuess(directions.bytes(.recv), isFinal: true)?.serverProtocol
            {
                login?.observe(.serverSpeaks(name))
            }
            recordFault(fault, event, direction, isForeign: isForeign, isLate: isLate)
            login?.observe(.fault(fault, direction, isForeign: isForeign))
        }
        if isOfMessages, !negotiation.isRefusing { return handleMessageFault(fault, event, direction) }
        if isLate { return stopDecoding(direction, .ended) }
        // A log may not show the items in the order of the bytes.
        if !options.isDecoded, !isRepeatedEnd(fault, event, direction) {
            failStep(condition: fault.condition.rawValue, isForeign ? "no XMPP" : Prose(fault.explanation))
        }
        if negotiation.isRefusing {
            return direction == .send ? answerRefused() : finish(reset: false)
        }
        if refusesUnread {
            return refuse(fault.condition, "\(fault.explanation), at offset \(fault.offset)", fault: direction)
        }
        stopDecoding(direction, isForeign ? .foreign : .unparsable)
        if isForeign {
            stopDecoding(direction.opposite, .paired)
            negotiation.stopDecoding(nil)
        }
    }

    private mutating func recordFault(
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
            case (false, _) where isOfMessages: "relayed unchanged"
            case (false, _): "the rest of this direction is relayed without parsing"
            }
        record.message = Prose(
            isForeign
                ? foreignDescription(direction)
                : "\(fault.explanation), at offset \(fault.offset) of stream \(event.epoch)\(offence(fault, event, direction)); "
                    + outcome
        )
        emit(consume record)
    }

    /// Describes the offending bytes. After authentication, it shows up to 120 bytes around the fault. Before
    /// authentication, and for an item that may contain a secret, it shows only the item's name and the one byte, so
    /// that no part of a password is shown.
    private func offence(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) -> String {
        let bytes = directions.bytes(direction)
        let start = fault.offset - event.offset
        guard start < UInt64(bytes.count) else { return "" }
        let at = Int(start)
        guard
            info.opened != nil && !event.head.mayContainSecret && !event.isTruncated
                || options.redaction.showsRawBytes,
            let around = tools.redactor.excerpt(of: bytes, around: at)
        else {
            let name = event.head.name.isEmpty ? "" : " in <\(bytes.slice(event.head.name).string())>"
            return "\(name), byte 0x\(String(bytes[at], radix: 16, uppercase: true))"
        }
        return ", near \(bytes.slice(around).string())"
    }

    private func foreignDescription(_ direction: Direction) -> String {
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
        return "\(guess?.description ?? "these bytes"), not XMPP; \(outcome).\(advice)"
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
}

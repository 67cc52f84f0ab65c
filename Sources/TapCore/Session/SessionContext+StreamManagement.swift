internal import TapRecord
import TapStreamManagement
import XMPPCore

// Translates the stanza counts in elements of stream management, if the counts of the two ends differ.
extension SessionContext {
    /// Translates an element that contains a count for its receiver. For a retransmitted stanza, repeats the earlier
    /// decision.
    ///
    /// - Parameter login: The decoder of the client's login, before this element.
    mutating func interceptStreamManagement(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading,
        _ login: SASLDecoder
    ) -> ItemDecision? {
        // A recording contains the reports of the relayed session already, and may lack stanzas.
        guard event.item == .element, !options.isRecorded else { return nil }
        guard event.head.kind == .nonza else { return decideRepeated(event, direction) }
        guard !event.isTruncated else { return nil }
        if event.head.namespace.namespace == .streams { return interceptRedirect(direction) }
        guard StreamManagementTranslator.concerns(event.head) else { return nil }
        // If the other direction is not decoded, the answer to this element, or the stanzas that it counts, are unknown. If
        // the counts have diverged, the other direction is dropped.
        if directions[direction.opposite].isOpaque, !outlet.hasDiverged { outlet.stopCounting(isOn: true) }
        if outlet.hasLostCounts, streamManagement == nil { return nil }
        let streamManagement = streamManagement ?? StreamManagement(options)
        guard let previous = previous(event, direction, streamManagement, login) else {
            outlet.count(in: streamManagement)
            return .buffer(until: .counts)
        }
        let translation = streamManagement.translate(
            directions[direction].decoder,
            direction,
            previous: previous
        )
        outlet.count(in: streamManagement.isIdle ? nil : streamManagement)
        reading = .streamManagement(translation)
        if translation.answer != nil { return .answer }
        return translation.bytes.map { .replace(EditedItem(bytes: $0, summary: translation.explanation)) }
    }

    /// Records an element of stream management, with the counts of a relayed session after it.
    mutating func recordStreamManagement(_ event: StreamEvent, _ direction: Direction) {
        guard (rules?.ruling?.level ?? .info) <= options.level else { return }
        var record = makeRecord(event, direction, .element, level: .info)
        // A recording may lack stanzas, and so may the log or the packets of another program.
        if isLive { record.sm = streamManagement?.counts }
        emit(consume record)
    }

    /// Drops a retransmitted stanza if it was dropped before the session was resumed.
    private func decideRepeated(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        let repeated = streamManagement?.retransmission(event, directions[direction])
        return repeated?.outcome == .dropped ? .drop : nil
    }

    /// Replaces a redirect (RFC 6120 §4.9.3.19) by the error `reset`, for a client whose counts only xmpptap can
    /// translate until its session ends.
    private func interceptRedirect(_ direction: Direction) -> ItemDecision? {
        guard direction == .recv, outlet.hasDiverged, options.translatesCounts,
            let bytes = StreamManagementTranslator.withoutRedirect(directions.recv.decoder)
        else { return nil }
        return .replace(EditedItem(bytes: bytes, summary: "reset instead of see-other-host"))
    }

    /// Returns the counts of the session that an element requests to resume; nil if the request must wait for them.
    private mutating func previous(
        _ event: StreamEvent,
        _ direction: Direction,
        _ streamManagement: StreamManagement,
        _ login: SASLDecoder
    ) -> StreamManagementTranslator.Previous? {
        guard direction == .send, info.opened == nil else { return .unknown }
        var user = info.user
        if event.head.namespace.namespace.isSASL2 {
            // The user name is not known yet, because the login is decoded only when it is recorded.
            var login = login
            guard let element = try? tools.parser.parse(directions.send.decoder) else { return .unknown }
            _ = login.decode(element, .send)
            user = login.user
        }
        if let isInJournal = streamManagement.takeJournalAnswer() { return isInJournal ? .lost : .unknown }
        let mayWait = directions.send.isStoring && !negotiation.isRefusing && !options.isBOSH
        guard let claim = streamManagement.takeClaim() else {
            let id = StreamManagementTranslator.resumedID(directions.send.decoder)
            let keys = Resumption.keys(id, user: user, self)
            guard mayWait, !keys.isEmpty else { return .unknown }
            requestShared(.claim(keys))
            streamManagement.wait(with: event, for: .claim, at: now.monotonic)
            return nil
        }
        switch claim {
        case .unknown: return .unknown
        case .ready(let ledgers): return .known(ledgers)
        case .lost: return .lost
        case .connected(let session):
            guard !streamManagement.hasWaited else { return .lost }
            outlet.request(.displace(session))
            streamManagement.wait(with: event, for: .displacement, at: now.monotonic)
        case .unlisted(let marks):
            outlet.request(.searchJournal(marks))
            streamManagement.wait(with: event, for: .journal(marks), at: now.monotonic)
        }
        return nil
    }

    /// Continues with the items after a request to resume that has waited.
    mutating func resume(after waiting: StreamManagement.Waiting) {
        guard let undecodedReason = waiting.undecodedReason else { return updateRelayMode(.send) }
        if !endWaiting(undecodedReason) { stopDecoding(.send, undecodedReason) }
    }

    /// Removes and returns the stanzas to inject again, because they were lost with an earlier connection; empty before
    /// the session is open.
    func takeLost() -> [Injection] {
        guard let streamManagement, info.opened != nil else { return [] }
        return streamManagement.takeLost()
    }

    /// Requests an acknowledgement if many stanzas are stored until the next one.
    mutating func requestAcknowledgement(_ direction: Direction) {
        guard let streamManagement, info.opened != nil, streamManagement.wantsRequest(direction),
            directions[direction].isStoring, mayInsert(direction), !negotiation.isFinished,
            let request = streamManagement.makeRequest(direction)
        else { return }
        answer([(.element, request)], to: direction.destination)
    }

    /// Reports the counts in a stream error about an acknowledgement that is too high (XEP-0198 §6), if the counts have
    /// diverged: the peer names its own counts, and the report gives those of the other end.
    mutating func reportHandledCount(_ error: Element, _ direction: Direction) {
        guard outlet.hasDiverged, let ledger = streamManagement?.ledgers[direction],
            let counts = error.firstChild(where: { $0.isNamed("handled-count-too-high") }),
            let h = counts.attribute("h").flatMap({ UInt32($0) }),
            let sent = counts.attribute("send-count").flatMap({ UInt32($0) })
        else { return }
        report(
            .note,
            .info,
            code: "handled-count-translated",
            "in the counts of the \(direction.source.other.name): h=\(ledger.receiverCount(h)), "
                + "send-count=\(ledger.receiverCount(sent))",
            direction: direction
        )
    }

    /// Reports a wrong acknowledgement, and answers a request to resume that the server must not receive.
    mutating func handle(_ translation: StreamManagementTranslator.Translation, _ direction: Direction) {
        if translation.bytes != nil { counters.count(.translated) }
        if let finding = translation.finding { report(finding, direction) }
        guard let answer = translation.answer else { return }
        self.answer([(.element, answer)], to: direction.source)
        finishStep(.resume, .failed(condition: "item-not-found", "xmpptap no longer has this session's counts"))
    }

    private mutating func report(_ finding: AcknowledgementFinding, _ direction: Direction) {
        let (peer, other) = (direction.source.name, direction.source.other.name)
        let fault: (code: Attributes.Value, explanation: String) =
            switch finding.fault {
            case .tooHigh: ("too-high", "\(finding.difference) more than were sent to it")
            case .tooLow: ("too-low", "\(finding.difference) fewer than were sent to it, in several answers in a row")
            case .backwards: ("backwards", "\(finding.difference) fewer than it acknowledged before")
            case .unreadable: ("unreadable", "")
            }
        let explanation =
            finding.fault == .unreadable
            ? "the \(peer) sent an acknowledgement without a number (h)"
            : "the \(peer) acknowledged h=\(finding.count), \(fault.explanation)"
        let correct = finding.lastCorrect > 0 ? "was right after stanza \(finding.lastCorrect) and " : ""
        report(
            .note,
            .warn,
            code: "wrong-acknowledgement",
            "\(explanation); its count of the \(other)'s stanzas \(correct)is wrong after stanza \(finding.firstWrong)",
            direction: direction,
            details: [
                "fault": fault.code, "h": .integer(Int64(finding.count)),
                "difference": .integer(Int64(clamping: finding.difference)),
                "last_correct": .integer(Int64(clamping: finding.lastCorrect)),
                "first_wrong": .integer(Int64(clamping: finding.firstWrong)),
            ]
        )
    }
}

internal import TapRecord
import TapStreamManagement
import XMPPCore

// Stream management: stanzas are counted for both ends, and acknowledgements translated if the counts have diverged.
extension Session {
    /// The difference between the counts of the two ends, in both directions together.
    package var divergence: UInt64 { streamManagement?.divergence ?? 0 }

    /// The server has enabled stream management.
    mutating func noteEnabled(_ enabled: Element) {
        resumption.enable(enabled, reconnects.client, &context)
        resumption.observeLocation(enabled, &context)
    }

    /// The server has resumed an earlier session: this one continues it with its address.
    ///
    /// - Parameter identifier: The address in the SASL2 success, if any.
    mutating func resume(_ resumed: Element?, identifier: String? = nil) {
        let id = resumed?.attribute("previd")
        let keys = Resumption.keys(id, user: info.user, identifier: identifier, context)
        if keys.isEmpty { self.resumed(nil, by: nil) } else { context.ask(.resume(keys)) }
    }

    /// Handles the answer about the session that this one continues.
    mutating func resumed(_ earlier: ResumptionTable.Suspended?, by key: ResumptionTable.Key?) {
        if let earlier, let key {
            resumption.resume(earlier, by: key, &context)
            info.jid = earlier.jid
            reconnects.resume(earlier.client)
            if let legacy = earlier.legacy {
                roster.replace(by: legacy.roster)
                if let rules, let memory = legacy.rules { rules.resume(memory) }
            }
        }
        let description =
            earlier.map { "resumed session \($0.session)" } ?? "resumed a session that xmpptap has no record of"
        becomeOpen(description, resumes: earlier?.session)
        injectLost()
    }

    /// Ends this session, whose connections still exist, because the given session resumes it.
    mutating func giveUp(to session: UInt64) {
        if info.ending == nil {
            info.ending = .unclean(leg: .client, .finished)
            info.reason = "resumed as session \(session)"
        }
        finish(reset: true)
    }

    /// Once the counts have diverged, acknowledgements must be decided on before they are forwarded, until the session
    /// ends. A partly forwarded one is still correct: it counts earlier stanzas.
    mutating func followDivergence() {
        guard let streamManagement, streamManagement.takeDivergence() else { return }
        resumption.diverge(&context)
        for direction in Direction.allCases { storeAndForward(direction) }
        guard streamManagement.namesOtherPlace else { return }
        note(
            .note,
            .warn,
            code: "other-location",
            "stanzas were injected or dropped; the session can be resumed only through xmpptap, "
                + "not at the other host that the server has named",
            direction: .recv
        )
    }

    /// Requests an acknowledgement if many stanzas are stored until one arrives.
    mutating func requestAcknowledgement(_ direction: Direction, _ streamManagement: StreamManagement) {
        guard streamManagement.wantsRequest(direction), context.directions[direction].isStoring,
            context.mayInsert(direction), !negotiation.isFinished,
            let request = streamManagement.makeRequest(direction)
        else { return }
        context.answer([(.element, request)], to: direction.destination)
    }

    // MARK: Elements

    /// Translates an element that contains a count for its receiver; repeats the decision on a retransmitted stanza.
    mutating func interceptStreamManagement(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        // A recording contains the earlier findings, and may lack stanzas.
        guard event.item == .element, recording == nil else { return nil }
        guard event.head.kind == .nonza else { return decideRepeated(event, direction) }
        guard !event.isTruncated else { return nil }
        if event.head.namespace.namespace == .streams { return interceptRedirect(direction) }
        guard StreamManagementTranslator.concerns(event.head) else { return nil }
        let streamManagement = streamManagement ?? StreamManagement(options)
        guard let previous = previous(event, direction, streamManagement) else {
            context.outlet.count(in: streamManagement)
            return .buffer(until: .counts)
        }
        let translation = streamManagement.translate(
            context.directions[direction].decoder,
            direction,
            previous: previous
        )
        context.outlet.count(in: streamManagement.isIdle ? nil : streamManagement)
        reading = .streamManagement(translation)
        if translation.answer != nil { return .answer }
        return translation.bytes.map { .replace(EditedItem(bytes: $0, words: translation.words)) }
    }

    /// A stanza that was dropped before the session was resumed is dropped again.
    private func decideRepeated(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        let repeated = streamManagement?.retransmission(event, context.directions[direction])
        return repeated?.outcome == .dropped ? .drop : nil
    }

    /// Decides on a redirect (RFC 6120 §4.9.3.19) of a client that needs xmpptap until its session ends: it receives a
    /// reset instead.
    private func interceptRedirect(_ direction: Direction) -> ItemDecision? {
        guard direction == .recv, context.outlet.hasDiverged, options.translatesCounts,
            let bytes = StreamManagementTranslator.withoutRedirect(context.directions.recv.decoder)
        else { return nil }
        return .replace(EditedItem(bytes: bytes, words: "reset instead of see-other-host"))
    }

    /// Returns what is known of the session that an element requests to resume; nil if the request must wait for that.
    private mutating func previous(
        _ event: StreamEvent,
        _ direction: Direction,
        _ streamManagement: StreamManagement
    ) -> StreamManagementTranslator.Previous? {
        guard direction == .send, info.opened == nil else { return .unknown }
        var user = info.user
        if event.head.namespace.namespace.isSASL2 {
            // The user name is not known yet: the login is decoded when it is recorded.
            var login = sasl
            guard let element = try? tools.parser.parse(context.directions.send.decoder) else { return .unknown }
            _ = login.decode(element, .send)
            user = login.user
        }
        if let isInJournal = streamManagement.takeJournalAnswer() { return isInJournal ? .lost : .unknown }
        let mayWait = context.directions.send.isStoring && !negotiation.isRefusing
        guard let claim = streamManagement.takeClaim() else {
            let id = StreamManagementTranslator.resumedID(context.directions.send.decoder)
            let keys = Resumption.keys(id, user: user, context)
            guard mayWait, !keys.isEmpty else { return .unknown }
            context.ask(.claim(keys))
            streamManagement.wait(with: event, for: .claim, at: context.now.monotonic)
            return nil
        }
        switch claim {
        case .unknown: return .unknown
        case .ready(let ledgers): return .known(ledgers)
        case .lost: return .lost
        case .connected(let session):
            guard !streamManagement.hasWaited else { return .lost }
            context.outlet.request(.displace(session))
            streamManagement.wait(with: event, for: .displacement, at: context.now.monotonic)
        case .unlisted(let marks):
            context.outlet.request(.searchJournal(marks))
            streamManagement.wait(with: event, for: .journal(marks), at: context.now.monotonic)
        }
        return nil
    }

    /// Ends the wait of a request to resume, since its direction is not decoded after it; returns false if none waits.
    mutating func endWaiting(_ why: DirectionRelay.Opacity) -> Bool {
        guard streamManagement?.endWaiting(why) == true else { return false }
        context.directions.send.hasInput = true
        return true
    }

    /// Handles a request to resume again after its wait.
    mutating func goesOnResuming() -> Bool {
        guard let waiting = streamManagement?.takeWaiting() else { return false }
        release(.send)
        handle(waiting.event, .send)
        streamManagement?.forgetAnswers()
        guard let opacity = waiting.opacity else {
            settleMode(.send)
            return true
        }
        if !endWaiting(opacity) { turnOpaque(.send, opacity) }
        return true
    }

    /// Records the fault of a count, answers a request that the server must not receive, and injects lost stanzas
    /// again.
    mutating func handle(_ translation: StreamManagementTranslator.Translation, _ direction: Direction) {
        if translation.bytes != nil { counters.count(.translated) }
        if let finding = translation.finding { report(finding, direction) }
        if let answer = translation.answer {
            context.answer([(.element, answer)], to: direction.source)
            finish(.resume, .failed(condition: "item-not-found", "xmpptap no longer has this session's counts"))
        }
        if direction == .recv { injectLost() }
    }

    /// Injects stanzas again that were lost with an earlier connection, once the session is open.
    private mutating func injectLost() {
        guard let streamManagement, info.opened != nil else { return }
        for direction in Direction.allCases {
            for item in streamManagement.takeLost(direction) {
                inject(Injection(item, to: direction.destination, number: Injection.repeatedNumber))
            }
        }
    }

    /// A peer ends its stream because an acknowledgement is too high (XEP-0198 §6): it sends its own counts, which the
    /// other end does not know if the counts have diverged.
    mutating func noteHandledCount(_ error: Element, _ direction: Direction) {
        guard context.outlet.hasDiverged, let ledger = streamManagement?.ledgers[direction],
            let told = error.firstChild(where: { $0.isNamed("handled-count-too-high") }),
            let h = told.attribute("h").flatMap({ UInt32($0) }),
            let sent = told.attribute("send-count").flatMap({ UInt32($0) })
        else { return }
        note(
            .note,
            .info,
            code: "handled-count-translated",
            "in the counts of the \(direction.source.other.name): h=\(ledger.receiverCount(h)), "
                + "send-count=\(ledger.receiverCount(sent))",
            direction: direction
        )
    }

    private mutating func report(_ finding: AcknowledgementFinding, _ direction: Direction) {
        let (peer, other) = (direction.source.name, direction.source.other.name)
        let fault: (code: Attributes.Value, words: String) =
            switch finding.fault {
            case .tooHigh: ("too-high", "\(finding.difference) more than were sent to it")
            case .tooLow: ("too-low", "\(finding.difference) fewer than were sent to it, in several answers in a row")
            case .backwards: ("backwards", "\(finding.difference) fewer than it acknowledged before")
            case .unreadable: ("unreadable", "")
            }
        let words =
            finding.fault == .unreadable
            ? "the \(peer) sent an acknowledgement without a number (h)"
            : "the \(peer) acknowledged h=\(finding.count), \(fault.words)"
        let correct = finding.lastCorrect > 0 ? "was right after stanza \(finding.lastCorrect) and " : ""
        note(
            .note,
            .warn,
            code: "wrong-acknowledgement",
            "\(words); its count of the \(other)'s stanzas \(correct)is wrong after stanza \(finding.firstWrong)",
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

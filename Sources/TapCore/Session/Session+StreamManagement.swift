internal import TapRecord
import TapStreamManagement
import XMPPCore

// Stream management: stanzas are counted for both ends, and acknowledgements translated if the counts have diverged.
extension Session {
    /// The difference between the counts of the two ends, in both directions together.
    package var divergence: UInt64 { context.streamManagement?.divergence ?? 0 }

    /// The server has resumed an earlier session: this one continues it with its address.
    ///
    /// - Parameter identifier: The address in the SASL2 success, if any.
    mutating func resume(_ resumed: Element?, identifier: String? = nil) {
        let id = resumed?.attribute("previd")
        let keys = Resumption.keys(id, user: context.info.user, identifier: identifier, context)
        if keys.isEmpty { self.resumed(nil, by: nil) } else { context.ask(.resume(keys)) }
    }

    /// Handles the answer about the session that this one continues.
    mutating func resumed(_ earlier: ResumptionTable.Suspended?, by key: ResumptionTable.Key?) {
        if let earlier, let key {
            resumption.resume(earlier, by: key, &context)
            context.info.jid = earlier.jid
            reconnects.resume(earlier.client)
            if let legacy = earlier.legacy {
                roster.replace(by: legacy.roster)
                if let rules = context.rules, let memory = legacy.rules { rules.resume(memory) }
            }
        }
        let description =
            earlier.map { "resumed session \($0.session)" } ?? "resumed a session that xmpptap has no record of"
        perform([.open(description, resumes: earlier?.session)])
        injectLost()
        if let rules = context.rules, !rules.earlier.isEmpty { settleEarlierRules(rules) }
    }

    /// Ends this session, whose connections still exist, because the given session resumes it.
    mutating func giveUp(to session: UInt64) {
        if context.info.ending == nil {
            context.info.ending = .unclean(leg: .client, .finished)
            context.info.reason = "resumed as session \(session)"
        }
        context.finish(reset: true)
    }

    /// Once the counts have diverged, acknowledgements must be decided on before they are forwarded, until the session
    /// ends. A partly forwarded one is still correct: it counts earlier stanzas.
    mutating func followDivergence() {
        guard let streamManagement = context.streamManagement, streamManagement.takeDivergence() else { return }
        resumption.diverge(&context)
        for direction in Direction.allCases { context.storeAndForward(direction) }
        guard streamManagement.namesOtherPlace else { return }
        context.note(
            .note,
            .warn,
            code: "other-location",
            "stanzas were injected or dropped; the session can be resumed only through xmpptap, "
                + "not at the other host that the server has named",
            direction: .recv
        )
    }

    /// Handles a request to resume again after its wait.
    mutating func goesOnResuming() -> Bool {
        guard let waiting = context.streamManagement?.takeWaiting() else { return false }
        context.release(.send)
        context.rules?.restoreRuling()
        handle(waiting.event, .send, isRepeated: true)
        context.streamManagement?.forgetAnswers()
        guard let opacity = waiting.opacity else {
            context.settleMode(.send)
            return true
        }
        if !context.endWaiting(opacity) { context.turnOpaque(.send, opacity) }
        return true
    }

    /// Records the fault of a count, answers a request that the server must not receive, and injects lost stanzas
    /// again.
    mutating func handle(_ translation: StreamManagementTranslator.Translation, _ direction: Direction) {
        if translation.bytes != nil { context.counters.count(.translated) }
        if let finding = translation.finding { context.report(finding, direction) }
        if let answer = translation.answer {
            context.answer([(.element, answer)], to: direction.source)
            context.finishStep(
                .resume,
                .failed(condition: "item-not-found", "xmpptap no longer has this session's counts")
            )
        }
        if direction == .recv { injectLost() }
    }

    /// Injects stanzas again that were lost with an earlier connection, once the session is open.
    private mutating func injectLost() {
        guard let streamManagement = context.streamManagement, context.info.opened != nil else { return }
        for direction in Direction.allCases {
            for item in streamManagement.takeLost(direction) {
                inject(Injection(item, to: direction.destination, number: Injection.repeatedNumber))
            }
        }
    }
}

internal import TapRecord
import XMPPCore

// The effects of TLS: ``TLSTermination``, ``AsymmetricTLS``, ``StartTLS`` and ``TLSPolicy`` return them.
extension Session {
    /// The TLS negotiation of the legs; nil before and after.
    public var tls: TLSNegotiation? { termination.negotiation }

    // MARK: Items

    /// Decides on an item while TLS begins on one leg only.
    mutating func interceptAsymmetricTLS(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        switch context.negotiation.asymmetric?.decide(event, direction, &context) {
        case nil, .other: return nil
        case .item(let decision, let offer):
            reading = .asymmetricTLS(offer)
            return decision
        case .relayInClear:
            perform([.relayInClear])
            return nil
        }
    }

    // MARK: Effects

    /// Carries out effects if there are any; returns whether there are.
    mutating func performs(_ effects: [TLSEffect]?) -> Bool {
        guard let effects else { return false }
        perform(effects)
        return true
    }

    /// Carries out effects in order.
    mutating func perform(_ effects: [TLSEffect]) {
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: TLSEffect) {
        switch effect {
        case .requestTLS: _ = context.negotiation.requestTLS()
        case .declineTLS: _ = context.negotiation.declineTLS()
        case .beginHandshake: context.negotiation.beginHandshake()
        case .enterTLS: context.negotiation.enterTLS()
        case .forgetClear: context.forgetClear()
        case .choose(let domain): context.chosenDomain = domain
        case .secured(let leg, let secured):
            context.negotiation.bridged?.secure(leg, secured, isServerVerified: !context.info.isUnverified)
        case .awaitConsent: termination.awaitConsent(context.options)
        case .openInside: perform(context.negotiation.asymmetric?.openInside() ?? [])
        case .relayInClear:
            context.release(.recv)
            context.negotiation.asymmetric = nil
            context.release(.send)

        case .begin(let step, let leg, let side, let details):
            context.beginStep(step, key: leg?.name.description, awaits: side, details: details)
        case .finish(let step, let leg, let outcome, let details):
            context.finishStep(step, key: leg?.name.description, outcome, details: details)
        case .cancel(let step): context.timeline.cancel(step)
        case .observe(let event):
            context.login?.observe(event)
            if case .secured = event { context.askAboutBindings() }
        case .blame(let cause, let failure):
            context.blame(
                cause,
                at: .tls,
                failure.words,
                side: failure.side,
                condition: failure.code,
                remedy: failure.remedy
            )

        case .hold(let direction): context.hold(direction)
        case .release(let direction): context.release(direction)
        case .releaseClient:
            if context.info.version == nil || context.negotiation.bridged?.awaitFeatures(&context) != true {
                context.release(.send)
            }
        case .buffer(let items, let direction): context.directions[direction].setBuffered(items)
        case .enterStream(let direction): context.directions[direction].enterTLS()
        case .expectRestart: for direction in Direction.allCases { context.directions[direction].mayRestart = true }
        case .passThrough: beginTLS(directly: false)

        case .handle(let event, let direction, let offer): handle(event, direction, offer)
        case .receive(let bytes, let direction):
            if receive(direction, bytes.span, at: context.now) == .relay { context.outlet.pass(bytes, direction) }
        case .pass(let bytes, let direction): context.outlet.pass(bytes, direction)
        case .say(let items, let leg, let opensStream):
            context.answer((opensStream ? context.header() : []) + items, to: leg)
        case .request(let command): context.outlet.request(.tls(command))

        case .record(let report): context.record(report)
        case .warn(let code, let words, let direction):
            context.note(code: code, words, direction: direction, part: .tls)

        case .ended(let leg, let end): ended(leg, end)
        case .refuse(let refusal): context.refuse(refusal)
        case .close(let condition, let text): context.refuse(condition, text)
        case .end(let farewell): end(farewell)
        case .stop: context.finish(reset: false)
        }
    }

    private mutating func handle(_ event: StreamEvent, _ direction: Direction, _ offer: StreamFeatures?) {
        switch event.item {
        case .header: streams.handleHeader(event, direction, &context)
        case .end: Streams.handleEnd(event, direction, &context)
        default: perform(FeaturesOffer.handle(event, offer, &context))
        }
    }

    private mutating func end(_ farewell: TLSEffect.Farewell) {
        switch farewell {
        case .nothing: break
        case .error(let condition, let text): context.sayError(condition, text, to: .client)
        case .failure: context.sayFailure()
        case .alert(let alert): return context.alert(alert)
        }
        context.finishLegs()
    }
}

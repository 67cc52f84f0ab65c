internal import TapRecord
import XMPPCore

// The effects of TLS: ``TLSTermination``, ``AsymmetricTLS``, ``StartTLS`` and ``TLSPolicy`` return them.
extension Session {
    /// The TLS negotiation of the legs; nil before and after.
    package var tls: TLSNegotiation? { termination.negotiation }

    // MARK: Items

    /// Decides on an item while TLS begins on one leg only.
    mutating func interceptAsymmetricTLS(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        switch negotiation.asymmetric?.decide(event, direction, &context) {
        case nil, .other: return nil
        case .item(let decision, let offer):
            reading = .asymmetricTLS(offer)
            return decision
        case .relayInClear:
            perform([.relayInClear])
            return nil
        }
    }

    /// Whether the client has a stream from xmpptap or the server.
    var clientHasStream: Bool { negotiation.asymmetric?.clientHasStream ?? (context.directions.recv.decoder.epoch > 0) }

    /// Whether the server has received the client's stream opening.
    var serverHasStream: Bool {
        negotiation.asymmetric?.reachesServer != false && context.directions.send.decoder.epoch > 0
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
        case .requestTLS: _ = negotiation.requestTLS()
        case .declineTLS: _ = negotiation.declineTLS()
        case .beginHandshake: negotiation.beginHandshake()
        case .enterTLS: negotiation.enterTLS()
        case .forgetClear: forgetClear()
        case .choose(let domain): chosenDomain = domain
        case .secured(let leg, let secured): self.secured(leg, secured)
        case .awaitConsent: termination.awaitConsent(options)
        case .openInside: perform(negotiation.asymmetric?.openInside() ?? [])
        case .relayInClear:
            release(.recv)
            negotiation.asymmetric = nil
            release(.send)

        case .begin(let step, let leg, let side, let details):
            begin(step, key: leg?.name.description, awaits: side, details: details)
        case .finish(let step, let leg, let outcome, let details):
            finish(step, key: leg?.name.description, outcome, details: details)
        case .cancel(let step): timeline.cancel(step)
        case .observe(let event):
            login?.observe(event)
            if case .secured = event { askAboutBindings() }
        case .blame(let cause, let failure):
            blame(
                cause,
                at: .tls,
                failure.words,
                side: failure.side,
                condition: failure.code,
                remedy: failure.remedy
            )

        case .hold(let direction): hold(direction)
        case .release(let direction): release(direction)
        case .releaseClient: if info.version == nil || !awaitFeatures() { release(.send) }
        case .buffer(let items, let direction): context.directions[direction].setBuffered(items)
        case .enterStream(let direction): context.directions[direction].enterTLS()
        case .expectRestart: for direction in Direction.allCases { context.directions[direction].mayRestart = true }
        case .passThrough: beginTLS(directly: false)

        case .handle(let event, let direction, let offer): handle(event, direction, offer)
        case .receive(let bytes, let direction):
            if receive(direction, bytes.span, at: now) == .relay { context.outlet.pass(bytes, direction) }
        case .pass(let bytes, let direction): context.outlet.pass(bytes, direction)
        case .say(let items, let leg, let opensStream): say((opensStream ? header() : []) + items, to: leg)
        case .request(let command): context.outlet.request(.tls(command))

        case .record(let report): context.record(report)
        case .warn(let code, let words, let direction): note(code: code, words, direction: direction, part: .tls)

        case .ended(let leg, let end): ended(leg, end)
        case .refuse(let refusal): refuse(refusal)
        case .close(let condition, let text): refuse(condition, text)
        case .end(let farewell): end(farewell)
        case .stop: finish(reset: false)
        }
    }

    private mutating func handle(_ event: StreamEvent, _ direction: Direction, _ offer: StreamFeatures?) {
        switch event.item {
        case .header: handleHeader(event, direction)
        case .end: handleStreamEnd(event, direction)
        default: handleFeatures(event, offer)
        }
    }

    private mutating func end(_ farewell: TLSEffect.Farewell) {
        switch farewell {
        case .nothing: break
        case .error(let condition, let text): sayError(condition, text, to: .client)
        case .failure: sayFailure()
        case .alert(let alert): return self.alert(alert)
        }
        finishLegs()
    }

    /// Discards data received in clear, which could have been forged.
    mutating func forgetClear() {
        info.features = []
        info.mechanisms = []
        info.mechanism = nil
        login?.observe(.enteredTLS)
    }
}

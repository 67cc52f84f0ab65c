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
        case .secured(let leg, let secured):
            context.negotiation.bridged?.secure(leg, secured, isServerVerified: !context.info.isUnverified)
        case .awaitConsent: termination.awaitConsent(context.options)
        case .openInside: perform(context.negotiation.asymmetric?.openInside() ?? [])
        case .observe(.secured(let legs)):
            context.login?.observe(.secured(legs))
            context.askAboutBindings()
        case .releaseClient:
            if context.info.version == nil || context.negotiation.bridged?.awaitFeatures(&context) != true {
                context.release(.send)
            }
        case .handle(let event, let direction, let offer): handle(event, direction, offer)
        case .receive(let bytes, let direction):
            if receive(direction, bytes.span, at: context.now) == .relay { context.outlet.pass(bytes, direction) }
        default: context.perform(effect)
        }
    }

    private mutating func handle(_ event: StreamEvent, _ direction: Direction, _ offer: StreamFeatures?) {
        switch event.item {
        case .header: streams.handleHeader(event, direction, &context)
        case .end: context.handleStreamEnd(event, direction)
        default: perform(context.handleFeatures(event, offer))
        }
    }
}

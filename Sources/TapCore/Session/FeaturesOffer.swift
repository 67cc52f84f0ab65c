internal import TapRecord
import XMPPCore

/// Decides on the server's features, which are forwarded unchanged or edited, and stores what they offer.
enum FeaturesOffer {
    /// Returns the edit of features before they are forwarded: none by default. Called for each features element with
    /// its contents; all edits are decided here.
    private static func wantedEdit(_ offer: StreamFeatures, _ context: borrowing SessionContext) -> FeaturesEdit {
        var edit =
            context.negotiation.bridged?.makeOffer(offer, context)?.edit
            ?? (context.options.stripsBinding ? .withoutBinding : FeaturesEdit())
        if context.options.holdsProceed, context.options.clientTLS == .off {
            let takesOut = edit.takesOut
            edit.takesOut = { takesOut?($0) == true || $0.place == .stream && $0.namespace == .tls }
        }
        return edit
    }

    /// Decides on the server's features: refuses, forwards or edits them.
    static func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading,
        _ context: inout SessionContext
    ) -> ItemDecision? {
        guard event.item == .element, direction == .recv, context.isFeatures(event) else { return nil }
        let offer = context.parse(.recv).flatMap { StreamFeatures($0) }
        reading = .features(offer)
        guard let offer else { return nil }
        if let refusal = TLSPolicy.refusal(of: offer, context) { return .refuse(refusal) }
        let edit = wantedEdit(offer, context)
        guard !edit.isEmpty else { return nil }
        do throws(FeaturesEdit.NoFeatures) {
            return try edit.applied(to: context.directions.recv.decoder).map { .replace($0) }
        } catch {
            // Both parsers have just read it.
            assertionFailure("features that cannot be read again")
            let words = "The features cannot be changed."
            return .refuse(
                Refusal(
                    answer: .streamError(.internalServerError, words),
                    code: "internal",
                    message: Prose(words),
                    condition: .internalServerError,
                    diagnosis: Prose(words)
                )
            )
        }
    }

    /// Handles the server's features as it sent them, before edits.
    static func handle(
        _ event: StreamEvent,
        _ offer: StreamFeatures?,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        guard let offer else {
            context.negotiation.bridged?.stopAwaiting(&context)
            context.recordItem(event, .recv, .element, level: .info)
            return []
        }
        let features = StreamFeaturesSummary(offer)
        context.info.mechanisms = features.allMechanisms
        context.info.features = features.names
        // Each stream announces its own limits: they grow when the client has authenticated.
        context.directions.send.receiverBytes = offer.itemBytes ?? .max
        context.negotiation.takeFeatures()
        TLSPolicy.warnOfClearLogin(offer, &context)
        let isAnswerDue = [LoginStep.Name.startTLS, .sasl, .sasl2].contains {
            context.timeline.isUnderWay($0, awaits: .server)
        }
        context.login?.observe(.features(offer, isRepeated: isAnswerDue))
        if context.options.level >= .info {
            var record = context.makeRecord(event, .recv, .element, level: .info)
            record.message = record.message.map { "\(features.words); \($0)" } ?? Prose(features.words)
            record.details = features.details
            context.emit(consume record)
        }
        context.negotiation.bridged?.store(offer, &context)
        addToTimeline(features, offer, &context)
        // A server's stream is open when its certificate is accepted; dialback may still be used for other domains.
        guard context.negotiation.isBinding, context.info.kind == .server else { return [] }
        context.info.jid = context.info.from
        return [.open("server authenticated")]
    }

    /// The initiator acts next.
    private static func addToTimeline(
        _ features: StreamFeaturesSummary,
        _ offer: StreamFeatures,
        _ context: inout SessionContext
    ) {
        // Features after a SASL2 success, or repeated ones, answer no header.
        let isDue = context.timeline.isUnderWay(.features)
        if isDue { context.finishStep(.features, .ok, details: ["features": .strings(features.names)]) }
        if context.negotiation.isBinding, isDue, offer.offersBinding { context.beginStep(.bind, awaits: .client) }
        guard context.negotiation.isOpening else { return }
        context.forecastBinding()
        if offer.startTLS == .required {
            context.beginStep(.startTLS, awaits: .client)
        } else if !features.allMechanisms.isEmpty {
            context.beginStep(.mechanism, awaits: .client)
        }
    }
}

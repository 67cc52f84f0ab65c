internal import TapRecord
import XMPPCore

// The server's features: forwarded unchanged or edited.
extension Session {
    /// Returns the edit of features before they are forwarded: none by default. Called for each features element with
    /// its contents; all edits are decided here.
    func wantedEdit(_ offer: StreamFeatures) -> FeaturesEdit {
        var edit = terminatedOffer(offer)?.edit ?? (context.options.stripsBinding ? .withoutBinding : FeaturesEdit())
        if context.options.holdsProceed, context.options.clientTLS == .off {
            let takesOut = edit.takesOut
            edit.takesOut = { takesOut?($0) == true || $0.place == .stream && $0.namespace == .tls }
        }
        return edit
    }

    /// Decides on the server's features: refuses, forwards or edits them.
    mutating func interceptFeatures(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        guard event.item == .element, direction == .recv, context.isFeatures(event) else { return nil }
        let offer = context.parse(.recv).flatMap { StreamFeatures($0) }
        reading = .features(offer)
        guard let offer else { return nil }
        if let refusal = TLSPolicy.refusal(of: offer, context) { return .refuse(refusal) }
        let edit = wantedEdit(offer)
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
    mutating func handleFeatures(_ event: StreamEvent, _ offer: StreamFeatures?) {
        guard let offer else {
            stopAwaiting()
            return context.recordItem(event, .recv, .element, level: .info)
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
        terminate(offer)
        noteTimeline(features, offer)
        if context.negotiation.isBinding, context.info.kind == .server { openServerStream(event) }
    }
}

internal import TapRecord
import XMPPCore

// Handles the server's features, which are forwarded unchanged or edited.
extension SessionContext {
    /// Returns the edit of the features before they are forwarded; empty by default. Called for each features element
    /// with its contents. This is the only function that decides on edits of features.
    private func wantedEdit(_ offer: StreamFeatures) -> FeaturesEdit {
        var edit =
            negotiation.bridged?.makeOffer(offer, self)?.edit
            ?? (options.stripsBinding ? .withoutBinding : FeaturesEdit())
        if options.holdsProceed, options.clientTLS == .off {
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
        guard event.item == .element, direction == .recv, isFeatures(event) else { return nil }
        let offer = parse(.recv).flatMap { StreamFeatures($0) }
        reading = .features(offer)
        guard let offer else { return nil }
        if let refusal = TLSPolicy.refusal(of: offer, self) { return .refuse(refusal) }
        let edit = wantedEdit(offer)
        guard !edit.isEmpty else { return nil }
        do throws(FeaturesEdit.NoFeatures) {
            return try edit.applied(to: directions.recv.decoder).map { .replace($0) }
        } catch {
            // Both parsers have just read the features without an error.
            assertionFailure("features that cannot be read again")
            let text = "The features cannot be changed."
            return .refuse(
                Refusal(
                    answer: .streamError(.internalServerError, text),
                    code: "internal",
                    message: Prose(text),
                    condition: .internalServerError,
                    diagnosis: Prose(text)
                )
            )
        }
    }

    /// Handles the server's features as received, before edits.
    mutating func handleFeatures(_ event: StreamEvent, _ offer: StreamFeatures?) -> [SessionEffect] {
        guard let offer else {
            negotiation.bridged?.stopAwaiting(&self)
            recordItem(event, .recv, .element, level: .info)
            return []
        }
        let features = StreamFeaturesSummary(offer)
        info.mechanisms = features.allMechanisms
        info.features = features.names
        // Each stream announces its own limits. The limits may increase after the login.
        directions.send.receiverBytes = offer.itemBytes ?? .max
        negotiation.featuresReceived()
        TLSPolicy.warnOfClearLogin(offer, &self)
        let isAnswerDue = [LoginStep.Name.startTLS, .sasl, .sasl2].contains {
            timeline.isUnderWay($0, awaits: .server)
        }
        login?.observe(.features(offer, isRepeated: isAnswerDue))
        if options.level >= .info {
            var record = makeRecord(event, .recv, .element, level: .info)
            record.message = record.message.map { "\(features.summary); \($0)" } ?? Prose(features.summary)
            record.details = features.details
            emit(consume record)
        }
        negotiation.bridged?.store(offer, &self)
        addToTimeline(features, offer)
        // Between servers, the stream is open when the server accepts the certificate. Dialback may still be used for
        // other domains.
        guard negotiation.isBinding, info.kind == .server else { return [] }
        info.jid = info.from
        return [.open("server authenticated")]
    }

    /// Adds the features to the timeline, and begins the step that the initiator must take next.
    private mutating func addToTimeline(_ features: StreamFeaturesSummary, _ offer: StreamFeatures) {
        // Features after a SASL2 success, or repeated features, do not answer a header.
        let isDue = timeline.isUnderWay(.features)
        if isDue { finishStep(.features, .ok, details: ["features": .strings(features.names)]) }
        if negotiation.isBinding, isDue, offer.offersBinding { beginStep(.bind, awaits: .client) }
        guard negotiation.isOpening else { return }
        forecastBinding()
        if offer.startTLS == .required {
            beginStep(.startTLS, awaits: .client)
        } else if !features.allMechanisms.isEmpty {
            beginStep(.mechanism, awaits: .client)
        }
    }
}

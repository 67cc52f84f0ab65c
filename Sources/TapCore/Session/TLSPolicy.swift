internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// If xmpptap terminates TLS: refuses sessions without required TLS, and requests for TLS on a leg that has none.
enum TLSPolicy {
    // MARK: Legs in clear

    /// Reports the legs that have no TLS because of the configuration.
    static func reportClearLegs(_ context: inout SessionContext) {
        guard context.options.holdsProceed else { return }
        if context.options.clientTLS == .off {
            let message: Prose = "no TLS on the client leg"
            context.report(.note, .info, code: "client-tls-off", message, part: .tls, remedy: .changeClientTLS)
        }
        if context.options.serverTLS == .off {
            let message: Prose = "no TLS on the server leg, not even for the login"
            context.report(code: "server-tls-off", message, part: .tls, remedy: .changeServerTLS)
        }
    }

    /// Warns if the login will take place without TLS.
    static func warnOfClearLogin(_ offer: StreamFeatures, _ context: inout SessionContext) {
        guard context.options.holdsProceed, context.negotiation.isClear, context.negotiation.isOpening,
            offer.startTLS == .absent,
            !context.info.mechanisms.isEmpty
        else { return }
        context.report(
            code: "no-tls",
            "the server offers no TLS; the session continues in clear text, including the login",
            direction: .recv,
            part: .tls
        )
    }

    // MARK: Required TLS

    /// The leg that requires TLS, but has none yet; nil if there is none.
    static func legDueTLS(_ context: borrowing SessionContext) -> Leg? {
        guard context.options.holdsProceed, context.negotiation.isClear else { return nil }
        return context.options.clientTLS == .required ? .client : context.options.serverTLS == .required ? .server : nil
    }

    /// Refuses a stream or element in clear if TLS is required first, and a request for TLS on a leg that has none. A
    /// server's data in clear can be forged: it could make the login seem complete, or stop decoding, so that the
    /// client continues in clear.
    static func interceptClear(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard context.options.holdsProceed, context.negotiation.isClear else { return nil }
        if event.item == .header, direction == .send, context.options.clientTLS == .direct {
            return .refuse(clearRefusal(.client, "the client does not begin with TLS", context.options))
        }
        guard event.item == .element else { return nil }
        let namespace = event.head.namespace.namespace
        if direction == .send {
            guard context.negotiation.asymmetric == nil else { return nil }
            if namespace == .tls, context.isNamed("starttls", event, .send) {
                guard context.options.clientTLS == .off, context.negotiation.isOpening else { return nil }
                return .refuse(requestRefusal)
            }
        }
        guard let leg = legDueTLS(context), namespace != .streams,
            direction == .send || namespace != .tls
        else { return nil }
        let explanation = "the \(direction.source.name) continued without TLS"
        return .refuse(clearRefusal(leg, explanation, itemPart: .session, context.options))
    }

    /// Buffers the server's `<proceed/>` until TLS is established on the server leg. Refuses an unexpected
    /// `<proceed/>`, without a request or inside TLS: the client would start TLS, and could not read the stream error.
    static func interceptConsent(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard context.options.holdsProceed, event.item == .element, direction == .recv,
            event.head.namespace.namespace == .tls, !context.negotiation.isRefusing,
            context.isNamed("proceed", event, .recv)
        else { return nil }
        if context.negotiation.isConsentAwaited, !event.isTruncated { return .buffer(until: .serverTLS) }
        return .refuse(
            Refusal(
                answer: .streamError(.policyViolation, "Unexpected <proceed/>.", fault: .recv),
                code: "starttls-unexpected",
                message: "unexpected <proceed/>: no STARTTLS request was pending",
                condition: .policyViolation,
                direction: .recv,
                part: .tls,
                itemPart: .tls
            )
        )
    }

    /// Returns the refusal of a session whose server offers no TLS although a leg requires it; nil if the session
    /// continues.
    static func refusal(of offer: StreamFeatures, _ context: borrowing SessionContext) -> Refusal? {
        guard context.options.holdsProceed, context.negotiation.isClear, context.negotiation.isOpening,
            offer.startTLS == .absent,
            context.options.clientTLS == .required || context.options.serverTLS == .required
        else { return nil }
        let leg = context.options.serverTLS == .required ? Leg.server : .client
        return clearRefusal(leg, "the server does not offer TLS", itemPart: .session, context.options)
    }

    /// Refuses direct TLS if the client leg has no TLS; returns false if the leg may have TLS.
    static func refusesDirectTLS(_ context: inout SessionContext) -> Bool {
        guard context.options.holdsProceed, context.options.clientTLS == .off else { return false }
        let message: Prose = "client sent a TLS ClientHello, but the client leg has no TLS"
        let remedy = Remedy.usual(.legWithTLS)
        context.report(.error, .error, code: "tls-off", message, direction: .send, part: .tls, remedy: remedy)
        context.info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
        context.login?.observe(.refused(message, .legWithTLS))
        context.alert(.protocolVersion)
        return true
    }

    // MARK: Refusals

    /// Returns the refusal of a session that lacks required TLS.
    static func clearRefusal(
        _ leg: Leg,
        _ explanation: String,
        itemPart: Part? = nil,
        _ options: SessionOptions
    ) -> Refusal {
        // If only the server leg requires TLS, xmpptap still answers the client's `<starttls/>`, and requires TLS of
        // the client too.
        let isOfServer = leg == .client && options.clientTLS == .auto
        let explanation =
            "\(explanation), but \(isOfServer ? "TLS on the server leg requires it of clients" : "the \(leg.name) leg requires it")"
        return Refusal(
            answer: .streamError(
                .policyViolation,
                leg == .client ? "TLS is required." : "The server does not offer TLS, which is required."
            ),
            code: "tls-required",
            message: "\(explanation); session closed",
            condition: .policyViolation,
            direction: leg.inbound,
            part: .tls,
            diagnosis: Prose(explanation),
            cause: .legWithoutTLS,
            remedy: isOfServer ? .allowClearClients : .usual(.legWithoutTLS),
            itemPart: itemPart
        )
    }

    /// The refusal of a client that sent `<starttls/>`, which was not offered.
    private static var requestRefusal: Refusal {
        let message: Prose = "client sent <starttls/>, but the client leg has no TLS"
        return Refusal(
            answer: .tlsFailure,
            code: "tls-off",
            message: message,
            direction: .send,
            part: .tls,
            diagnosis: message,
            cause: .legWithTLS,
            remedy: .usual(.legWithTLS),
            itemPart: .tls
        )
    }
}

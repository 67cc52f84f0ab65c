internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Sessions without required TLS, and requests for TLS on a leg without it.
extension Session {
    /// Reports a leg without TLS because of --client-tls off or --server-tls off.
    mutating func noteClearLegs() {
        guard options.holdsProceed else { return }
        if options.clientTLS == .off {
            note(.note, .info, code: "client-tls-off", "no TLS on the client leg (--client-tls off)", part: .tls)
        }
        if options.serverTLS == .off {
            let words = "no TLS on the server leg, not even for the login (--server-tls off)"
            note(.note, .warn, code: "server-tls-off", words, part: .tls)
        }
    }

    /// The refusal of a session without required TLS.
    func clearRefusal(_ leg: Leg, _ words: String, itemPart: Part? = nil) -> Refusal {
        let wish =
            switch (leg, options.clientTLS) {
            case (.server, _): "--server-tls \(options.serverTLS) requires it"
            // xmpptap answers its <starttls/>, which is mandatory.
            case (.client, .auto):
                "--server-tls \(options.serverTLS) requires it of clients, unless --client-tls is off"
            case (.client, _): "--client-tls \(options.clientTLS) requires it"
            }
        return Refusal(
            answer: .streamError(
                .policyViolation,
                leg == .client ? "TLS is required." : "The server does not offer TLS, which is required."
            ),
            code: "tls-required",
            message: "\(words), but \(wish); session closed",
            condition: .policyViolation,
            direction: leg.inbound,
            part: .tls,
            diagnosis: "\(words), but \(wish)",
            cause: .legWithoutTLS,
            itemPart: itemPart
        )
    }

    /// The leg that requires TLS and has none yet; nil if there is none.
    var legDueTLS: Leg? {
        guard options.holdsProceed, negotiation.isClear else { return nil }
        return options.clientTLS == .required ? .client : options.serverTLS == .required ? .server : nil
    }

    /// Whether a session that cannot be followed is closed: where TLS is required, what passes unread could be a login in
    /// clear; where both ends count differently, a count that is wrong for its reader.
    var refusesUnread: Bool {
        options.onUnparsable == .close || negotiation.isRefusing || legDueTLS != nil || hasDiverged
    }

    /// A stream or an element in clear where TLS has to come first, or a request for TLS where it has no place. What a server
    /// sends can be anybody's, and have a login seem over, or the streams be passed unread, for the client to go on in clear.
    func interceptClear(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard options.holdsProceed, negotiation.isClear else { return nil }
        if event.item == .header, direction == .send, options.clientTLS == .direct {
            return .refuse(clearRefusal(.client, "the client does not begin with TLS"))
        }
        guard event.item == .element else { return nil }
        let namespace = event.head.namespace.namespace
        if direction == .send {
            guard negotiation.asymmetric == nil else { return nil }
            if namespace == .tls, isNamed("starttls", event, .send) {
                guard options.clientTLS == .off, negotiation.isOpening else { return nil }
                return .refuse(requestRefusal)
            }
        }
        guard let leg = legDueTLS, namespace != .streams, direction == .send || namespace != .tls else { return nil }
        return .refuse(
            clearRefusal(leg, "the \(direction.source.name) continued without TLS", itemPart: .session)
        )
    }

    /// The client sent `<starttls/>`, which was not offered (--client-tls off).
    private var requestRefusal: Refusal {
        let words = "client sent <starttls/>, but --client-tls is off"
        return Refusal(
            answer: .tlsFailure,
            code: "tls-off",
            message: words,
            direction: .send,
            part: .tls,
            diagnosis: words,
            cause: .legWithTLS,
            itemPart: .tls
        )
    }

    /// The end of a session whose server offers no TLS where one leg demands it; nil where it goes on.
    func refusal(of offer: StreamFeatures) -> Refusal? {
        guard options.holdsProceed, negotiation.isClear, negotiation.isOpening, offer.startTLS == .absent,
            options.clientTLS == .required || options.serverTLS == .required
        else { return nil }
        let leg = options.serverTLS == .required ? Leg.server : .client
        return clearRefusal(leg, "the server does not offer TLS", itemPart: .session)
    }

    /// Refuses direct TLS if --client-tls is off; returns whether it did.
    mutating func refusesDirectTLS() -> Bool {
        guard options.holdsProceed, options.clientTLS == .off else { return false }
        let words = "client sent a TLS ClientHello, but --client-tls is off"
        login?.observe(.refused(words, .legWithTLS))
        note(.error, .error, code: "tls-off", words, direction: .send, part: .tls)
        info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
        alert(.protocolVersion)
        return true
    }
}

internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Sessions that go on without TLS where it is due, or want it where there is none.
extension Session {
    /// Says which leg stays in clear because that was wanted.
    mutating func noteClearLegs() {
        guard options.holdsProceed else { return }
        if options.clientTLS == .off {
            note(.note, .info, code: "client-tls-off", "the client's leg stays in clear (--client-tls off)", part: .tls)
        }
        if options.serverTLS == .off {
            let words = "the server's leg stays in clear, the login too (--server-tls off)"
            note(.note, .warn, code: "server-tls-off", words, part: .tls)
        }
    }

    /// The end of a session that goes on in clear where TLS is required.
    func clearRefusal(_ leg: Leg, _ words: String, itemPart: Part? = nil) -> Refusal {
        let wish =
            switch (leg, options.clientTLS) {
            case (.server, _): "--server-tls \(options.serverTLS) wants it"
            // Its request is answered here, and cannot be done without.
            case (.client, .auto): "--server-tls \(options.serverTLS) wants it of clients, unless --client-tls is off"
            case (.client, _): "--client-tls \(options.clientTLS) wants it"
            }
        return Refusal(
            answer: .streamError(
                .policyViolation,
                leg == .client ? "TLS is required here." : "The server offers no TLS, which is required."
            ),
            code: "tls-required",
            message: "\(words), and \(wish); the session is closed",
            condition: .policyViolation,
            direction: leg.inbound,
            part: .tls,
            diagnosis: "\(words), and \(wish)",
            cause: .legWithoutTLS,
            itemPart: itemPart
        )
    }

    /// The leg for which TLS is required, while it has not begun; nil where all may go on in clear.
    var legDueTLS: Leg? {
        guard options.holdsProceed, case .none = tls else { return nil }
        return options.clientTLS == .required ? .client : options.serverTLS == .required ? .server : nil
    }

    /// Whether a session that cannot be followed is closed: where TLS is required, what passes unread could be a login in
    /// clear.
    var refusesUnread: Bool { options.onUnparsable == .close || legDueTLS != nil }

    /// A stream or an element in clear where TLS has to come first, or a request for TLS where it has no place. What a server
    /// sends can be anybody's, and have a login seem over, or the streams be passed unread, for the client to go on in clear.
    func interceptClear(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard options.holdsProceed, case .none = tls, !isRefusing else { return nil }
        if event.item == .header, direction == .send, options.clientTLS == .direct {
            return .refuse(clearRefusal(.client, "the client does not begin with TLS"))
        }
        guard event.item == .element else { return nil }
        let namespace = event.head.namespace.namespace
        if direction == .send {
            guard asymmetric == nil else { return nil }
            if namespace == .tls, isNamed("starttls", event, .send) {
                guard options.clientTLS == .off, case .opening = phase else { return nil }
                return .refuse(requestRefusal)
            }
        }
        guard let leg = legDueTLS, namespace != .streams, direction == .send || namespace != .tls else { return nil }
        return .refuse(
            clearRefusal(leg, "the \(direction.source.name) goes on without TLS", itemPart: .session)
        )
    }

    /// The client asks for TLS that it was not offered (--client-tls off).
    private var requestRefusal: Refusal {
        let words = "the client asks for TLS, which --client-tls off does not give it"
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
        guard options.holdsProceed, case .none = tls, case .opening = phase, offer.startTLS == .absent,
            options.clientTLS == .required || options.serverTLS == .required
        else { return nil }
        let leg = options.serverTLS == .required ? Leg.server : .client
        return clearRefusal(leg, "the server offers no TLS", itemPart: .session)
    }

    /// Refuses TLS from the first byte where the client's leg stays in clear; whether it did.
    mutating func refusesDirectTLS() -> Bool {
        guard options.holdsProceed, options.clientTLS == .off else { return false }
        let words = "the client begins with TLS, and --client-tls off keeps its leg in clear"
        login?.refusal = words
        login?.refusalCause = .legWithTLS
        note(.error, .error, code: "tls-off", words, direction: .send, part: .tls)
        info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
        alert(.protocolVersion)
        return true
    }
}

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

    /// Ends a session that goes on in clear where TLS is required.
    mutating func refuseClear(_ leg: Leg, _ words: String) {
        let wish =
            switch (leg, options.clientTLS) {
            case (.server, _): "--server-tls \(options.serverTLS) wants it"
            // Its request is answered here, and cannot be done without.
            case (.client, .auto): "--server-tls \(options.serverTLS) wants it of clients, unless --client-tls is off"
            case (.client, _): "--client-tls \(options.clientTLS) wants it"
            }
        login?.refusal = "\(words), and \(wish)"
        login?.refusalCause = .legWithoutTLS
        note(
            .error,
            .error,
            code: "tls-required",
            "\(words), and \(wish); the session is closed",
            condition: .policyViolation,
            direction: leg.inbound,
            part: .tls
        )
        refuse(
            .policyViolation,
            leg == .client ? "TLS is required here." : "The server offers no TLS, which is required."
        )
    }

    /// Refuses a client that begins its stream in clear where TLS is due from the first byte on; whether it did.
    mutating func refusesClearStream() -> Bool {
        guard options.holdsProceed, options.clientTLS == .direct, case .none = tls, !isRefusing else { return false }
        refuseClear(.client, "the client does not begin with TLS")
        return true
    }

    /// The leg for which TLS is required, while it has not begun; nil where all may go on in clear.
    var legDueTLS: Leg? {
        guard options.holdsProceed, case .none = tls else { return nil }
        return options.clientTLS == .required ? .client : options.serverTLS == .required ? .server : nil
    }

    /// Whether a session that cannot be followed is closed: where TLS is required, what passes unread could be a login in
    /// clear.
    var refusesUnread: Bool { options.onUnparsable == .close || legDueTLS != nil }

    /// Refuses an element in clear where TLS has to come first; whether it did. What a server sends can be anybody's, and
    /// have a login seem over, or the streams be passed unread, for the client to go on in clear.
    mutating func refusesClearElement(_ event: StreamEvent, _ direction: Direction) -> Bool {
        guard options.holdsProceed, case .none = tls, !isRefusing else { return false }
        let namespace = event.head.namespace.namespace
        if direction == .send {
            guard asymmetric == nil else { return false }
            if namespace == .tls, isNamed("starttls", event, .send) {
                guard options.clientTLS == .off, case .opening = phase else { return false }
                refuseRequest(event)
                return true
            }
        }
        guard let leg = legDueTLS, namespace != .streams, direction == .send || namespace != .tls else { return false }
        recordItem(event, direction, .element, level: .info)
        refuseClear(leg, "the \(direction.source.name) goes on without TLS")
        return true
    }

    /// The client asks for TLS that it was not offered (--client-tls off).
    private mutating func refuseRequest(_ event: StreamEvent) {
        directions.send.forwarded = event.position + event.length
        recordItem(event, .send, .element, level: .info, part: .tls)
        let words = "the client asks for TLS, which --client-tls off does not give it"
        login?.refusal = words
        login?.refusalCause = .legWithTLS
        note(.error, .error, code: "tls-off", words, direction: .send, part: .tls)
        info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
        sayFailure()
        enqueue(.finish(.client))
        enqueue(.finish(.server))
        finish(reset: false)
    }

    /// Refuses to go on where the server offers no TLS and one leg demands it; whether it did.
    mutating func refusesOffer(_ offer: StreamFeatures) -> Bool {
        guard options.holdsProceed, case .none = tls, case .opening = phase, offer.startTLS == .absent else {
            return false
        }
        guard options.clientTLS == .required || options.serverTLS == .required else {
            return false
        }
        refuseClear(options.serverTLS == .required ? .server : .client, "the server offers no TLS")
        return true
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

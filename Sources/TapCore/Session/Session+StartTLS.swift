internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// STARTTLS (RFC 6120 §5), before TLS begins.
extension Session {
    mutating func handleTLS(_ event: StreamEvent, _ direction: Direction) {
        context.recordItem(event, direction, .element, level: .info, part: .tls)
        switch direction {
        case .send where context.isNamed("starttls", event, direction):
            guard negotiation.requestTLS() else { return }
            begin(.startTLS, awaits: .server)
            timeline.cancel(.mechanism)
            // Later bytes belong to TLS or, if the server declines, to this stream: they wait for the answer, unless
            // there can be none, or the client is half-closed and TLS cannot begin.
            if !context.directions.recv.hasPassedEnd, context.directions.send.end == nil { hold(.send) }
        case .recv where context.isNamed("proceed", event, direction):
            finish(.startTLS, .ok)
            // Held bytes are released when TLS is established on the server's leg; a recording contains the items after
            // it.
            if context.directions.recv.buffered != nil || recording != nil { return }
            if options.isDecoded || decryptedTLS != nil { return passTLS() }
            noteEarlyBytes()
            beginTLS(directly: false)
        case .recv:
            if negotiation.declineTLS() { finish(.startTLS, .failed("the server answered <failure/>")) }
            if context.directions.send.isHeld { release(.send) }
        default: break
        }
    }

    /// The streams restart inside TLS, which the log does not show.
    private mutating func passTLS() {
        if let decryptedTLS {
            finish(.tls, .ok, details: decryptedTLS)
        } else {
            finish(.tls, .skipped("not recorded; the log contains the decrypted streams"))
        }
        negotiation.enterTLS()
        for direction in Direction.allCases { context.directions[direction].mayRestart = true }
        if context.directions.send.isHeld { release(.send) }
    }

    /// Reports plaintext that the client sent between `<starttls/>` and `<proceed/>`.
    private mutating func noteEarlyBytes() {
        let count = context.directions.send.waiting
        guard count > 0, context.directions.pending(.send)[0] != 0x16 else { return }
        note(
            code: "starttls-injection",
            "\(count) bytes of plaintext between <starttls/> and <proceed/>",
            direction: .send,
            part: .tls
        )
    }

    // MARK: Sessions without required TLS, and requests for TLS on a leg without it

    /// Reports a leg without TLS, as configured.
    mutating func noteClearLegs() {
        guard options.holdsProceed else { return }
        if options.clientTLS == .off {
            let words: Prose = "no TLS on the client leg"
            note(.note, .info, code: "client-tls-off", words, part: .tls, remedy: .changeClientTLS)
        }
        if options.serverTLS == .off {
            let words: Prose = "no TLS on the server leg, not even for the login"
            note(code: "server-tls-off", words, part: .tls, remedy: .changeServerTLS)
        }
    }

    /// The refusal of a session without required TLS.
    func clearRefusal(_ leg: Leg, _ words: String, itemPart: Part? = nil) -> Refusal {
        // xmpptap answers the <starttls/> of its clients, which is mandatory.
        let isOfServer = leg == .client && options.clientTLS == .auto
        let words =
            "\(words), but \(isOfServer ? "TLS on the server leg requires it of clients" : "the \(leg.name) leg requires it")"
        return Refusal(
            answer: .streamError(
                .policyViolation,
                leg == .client ? "TLS is required." : "The server does not offer TLS, which is required."
            ),
            code: "tls-required",
            message: "\(words); session closed",
            condition: .policyViolation,
            direction: leg.inbound,
            part: .tls,
            diagnosis: Prose(words),
            cause: .legWithoutTLS,
            remedy: isOfServer ? .allowClearClients : .usual(.legWithoutTLS),
            itemPart: itemPart
        )
    }

    /// The leg that requires TLS and has none yet; nil if there is none.
    private var legDueTLS: Leg? {
        guard options.holdsProceed, negotiation.isClear else { return nil }
        return options.clientTLS == .required ? .client : options.serverTLS == .required ? .server : nil
    }

    /// Whether an undecodable session is closed: if TLS is required, undecoded bytes could be a login in clear; if both
    /// ends count differently, a wrong count; if rules alter items, an unaltered item.
    var refusesUnread: Bool {
        options.onUnparsable == .close || negotiation.isRefusing || legDueTLS != nil || hasDiverged
            || rulesAlter(.send) || rulesAlter(.recv)
    }

    /// Refuses a stream or element in clear if TLS is required first, or a misplaced request for TLS. Data from a
    /// server in clear can be forged: it could make the login seem complete, or decoding stop, so that the client
    /// continues in clear.
    func interceptClear(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard options.holdsProceed, negotiation.isClear else { return nil }
        if event.item == .header, direction == .send, options.clientTLS == .direct {
            return .refuse(clearRefusal(.client, "the client does not begin with TLS"))
        }
        guard event.item == .element else { return nil }
        let namespace = event.head.namespace.namespace
        if direction == .send {
            guard negotiation.asymmetric == nil else { return nil }
            if namespace == .tls, context.isNamed("starttls", event, .send) {
                guard options.clientTLS == .off, negotiation.isOpening else { return nil }
                return .refuse(requestRefusal)
            }
        }
        guard let leg = legDueTLS, namespace != .streams, direction == .send || namespace != .tls else { return nil }
        return .refuse(
            clearRefusal(leg, "the \(direction.source.name) continued without TLS", itemPart: .session)
        )
    }

    /// The client sent `<starttls/>`, which was not offered.
    private var requestRefusal: Refusal {
        let words: Prose = "client sent <starttls/>, but the client leg has no TLS"
        return Refusal(
            answer: .tlsFailure,
            code: "tls-off",
            message: words,
            direction: .send,
            part: .tls,
            diagnosis: words,
            cause: .legWithTLS,
            remedy: .usual(.legWithTLS),
            itemPart: .tls
        )
    }

    /// The refusal of a session whose server offers no TLS although one leg requires it; nil if the session continues.
    func refusal(of offer: StreamFeatures) -> Refusal? {
        guard options.holdsProceed, negotiation.isClear, negotiation.isOpening, offer.startTLS == .absent,
            options.clientTLS == .required || options.serverTLS == .required
        else { return nil }
        let leg = options.serverTLS == .required ? Leg.server : .client
        return clearRefusal(leg, "the server does not offer TLS", itemPart: .session)
    }

    /// Refuses direct TLS if the client leg has no TLS; returns whether it did.
    mutating func refusesDirectTLS() -> Bool {
        guard options.holdsProceed, options.clientTLS == .off else { return false }
        let words: Prose = "client sent a TLS ClientHello, but the client leg has no TLS"
        login?.observe(.refused(words, .legWithTLS))
        let remedy = Remedy.usual(.legWithTLS)
        note(.error, .error, code: "tls-off", words, direction: .send, part: .tls, remedy: remedy)
        info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
        alert(.protocolVersion)
        return true
    }
}

internal import TapRecord
import XMPPCore

/// The state of a session whose legs do not begin TLS together, until TLS has begun. Otherwise, the client's request is
/// relayed to the server and the server's consent to the client.
struct AsymmetricTLS {
    enum Way {
        /// xmpptap answers the client's request for TLS; until then, nothing is sent to the server.
        case answering
        /// xmpptap requests TLS of the server; the client sees nothing of that stream.
        case asking
        /// xmpptap begins TLS with the server before the first byte of the client's stream.
        case preceding
    }

    var way: Way
    /// The client's stream opening: repeated, or first sent, when the server's TLS is established.
    var opening: [UInt8] = []
    /// The opening is complete.
    var isOpen = false
    /// xmpptap has opened a stream to the client.
    var hasAnswered = false
    /// xmpptap has requested TLS of the server.
    var hasAsked = false

    /// Nil if both legs begin together.
    init?(_ options: SessionOptions) {
        guard options.holdsProceed else { return nil }
        switch (options.clientTLS, options.serverTLS) {
        case (.off, .auto), (.off, .required): way = .asking
        case (.off, .direct): way = .preceding
        case (.off, .off): return nil
        case (_, .direct), (_, .off): way = .answering
        default: return nil
        }
    }
}

// TLS that xmpptap requests, answers or begins itself, because TLS begins on one leg only, or differently on each leg.
extension Session {
    /// Decides on an item while TLS begins on one leg only. If the server offers no TLS, its earlier items are
    /// forwarded before the item that shows it.
    mutating func interceptAsymmetricTLS(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        guard let asymmetric = negotiation.asymmetric, let kind = event.item else { return nil }
        reading = .asymmetricTLS(nil)
        switch (asymmetric.way, direction) {
        case (.answering, .send) where kind == .element && !isStartTLS(event):
            return .refuse(clearRefusal(.client, "the client continued without TLS", itemPart: .session))
        case (.answering, .send): return .answer
        case (.asking, .send), (.preceding, .send): return Self.decideOpening(kind, asymmetric)
        case (.asking, .recv): return interceptAnswer(event, kind, asymmetric, &reading)
        case (.answering, .recv), (.preceding, .recv):
            return .refuse(
                Refusal(
                    answer: .streamError(.remoteConnectionFailed, "The server sent data before the stream was opened."),
                    code: "starttls-injection",
                    message: "the server sent data before the stream was opened",
                    condition: .policyViolation,
                    direction: .recv,
                    part: .tls
                )
            )
        }
    }

    /// Decides on the client's items before TLS with the server is established.
    private static func decideOpening(_ kind: StanzaScanner.Item.Kind, _ asymmetric: AsymmetricTLS) -> ItemDecision {
        switch (kind, asymmetric.isOpen) {
        case (.declaration, false), (.header, false): asymmetric.way == .asking ? .pass : .buffer(until: .restart)
        case (.declaration, true), (.whitespace, _): .answer
        // The client has given up: otherwise it would have waited.
        case (.header, true), (.element, _), (.end, _): .drop
        }
    }

    /// Decides on the server's items before it receives a request for TLS, and on its answer.
    private mutating func interceptAnswer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ asymmetric: AsymmetricTLS,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        switch kind {
        case .declaration, .whitespace, .header:
            let limit = options.unauthenticatedLimits.itemBytes
            guard UInt64(context.directions.recv.buffered?.count ?? 0) + event.length > UInt64(limit) else {
                return .buffer(until: .features)
            }
            let words = "The server sent more than \(limit) bytes before its stream features."
            return .refuse(
                Refusal(
                    answer: .streamError(.policyViolation, words),
                    code: ScanFault.Code.itemTooLong.rawValue,
                    message: Prose(words),
                    condition: .policyViolation,
                    diagnosis: Prose(words)
                )
            )
        case .element where asymmetric.hasAsked && event.head.namespace.namespace == .tls:
            return .answer
        case .element where isFeatures(event) && !asymmetric.hasAsked:
            let offer = context.parse(.recv).flatMap { StreamFeatures($0) }
            if let offer, offer.startTLS != .absent {
                reading = .asymmetricTLS(offer)
                return .answer
            }
            reading = .none
            guard offer != nil else { return nil }
            if options.serverTLS == .required { return .refuse(clearRefusal(.server, "the server does not offer TLS")) }
        case .element, .end: reading = .none
        }
        // A stream error, features without TLS, or an unexpected item: relay it to the client, in its own stream. If
        // TLS is required, that does not help the client further.
        relayInClear()
        return nil
    }

    /// Records an item of such a session, and takes the next step of TLS.
    mutating func advanceAsymmetricTLS(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ direction: Direction,
        _ offer: StreamFeatures?
    ) {
        guard let way = negotiation.asymmetric?.way else { return }
        switch (kind, way, direction) {
        case (.whitespace, _, _): context.recordItem(event, direction, .whitespace, level: .verbose)
        case (.declaration, _, _):
            if way != .answering, direction == .send { noteOpening() }
            context.recordItem(event, direction, .declaration, level: .verbose)
        case (_, .answering, _): answerClient(event, kind)
        case (_, _, .send): openForServer(event, kind, way)
        case (_, _, .recv): hearServer(event, kind, offer)
        }
    }

    /// Service discovery found that the server begins with TLS. Replaces a request for TLS.
    mutating func serverBeginsWithTLS() {
        if negotiation.asymmetric?.way == .asking { negotiation.asymmetric?.way = .preceding }
    }

    /// Whether TLS on the server's leg begins with its first byte, independent of the client.
    var serverTLSIsDirect: Bool { options.serverTLS == .direct || negotiation.asymmetric?.way == .preceding }

    /// TLS is established on the server's leg only: opens the stream inside it.
    mutating func openInside() {
        guard let asymmetric = negotiation.asymmetric else { return }
        negotiation.enterTLS()
        forgetClear()
        context.directions.recv.enterTLS()
        guard asymmetric.way == .asking else {
            context.outlet.pass(asymmetric.opening, .send)
            return goOnInside()
        }
        say([(.streamOpen, asymmetric.opening)], to: .server)
        begin(.streamOpen, awaits: .server)
        goOnInside()
    }

    /// Releases the client's items after its header, now or when the features have arrived.
    private mutating func goOnInside() {
        if info.version == nil || !awaitFeatures() { release(.send) }
    }

    /// Whether the client has a stream from xmpptap or the server.
    var clientHasStream: Bool {
        switch negotiation.asymmetric?.way {
        case .answering: negotiation.asymmetric?.hasAnswered == true
        case .asking, .preceding: false
        case nil: context.directions.recv.decoder.epoch > 0
        }
    }

    /// Whether the server has received the client's stream opening.
    var serverHasStream: Bool {
        switch negotiation.asymmetric?.way {
        case .answering, .preceding: false
        case .asking, nil: context.directions.send.decoder.epoch > 0
        }
    }

    // MARK: The client's TLS, answered by xmpptap

    private mutating func answerClient(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind) {
        switch kind {
        case .declaration, .whitespace: break
        case .header:
            handleHeader(event, .send)
            sayOffer()
        case .element:
            context.recordItem(event, .send, .element, level: .info, part: .tls)
            guard negotiation.asymmetric?.hasAnswered == true, context.directions.recv.buffered == nil else { return }
            _ = negotiation.requestTLS()
            finish(.startTLS, .ok)
            // Sent to the client when the server's TLS is established, or if there is none.
            context.directions.recv.setBuffered(Self.consent)
            hold(.send)
            awaitTLS()
        case .end:
            handleStreamEnd(event, .send)
            say([Self.end], to: .client)
            finishLegs()
        }
    }

    private func isStartTLS(_ event: StreamEvent) -> Bool {
        event.head.namespace.namespace == .tls && context.isNamed("starttls", event, .send)
    }

    private static let consent = Array("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
    private static let request = Array("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)

    /// Opens a stream to the client that offers only TLS.
    private mutating func sayOffer() {
        guard !negotiation.isFinished, negotiation.asymmetric?.hasAnswered == false else { return }
        negotiation.asymmetric?.hasAnswered = true
        finish(.streamOpen, .ok)
        let offer =
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"
        say(header() + [(.element, Array(offer.utf8))], to: .client)
        login?.observe(.demandedTLS)
        begin(.startTLS, awaits: .client)
    }

    /// Refuses bytes of a server whose stream was not opened; returns whether it did. If the client left before it requested
    /// TLS, the bytes are an alert, because the server got no ClientHello.
    mutating func refusesEarlyBytesOfServer() -> Bool {
        guard negotiation.asymmetric?.way == .answering else { return false }
        if context.directions.send.end == nil {
            refuse(.remoteConnectionFailed, "The server sent data before the stream was opened.")
        } else {
            finish(reset: false)
        }
        return true
    }

    // MARK: The server's TLS, begun by xmpptap

    /// The client opens its stream: sends that to the server now and again inside TLS, or only inside.
    private mutating func openForServer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ way: AsymmetricTLS.Way
    ) {
        guard negotiation.asymmetric?.isOpen == false, kind == .header else {
            context.recordItem(event, .send, .element, level: .info)
            return finish(reset: false)
        }
        noteOpening()
        negotiation.asymmetric?.isOpen = true
        handleHeader(event, .send)
        // Later items wait until they can be sent inside TLS.
        hold(.send)
        guard way == .preceding else { return }
        context.directions.recv.setBuffered([])
        awaitTLS()
    }

    private mutating func noteOpening() {
        if negotiation.asymmetric?.isOpen == false {
            negotiation.asymmetric?.opening.append(context.directions.bytes(.send))
        }
    }

    /// Handles the server's header, its features with an offer of TLS, or its answer to the request.
    private mutating func hearServer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ offer: StreamFeatures?
    ) {
        if let offer { return askServer(event, offer) }
        guard kind == .element else {
            handleHeader(event, .recv)
            // Without a version no features follow, and no TLS (RFC 6120 §4.7.5).
            guard event.head.version == nil else { return }
            if options.serverTLS == .required {
                return refuse(clearRefusal(.server, "the server does not offer TLS"))
            }
            return relayInClear()
        }
        context.recordItem(event, .recv, .element, level: .info, part: .tls)
        guard context.isNamed("proceed", event, .recv) else {
            finish(.startTLS, .failed("the server declines"))
            return refuse(.remoteConnectionFailed, "The server declines TLS.")
        }
        finish(.startTLS, .ok)
        // Nothing of it is for the client.
        context.directions.recv.setBuffered([])
        hold(.recv)
        awaitTLS()
    }

    private mutating func askServer(_ event: StreamEvent, _ offer: StreamFeatures) {
        handleFeatures(event, offer)
        negotiation.asymmetric?.hasAsked = true
        _ = negotiation.requestTLS()
        say([(.element, Self.request)], to: .server)
        timeline.cancel(.mechanism)
        begin(.startTLS, awaits: .server)
    }

    /// No TLS follows on the server's leg: releases the server's items to the client; both legs continue in clear.
    private mutating func relayInClear() {
        release(.recv)
        negotiation.asymmetric = nil
        release(.send)
    }
}

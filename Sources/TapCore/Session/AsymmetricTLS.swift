internal import TapRecord
import XMPPCore

/// Starts TLS in place of a peer: xmpptap requests, answers or begins TLS itself, because TLS begins on one leg only,
/// or differently on each leg. In all other cases, xmpptap relays the client's request and the server's consent.
///
/// Removed when TLS is established: see ``Negotiation/asymmetric``.
final class AsymmetricTLS {
    private enum Way {
        /// xmpptap answers the client's request for TLS; until then, nothing is sent to the server.
        case answering
        /// xmpptap requests TLS of the server; the client does not see that stream.
        case asking
        /// xmpptap begins TLS with the server before the first byte of the client's stream.
        case preceding
    }

    /// A decision on an item before TLS.
    enum Decision {
        /// The item belongs to the TLS negotiation and is handled here; with the server's offer, if the item contains
        /// one.
        case item(ItemDecision, StreamFeatures? = nil)
        /// Another interceptor decides.
        case other
        /// Another interceptor decides, after the server's earlier items are forwarded: the server offers no TLS.
        case relayInClear
    }

    private var way: Way
    /// The bytes of the client's stream opening. When TLS with the server is established, they are sent again, or for
    /// the first time.
    private var opening: [UInt8] = []
    /// Whether the opening is complete.
    private var isOpen = false
    /// Whether xmpptap has opened a stream to the client.
    private var hasAnswered = false
    /// Whether xmpptap has requested TLS of the server.
    private var hasAsked = false

    /// Creates the state; nil if TLS begins on both legs in the same way.
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

    // MARK: State

    /// Whether TLS on the server's leg begins before the client's stream.
    var precedesClient: Bool { way == .preceding }

    /// Whether xmpptap has opened a stream to the client.
    var clientHasStream: Bool { hasAnswered }

    /// Whether the server may have received the client's stream opening.
    var reachesServer: Bool { way == .asking }

    /// Begins TLS without a request, because service discovery found that the server uses direct TLS.
    func serverBeginsWithTLS() { if way == .asking { way = .preceding } }

    // MARK: Decisions

    /// Decides on an item while TLS begins on one leg only; nil if another interceptor decides.
    func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading,
        _ context: inout SessionContext
    ) -> ItemDecision? {
        switch decide(event, direction, &context) {
        case .item(let decision, let offer):
            reading = .asymmetricTLS(offer)
            return decision
        case .relayInClear: context.perform(.relayInClear)
        case .other: break
        }
        return nil
    }

    /// Decides on an item while TLS begins on one leg only.
    func decide(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) -> Decision {
        guard let kind = event.item else { return .other }
        switch (way, direction) {
        case (.answering, .send) where kind == .element && !Self.isStartTLS(event, context):
            let explanation = "the client continued without TLS"
            return .item(.refuse(TLSPolicy.clearRefusal(.client, explanation, itemPart: .session, context.options)))
        case (.answering, .send): return .item(.answer)
        case (.asking, .send), (.preceding, .send): return .item(decideOpening(kind))
        case (.asking, .recv): return decideAnswer(event, kind, &context)
        case (.answering, .recv), (.preceding, .recv):
            return .item(
                .refuse(
                    Refusal(
                        answer: .streamError(
                            .remoteConnectionFailed,
                            "The server sent data before the stream was opened."
                        ),
                        code: "starttls-injection",
                        message: "the server sent data before the stream was opened",
                        condition: .policyViolation,
                        direction: .recv,
                        part: .tls
                    )
                )
            )
        }
    }

    /// Decides on the client's items before TLS with the server is established.
    private func decideOpening(_ kind: StanzaScanner.Item.Kind) -> ItemDecision {
        switch (kind, isOpen) {
        case (.declaration, false), (.header, false): way == .asking ? .pass : .buffer(until: .restart)
        case (.declaration, true), (.whitespace, _): .answer
        // A client that still waits for its stream features sends none of these: this client did not wait.
        case (.header, true), (.element, _), (.end, _): .drop
        }
    }

    /// Decides on the server's items before it receives a request for TLS, and on its answer.
    private func decideAnswer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ context: inout SessionContext
    ) -> Decision {
        switch kind {
        case .declaration, .whitespace, .header:
            let limit = context.options.unauthenticatedLimits.itemBytes
            guard UInt64(context.directions.recv.buffered?.count ?? 0) + event.length > UInt64(limit) else {
                return .item(.buffer(until: .features))
            }
            let text = "The server sent more than \(limit) bytes before its stream features."
            return .item(
                .refuse(
                    Refusal(
                        answer: .streamError(.policyViolation, text),
                        code: ScanFault.Code.itemTooLong.rawValue,
                        message: Prose(text),
                        condition: .policyViolation,
                        diagnosis: Prose(text)
                    )
                )
            )
        case .element where hasAsked && event.head.namespace.namespace == .tls: return .item(.answer)
        case .element where context.isFeatures(event) && !hasAsked:
            guard let offer = context.parse(.recv).flatMap({ StreamFeatures($0) }) else { return .other }
            if offer.startTLS != .absent { return .item(.answer, offer) }
            if context.options.serverTLS == .required { return .item(.refuse(Self.offerRefusal(context.options))) }
        case .element, .end: break
        }
        // A stream error, features without TLS, or an unexpected item: relay the server's stream to the client. If TLS is
        // required, the client still cannot log in.
        return .relayInClear
    }

    private static func offerRefusal(_ options: SessionOptions) -> Refusal {
        TLSPolicy.clearRefusal(.server, "the server does not offer TLS", options)
    }

    private static func isStartTLS(_ event: StreamEvent, _ context: borrowing SessionContext) -> Bool {
        event.head.namespace.namespace == .tls && context.isNamed("starttls", event, .send)
    }

    // MARK: Steps

    /// Records an item that belongs to TLS, and takes the next step.
    func advance(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ direction: Direction,
        _ offer: StreamFeatures?,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        switch (kind, way, direction) {
        case (.whitespace, _, _): context.recordItem(event, direction, .whitespace, level: .verbose)
        case (.declaration, _, _):
            if way != .answering, direction == .send { storeStreamHeader(context) }
            context.recordItem(event, direction, .declaration, level: .verbose)
        case (_, .answering, _): return answerClient(event, kind, &context)
        case (_, _, .send): return openForServer(event, kind, &context)
        case (_, _, .recv): return handleServerItem(event, kind, offer, &context)
        }
        return []
    }

    /// Refuses bytes that the server sent before its stream was opened; returns nil if its stream was opened. If the
    /// client left before it requested TLS, the bytes are an alert, because the server got no ClientHello.
    func refuseEarlyBytes(_ context: borrowing SessionContext) -> [TLSEffect]? {
        guard way == .answering else { return nil }
        guard context.directions.send.end == nil else { return [.stop] }
        return [.close(.remoteConnectionFailed, "The server sent data before the stream was opened.")]
    }

    /// Opens the stream inside TLS, when TLS is established on the server's leg only.
    func openInside() -> [TLSEffect] {
        let inside: [TLSEffect] = [.enterTLS, .forgetClear, .enterStream(.recv)]
        guard way == .asking else { return inside + [.pass(opening, .send), .releaseClient] }
        return inside + [
            .say([(.streamOpen, opening)], to: .server), .begin(.streamOpen, awaits: .server), .releaseClient,
        ]
    }

    // MARK: The client's TLS, answered by xmpptap

    private static let consent = Array("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
    private static let request = Array("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
    private static let offer = Array(
        "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"
            .utf8
    )

    private func answerClient(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        switch kind {
        case .declaration, .whitespace: return []
        case .header:
            guard !hasAnswered else { return [.handle(event, .send)] }
            hasAnswered = true
            // Opens a stream to the client that offers only TLS.
            return [
                .handle(event, .send), .finish(.streamOpen, .ok),
                .say([(.element, Self.offer)], to: .client, opensStream: true), .observe(.demandedTLS),
                .begin(.startTLS, awaits: .client),
            ]
        case .element:
            context.recordItem(event, .send, .element, level: .info, part: .tls)
            guard hasAnswered, context.directions.recv.buffered == nil else { return [] }
            // The consent is sent to the client when TLS with the server is established, or if the server has no TLS.
            return [
                .requestTLS, .finish(.startTLS, .ok), .buffer(Self.consent, .recv), .hold(.send), .awaitConsent,
            ]
        case .end: return [.handle(event, .send), .say([context.streamEnd], to: .client), .end(.nothing)]
        }
    }

    // MARK: The server's TLS, begun by xmpptap

    /// Handles the client's stream header, which the server receives before TLS and again inside TLS, or only inside
    /// TLS.
    private func openForServer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        guard !isOpen, kind == .header else {
            context.recordItem(event, .send, .element, level: .info)
            return [.stop]
        }
        storeStreamHeader(context)
        isOpen = true
        // Later items wait until they can be sent inside TLS.
        let effects: [TLSEffect] = [.handle(event, .send), .hold(.send)]
        return way == .preceding ? effects + [.buffer([], .recv), .awaitConsent] : effects
    }

    private func storeStreamHeader(_ context: borrowing SessionContext) {
        if !isOpen { opening.append(context.directions.bytes(.send)) }
    }

    /// Handles the server's header, its features with an offer of TLS, or its answer to the request.
    private func handleServerItem(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ offer: StreamFeatures?,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        if let offer {
            hasAsked = true
            return [
                .handle(event, .recv, offer), .requestTLS, .say([(.element, Self.request)], to: .server),
                .cancel(.mechanism), .begin(.startTLS, awaits: .server),
            ]
        }
        guard kind == .element else {
            // A header without a version is followed by no features, so the server offers no TLS (RFC 6120 §4.7.5).
            guard event.head.version == nil else { return [.handle(event, .recv)] }
            let isRequired = context.options.serverTLS == .required
            return [.handle(event, .recv), isRequired ? .refuse(Self.offerRefusal(context.options)) : .relayInClear]
        }
        context.recordItem(event, .recv, .element, level: .info, part: .tls)
        guard context.isNamed("proceed", event, .recv) else {
            return [
                .finish(.startTLS, .failed("the server declines")),
                .close(.remoteConnectionFailed, "The server declines TLS."),
            ]
        }
        // The client did not request TLS, so it receives none of the server's answer.
        return [.finish(.startTLS, .ok), .buffer([], .recv), .hold(.recv), .awaitConsent]
    }
}

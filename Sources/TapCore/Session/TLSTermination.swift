internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// TLS that xmpptap terminates: on the server leg, then on the client leg. After that, both streams restart (RFC 6120
/// §5.4).
struct TLSTermination {
    /// The negotiation on the legs; nil before and after it.
    private(set) var negotiation: TLSNegotiation?

    // MARK: State

    /// Whether the bytes of the legs belong to the negotiation.
    var isNegotiating: Bool { negotiation != nil }

    /// Whether TLS may begin as soon as the stored consent can be used.
    var awaitsConsent: Bool { negotiation?.awaitsConsent == true }

    /// Prepares TLS after the stored consent, except for xmpptap's own client, whose driver begins TLS.
    mutating func awaitConsent(_ options: SessionOptions) {
        if !options.isOwnClient { negotiation = TLSNegotiation(options) }
    }

    /// Discards the negotiation, because the session ends.
    mutating func end() { negotiation = nil }

    // MARK: Events

    /// Handles an input of the driver that concerns TLS.
    mutating func handle(_ input: SessionInput, _ context: inout SessionContext) -> [TLSEffect] {
        switch input {
        case .tls(let leg, let event): handle(event, leg, &context)
        case .identityFound(let isServersOwn): handle(.found(isServersOwn: isServersOwn), &context)
        case .identityNotFound(let failure): handle(.notFound(failure), &context)
        default: []
        }
    }

    /// Handles a TLS event of a leg; returns the effects that the session must carry out.
    mutating func handle(
        _ event: TLSEvent,
        _ leg: Leg,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        switch event {
        case .started(let directly): return start(leg, directly: directly, &context)
        case .notStarted(let failure): return handle(.notStarted(failure), &context)
        case .identityRequested(let agreement): return handle(.identityRequested(agreement), &context)
        case .identityChosen(let choice):
            guard isNegotiating else { return [] }
            return [.record(TLSReport(choice)), .observe(.identity(choice))]
        case .opened(let agreement):
            guard isNegotiating || context.options.isOwnClient else { return [] }
            return open(leg, agreement, &context) + handle(.agreed(leg, agreement), &context)
        case .failed(let failure):
            if isNegotiating { return handle(.failed(leg, failure), &context) }
            // In TLS 1.3, a server refuses a certificate after the handshake.
            if let cause = failure.cause, leg == .server, !context.options.isOwnClient {
                return [.blame(cause, failure), .ended(leg, .failed("TLS: \(failure.explanation)"))]
            }
            guard context.options.isOwnClient else { return [.ended(leg, .failed("TLS: \(failure.explanation)"))] }
            return Self.fail(leg, failure, &context)
        case .message(let name, let length, let isReceived):
            if !context.negotiation.isClosed { Self.trace(leg, name, length: length, isReceived: isReceived, &context) }
        case .truncated:
            let message: Prose = "the \(leg.name)'s connection ended without close_notify: its last data may be missing"
            context.record(TLSReport(level: .verbose, leg: leg, code: "tls-truncated", message: message))
        case .remark(let level, let code, let message):
            context.record(TLSReport(level: level, leg: leg, code: code, message: Prose(message)))
        }
        return []
    }

    /// Receives bytes during the negotiation, or at its beginning; returns nil if the bytes belong to a stream.
    mutating func receive(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        _ context: inout SessionContext
    ) -> [TLSEffect]? {
        if negotiation == nil {
            guard direction == .send, context.options.holdsProceed, !context.options.isOwnClient,
                context.negotiation.isConnected
            else { return nil }
            negotiation = TLSNegotiation(context.options, first: bytes[0])
            if negotiation == nil { return nil }
        }
        var received: [UInt8] = []
        received.append(bytes)
        return handle(.received(direction.source, received), &context)
    }

    /// Begins TLS after the consent, unless there is an obstacle.
    mutating func begin(_ context: inout SessionContext) -> [TLSEffect] {
        if let obstacle = Self.obstacle(context) {
            negotiation = nil
            return Self.fail(obstacle, &context)
        }
        let domain = context.info.domain
        // Certificates are verified and issued for this domain, so the stream inside TLS must name the same domain.
        let effects = domain.map { [TLSEffect.choose(domain: $0)] } ?? []
        // TLS on the server leg can begin with the first byte, independently of the client.
        let isDirect = context.options.serverTLS == .direct || context.negotiation.asymmetric?.precedesClient == true
        let direct = context.info.kind == .server ? "xmpp-server" : "xmpp-client"
        let input = TLSNegotiation.Input.consented(domain: domain, directProtocol: isDirect ? direct : nil)
        return effects + handle(input, &context)
    }

    /// Passes an input to the negotiation; does nothing if there is none.
    mutating func handle(
        _ input: TLSNegotiation.Input,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        switch negotiation?.handle(input) {
        case nil: return []
        case .perform(.startClient(let version, let protocols, isDirect: false, _)):
            let consent = context.directions.recv.buffered ?? []
            return [
                .request(.startClient(maximumVersion: version, protocols: protocols, isDirect: false, first: consent))
            ]
        case .perform(let command): return [.request(command)]
        case .release(let server, let client):
            (context.info.serverTLS, context.info.clientTLS) = (server?.version, client?.version)
            return compareVersions(server?.version, client?.version, context.options) + finishNegotiation()
        case .abandon: return finishNegotiation()
        case .fail(let leg, let failure):
            negotiation = nil
            return Self.fail(leg, failure, &context)
        }
    }

    /// Ends the negotiation. Bytes received during the negotiation belong to the streams.
    private mutating func finishNegotiation() -> [TLSEffect] {
        guard let ended = negotiation.take() else { return [] }
        return Direction.allCases.map { .receive(ended.kept($0), $0) }
    }

    /// Warns if the TLS versions of the legs differ, and reports the legs for the channel binding forecast. `client` is
    /// nil if the client leg has no TLS.
    private func compareVersions(
        _ server: UInt16?,
        _ client: UInt16?,
        _ options: SessionOptions
    ) -> [TLSEffect] {
        guard let server else { return [] }
        var effects: [TLSEffect] = []
        if let client, server != client {
            let message: Prose =
                "\(ClientHello.name(ofVersion: client)) with the client and \(ClientHello.name(ofVersion: server)) with the "
                + "server: if the server signs the version (XEP-0515), the client must abort the login"
            let report = TLSReport(level: .warn, leg: .client, code: "tls-version-skew", message: message)
            effects.append(.record(report))
        }
        let isOwn = negotiation?.showsServersOwn == true
        let strategy: BindingForecast.Strategy =
            options.stripsBinding ? .strip : client == nil ? .clear : isOwn ? .serverCertificate : .minted
        let legs = BindingForecast.Legs(
            strategy: strategy,
            clientTLS: client,
            serverTLS: server,
            hasSameCertificate: strategy == .serverCertificate
        )
        return effects + [.observe(.secured(legs))]
    }

    // MARK: Handshakes

    /// Handles the start of the handshake on a leg. The client has received the consent, from the server or from
    /// xmpptap.
    private func start(
        _ leg: Leg,
        directly: Bool,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        guard !context.negotiation.isFinished else { return [] }
        if context.options.isOwnClient, !directly, let obstacle = Self.obstacle(context) {
            return Self.fail(obstacle, &context)
        }
        var effects: [TLSEffect] = []
        if leg == .client, let consent = context.directions.recv.buffered {
            if context.negotiation.asymmetric != nil { context.recordSent([(.element, consent)], to: .client) }
            effects = [.buffer(nil, .recv)]
        }
        let details: Attributes = [
            "leg": .string(leg.name.description), "begins": directly ? "directly" : "starttls",
        ]
        return effects + [.beginHandshake, .begin(.tls, leg: leg, awaits: leg, details)]
    }

    /// Handles the success of the handshake on a leg. Both streams restart after the client's handshake, or if xmpptap
    /// is the client itself (``SessionOptions/isOwnClient``).
    private func open(
        _ leg: Leg,
        _ agreement: TLSAgreement,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        guard !context.negotiation.isFinished else { return [] }
        if agreement.overlooked != nil { context.info.isUnverified = true }
        let report = TLSReport(opened: agreement, on: leg)
        var effects: [TLSEffect] = [
            .finish(.tls, leg: leg, .ok), .record(report), .secured(leg, agreement.secured),
        ]
        effects.append(.observe(.agreed(leg, agreement)))
        if leg == .client {
            context.info.hasClientTLS = true
            if let trust = agreement.trust { effects.append(.observe(.presented(trust))) }
            if let peer = agreement.peer { effects += [.record(TLSReport(peer)), .observe(.peer(peer))] }
        }
        if leg == .client || context.options.isOwnClient {
            context.info.version = nil
            return effects + [.enterTLS, .forgetClear] + Direction.allCases.map { .enterStream($0) }
        }
        return context.options.clientTLS == .off ? effects + [.openInside] : effects
    }

    // MARK: Failures

    /// Closes the session, because TLS failed on a leg. The client gets the answer that it expects in its state: a
    /// `<failure/>` (RFC 6120 §5.4.2.2), or the TLS alert of the failure.
    private static func fail(
        _ leg: Leg,
        _ failure: TLSFailure,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        guard !context.negotiation.isFinished else { return [] }
        var effects: [TLSEffect] = []
        if let cause = failure.cause { effects.append(.blame(cause, failure)) }
        // If TLS has not begun, the timeline does not know the leg.
        var details: Attributes = ["leg": .string(leg.name.description)]
        details[LoginStep.alertDetail] = failure.peerAlert.map { .string($0) }
        let outcome = LoginStep.Outcome.failed(condition: failure.code, Prose(failure.explanation))
        effects.append(.finish(.tls, leg: leg, outcome, details))
        effects.append(
            .record(
                TLSReport(
                    kind: .error,
                    level: .error,
                    leg: leg,
                    code: failure.code,
                    message: Prose(failure.explanation),
                    remedy: failure.remedy,
                    details: failure.certificate
                )
            )
        )
        if context.info.ending == nil { context.info.ending = .tls(leg: leg, failure.explanation) }
        if context.options.clientTLS == .off {
            // The client did not request TLS, and may have no stream yet.
            return effects + [.end(.error(.remoteConnectionFailed, "TLS with the server failed."))]
        }
        if context.directions.recv.buffered != nil || context.negotiation.isConsentAwaited {
            return effects + [.buffer(nil, .recv), .end(.failure)]
        }
        if leg == .server, context.info.hasClientTLS {
            // The client waits for the server's stream inside TLS.
            let text = "TLS with the server failed."
            return effects + [.end(.error(.remoteConnectionFailed, text, opensStream: true))]
        }
        return effects + [.end(failure.alert.map { .alert($0) } ?? .nothing)]
    }

    /// Returns the effects of an obstacle to TLS.
    private static func fail(
        _ obstacle: Obstacle,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        switch obstacle {
        case .noConsent: return []
        case .plaintext(.send):
            let explanation =
                "\(context.directions.send.waiting) bytes of plaintext after <starttls/>: injected, or sent by a client that does not "
                + "wait"
            return fail(.client, TLSFailure(code: "starttls-injection", explanation), &context)
        case .plaintext(.recv):
            let explanation = "\(context.directions.recv.waiting) bytes of plaintext after <proceed/>: injected"
            return fail(.server, TLSFailure(code: "starttls-injection", explanation), &context)
        }
    }

    // MARK: Plaintext received instead of TLS

    /// The reason why TLS must not begin.
    private enum Obstacle {
        /// The session ends, or the consent is no longer stored.
        case noConsent
        /// A peer has sent bytes that would count as TLS plaintext (CVE-2011-0411 and similar).
        case plaintext(Direction)
    }

    /// Returns why TLS must not begin after the stored `<proceed/>`. Returns nil if neither peer has sent further
    /// bytes: the client after its request, the server after the `<proceed/>`.
    private static func obstacle(_ context: borrowing SessionContext) -> Obstacle? {
        guard !context.negotiation.isFinished, context.directions.recv.buffered != nil else { return .noConsent }
        // If the client leg has no TLS, the client's further bytes are sent inside the server's TLS.
        if hasText(.recv, context) { return .plaintext(.recv) }
        return context.options.clientTLS != .off && hasText(.send, context) ? .plaintext(.send) : nil
    }

    /// Returns whether bytes other than white space are pending. White space is allowed, because go-sendxmpp sends a
    /// line feed after its request.
    private static func hasText(_ direction: Direction, _ context: borrowing SessionContext) -> Bool {
        let pending = context.directions.pending(direction)
        for index in pending.indices where ![0x20, 0x09, 0x0A, 0x0D].contains(pending[index]) { return true }
        return false
    }

    /// Closes a session whose client continues in clear after its request for TLS; returns nil if it does not.
    func refuseEarlyBytes(_ context: inout SessionContext) -> [TLSEffect]? {
        guard context.options.holdsProceed, context.options.clientTLS != .off, context.negotiation.isStartingTLS,
            context.directions.send.isHeld, Self.hasText(.send, context)
        else { return nil }
        return Self.fail(.plaintext(.send), &context)
    }

    // MARK: Records

    private static func trace(
        _ leg: Leg,
        _ name: String,
        length: Int,
        isReceived: Bool,
        _ context: inout SessionContext
    ) {
        guard context.options.level >= .trace else { return }
        var record = context.makeRecord(.tls, .trace, part: .tls)
        record.leg = leg
        record.direction = isReceived ? leg.inbound : leg.inbound.opposite
        record.length = UInt64(clamping: length)
        record.code = "tls-message"
        record.message = "\(name) \(isReceived ? "from" : "to") the \(leg.name), \(length) bytes"
        context.emit(consume record)
    }
}

extension TLSNegotiation {
    /// Creates the negotiation for STARTTLS, which ``Input/consented(domain:directProtocol:)`` begins.
    init(_ options: SessionOptions) { self.init(options, isDirect: false) }

    /// Creates the negotiation for a client that begins with TLS; nil if its first byte is not TLS, or the client leg
    /// has no TLS.
    init?(_ options: SessionOptions, first: UInt8) {
        guard first == 0x16, options.clientTLS != .off else { return nil }
        self.init(options, isDirect: true)
    }

    private init(_ options: SessionOptions, isDirect: Bool) {
        self.init(
            isDirect: isDirect,
            hasClientTLS: options.clientTLS != .off,
            hasServerTLS: options.serverTLS != .off,
            limit: options.waitingBytes
        )
    }
}

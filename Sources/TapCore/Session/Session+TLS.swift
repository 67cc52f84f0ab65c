internal import TapRecord
import XMPPCore

// TLS that xmpptap terminates: the server's leg first, then the client's, then both streams restart (RFC 6120 §5.4).
extension Session {
    // MARK: Events of the legs

    /// Handles a TLS event of a leg.
    mutating func handle(_ event: TLSEvent, _ leg: Leg) {
        switch event {
        case .started(let directly): started(leg, directly: directly)
        case .notStarted(let failure): negotiateTLS(.notStarted(failure))
        case .opened(let agreement):
            guard tls != nil || options.isOwnClient else { return }
            opened(leg, agreement)
            negotiateTLS(.agreed(leg, agreement))
        case .failed(let failure):
            if tls != nil {
                negotiateTLS(.failed(leg, failure))
            } else if options.isOwnClient {
                fail(leg, failure)
            } else {
                ended(leg, .failed("TLS: \(failure.words)"))
            }
        case .message(let name, let length, let isReceived): trace(leg, name, length: length, isReceived: isReceived)
        case .truncated:
            let words = "the \(leg.name)'s connection ended without close_notify: its last data may be missing"
            remark(leg, .verbose, code: "tls-truncated", words)
        case .remark(let level, let code, let words): remark(leg, level, code: code, words)
        }
    }

    /// Takes bytes during the negotiation of TLS, or at its beginning; returns false if they belong to a stream.
    mutating func negotiatesTLS(_ direction: Direction, _ bytes: Span<UInt8>) -> Bool {
        if tls == nil {
            guard direction == .send, options.holdsProceed, !options.isOwnClient, negotiation.isConnected else {
                return false
            }
            tls = TLSNegotiation(options, first: bytes[0])
            if tls == nil { return false }
        }
        var received: [UInt8] = []
        received.append(bytes)
        negotiateTLS(.received(direction.source, received))
        return true
    }

    /// Begins TLS after the stored consent, when all other work is done. xmpptap's own client begins it on its side.
    mutating func awaitTLS() { if !options.isOwnClient { tls = TLSNegotiation(options) } }

    /// Begins TLS after the consent, if permitted.
    mutating func beginTLSBehindConsent() {
        guard mayBeginTLS() else { return tls = nil }
        let domain = info.domain
        // The certificates are verified and issued for this domain: the stream inside must use the same.
        if let domain { chosenDomain = domain }
        let direct = info.kind == .server ? "xmpp-server" : "xmpp-client"
        negotiateTLS(.consented(domain: domain, directProtocol: serverTLSIsDirect ? direct : nil))
    }

    /// Passes an input to the negotiation, and carries out its output.
    mutating func negotiateTLS(_ input: TLSNegotiation.Input) {
        switch tls?.handle(input) {
        case nil: break
        case .perform(.startClient(let version, let protocols, isDirect: false, _)):
            let consent = context.directions.recv.buffered ?? []
            context.outlet.request(
                .tls(.startClient(maximumVersion: version, protocols: protocols, isDirect: false, first: consent))
            )
        case .perform(let command): context.outlet.request(.tls(command))
        case .release(let server, let client):
            (info.serverTLS, info.clientTLS) = (server?.version, client?.version)
            noteVersions(server?.version, client?.version)
            endNegotiation()
        case .abandon: endNegotiation()
        case .fail(let leg, let failure):
            tls = nil
            fail(leg, failure)
        }
    }

    /// Bytes received meanwhile belong to the streams.
    private mutating func endNegotiation() {
        guard let tls = tls.take() else { return }
        for direction in Direction.allCases {
            let bytes = tls.kept(direction)
            if receive(direction, bytes.span, at: now) == .relay { context.outlet.pass(bytes, direction) }
        }
    }

    /// Logs the effect of different versions, and makes the channel-binding forecast; the client may have no TLS.
    private mutating func noteVersions(_ server: UInt16?, _ client: UInt16?) {
        guard let server else { return }
        if let client, server != client {
            remark(
                .client,
                .warn,
                code: "tls-version-skew",
                "\(ClientHello.name(ofVersion: client)) with the client and \(ClientHello.name(ofVersion: server)) with the "
                    + "server: if the server signs the version (XEP-0515), the client must abort the login"
            )
        }
        let isOwn = tls?.showsServersOwn == true
        let strategy: BindingForecast.Strategy =
            options.stripsBinding ? .strip : client == nil ? .clear : isOwn ? .serverCertificate : .minted
        bind(
            BindingForecast.Legs(
                strategy: strategy,
                clientTLS: client,
                serverTLS: server,
                hasSameCertificate: strategy == .serverCertificate
            )
        )
    }

    /// Whether TLS may begin after the stored `<proceed/>`: neither side has sent bytes after it, or after the request,
    /// that would count as TLS plaintext (CVE-2011-0411 and similar). Otherwise the session ends.
    private mutating func mayBeginTLS() -> Bool {
        guard !negotiation.isFinished, context.directions.recv.buffered != nil else { return false }
        // If the client has no TLS, its bytes continue inside the server's.
        let both = options.clientTLS != .off
        for direction in both ? [Direction.recv, .send] : [.recv] where hasText(direction) {
            refuseInjection(direction)
            return false
        }
        return true
    }

    /// The handshake on a leg begins. The client has received the consent, the server's or xmpptap's.
    private mutating func started(_ leg: Leg, directly: Bool) {
        guard !negotiation.isFinished, !options.isOwnClient || directly || mayBeginTLS() else { return }
        if leg == .client, let consent = context.directions.recv.takeBuffered(), negotiation.asymmetric != nil {
            context.noteSaid([(.element, consent)], to: .client)
        }
        negotiation.beginHandshake()
        begin(
            .tls,
            key: leg.name.description,
            awaits: leg,
            details: ["leg": .string(leg.name.description), "begins": directly ? "directly" : "starttls"]
        )
    }

    /// The handshake on a leg has succeeded. After the client's, or if the client has none (see
    /// ``SessionOptions/isOwnClient``), both streams restart.
    mutating func opened(_ leg: Leg, _ agreement: TLSAgreement) {
        guard !negotiation.isFinished else { return }
        finish(.tls, key: leg.name.description, .ok)
        let overlooked = agreement.overlooked
        if overlooked != nil { self.info.isUnverified = true }
        var record = context.makeRecord(.tls, overlooked == nil ? .info : .warn, part: .tls)
        record.leg = leg
        record.code = Record.Code.tlsOpened
        record.message = Prose(overlooked.map { "\(agreement.words); NOT VERIFIED: \($0)" } ?? agreement.words)
        record.tls = agreement.details
        context.emit(consume record)
        secured(leg, agreement.secured)
        if leg == .client {
            info.hasClientTLS = true
            if let trust = agreement.trust { login?.observe(.presented(trust)) }
        }
        if leg == .client || options.isOwnClient {
            beginInside()
        } else if options.clientTLS == .off {
            openInside()
        }
    }

    /// TLS has failed on a leg: ends the session. The client gets the answer that it expects in its state: a
    /// `<failure/>` (RFC 6120 §5.4.2.2), or the failure's TLS alert.
    private mutating func fail(_ leg: Leg, _ failure: TLSFailure) {
        guard !negotiation.isFinished else { return }
        if let cause = failure.cause {
            blame(
                cause,
                at: .tls,
                failure.words,
                side: failure.side,
                condition: failure.code,
                remedy: failure.remedy
            )
        }
        var details: Attributes = ["leg": .string(leg.name.description)]
        details[LoginStep.alertDetail] = failure.peerAlert.map { .string($0) }
        // The timeline does not know the leg of TLS that has not begun.
        finish(
            .tls,
            key: leg.name.description,
            .failed(condition: failure.code, Prose(failure.words)),
            details: details
        )
        var record = context.makeRecord(.error, .error, part: .tls)
        record.leg = leg
        record.code = failure.code
        record.message = context.advised(Prose(failure.words), failure.remedy)
        record.tls = failure.certificate
        context.emit(consume record)
        endWithoutTLS(leg, failure.words, failure.alert)
    }

    private mutating func remark(_ leg: Leg, _ level: Level, code: String, _ words: String) {
        var record = context.makeRecord(.note, level, part: .tls)
        record.leg = leg
        record.code = code
        record.message = Prose(words)
        context.emit(consume record)
    }

    private mutating func trace(_ leg: Leg, _ name: String, length: Int, isReceived: Bool) {
        guard options.level >= .trace, !negotiation.isClosed else { return }
        var record = context.makeRecord(.tls, .trace, part: .tls)
        record.leg = leg
        record.direction = isReceived ? leg.inbound : leg.inbound.opposite
        record.length = UInt64(clamping: length)
        record.code = "tls-message"
        record.message = "\(name) \(isReceived ? "from" : "to") the \(leg.name), \(length) bytes"
        context.emit(consume record)
    }

    // MARK: Steps

    private mutating func beginInside() {
        negotiation.enterTLS()
        info.version = nil
        forgetClear()
        for direction in Direction.allCases { context.directions[direction].enterTLS() }
    }

    /// Discards data received in clear, which could have been forged.
    mutating func forgetClear() {
        info.features = []
        info.mechanisms = []
        info.mechanism = nil
        login?.observe(.enteredTLS)
    }

    private mutating func endWithoutTLS(_ leg: Leg, _ words: String, _ alert: HandshakeAlert?) {
        if info.ending == nil { info.ending = .tls(leg: leg, words) }
        if options.clientTLS == .off {
            // The client did not request TLS, and may have no stream yet.
            sayError(.remoteConnectionFailed, "TLS with the server failed.", to: .client)
        } else if context.directions.recv.takeBuffered() != nil || negotiation.isConsentAwaited {
            sayFailure()
        } else if let alert {
            return self.alert(alert)
        }
        finishLegs()
    }

    // MARK: Plaintext received instead of TLS

    /// Whether bytes other than white space are pending: go-sendxmpp ends its request with a line feed.
    private func hasText(_ direction: Direction) -> Bool {
        let pending = context.directions.pending(direction)
        for index in pending.indices where ![0x20, 0x09, 0x0A, 0x0D].contains(pending[index]) { return true }
        return false
    }

    /// Ends a session whose client continues in clear after its request for TLS; returns whether it did.
    mutating func refusesEarlyBytes() -> Bool {
        guard options.holdsProceed, options.clientTLS != .off, negotiation.isStartingTLS,
            context.directions.send.isHeld,
            hasText(.send)
        else { return false }
        refuseInjection(.send)
        return true
    }

    private mutating func refuseInjection(_ direction: Direction) {
        let leg = direction.source
        let words =
            direction == .send
            ? "\(context.directions.send.waiting) bytes of plaintext after <starttls/>: injected, or sent by a client that does not "
                + "wait"
            : "\(context.directions.recv.waiting) bytes of plaintext after <proceed/>: injected"
        fail(leg, TLSFailure(code: "starttls-injection", words))
    }

    /// Buffers the server's `<proceed/>` until TLS is up on the server's leg. Refuses an unexpected one (without a request, or
    /// inside TLS): the client would start TLS and misread the stream error.
    func interceptConsent(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard options.holdsProceed, event.item == .element, direction == .recv, event.head.namespace.namespace == .tls,
            !event.isTruncated, !negotiation.isRefusing, context.isNamed("proceed", event, .recv)
        else { return nil }
        if negotiation.isConsentAwaited { return .buffer(until: .serverTLS) }
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

    /// Warns of a login without TLS, if TLS is intercepted.
    mutating func warnOfClearLogin(_ offer: StreamFeatures) {
        guard options.holdsProceed, negotiation.isClear, negotiation.isOpening, offer.startTLS == .absent,
            !info.mechanisms.isEmpty
        else { return }
        note(
            code: "no-tls",
            "the server offers no TLS; the session continues in clear text, including the login",
            direction: .recv,
            part: .tls
        )
    }
}

extension TLSNegotiation {
    /// Creates the negotiation for a client that may receive the consent to TLS;
    /// ``Input/consented(domain:directProtocol:)`` begins it.
    init(_ options: SessionOptions) { self.init(options, isDirect: false) }

    /// Creates the negotiation for a client that begins with TLS; nil if its first byte or the options of its leg rule
    /// that out.
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

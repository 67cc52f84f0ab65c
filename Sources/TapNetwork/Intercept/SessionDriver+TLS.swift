internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// TLS that is ended here.
extension SessionDriver {
    private var options: SessionOptions { loop.context.options }

    // MARK: Beginning

    /// Whether the client's first bytes begin TLS that is to be ended here; they are kept then.
    func beginsDirectly(_ buffer: ByteBuffer) -> Bool {
        guard interception != nil, options.clientTLS != .off, stage == .relaying, server.isOpen,
            buffer.readableBytesUInt8Span[0] == 0x16
        else { return false }
        let negotiation = TLSNegotiation(options, directly: buffer)
        self.negotiation = negotiation
        stage = .negotiatingTLS
        // What has come behind it is more of the same.
        deferred.removeAll { event in
            guard case .received(.client, let more) = event else { return false }
            return negotiation.take(more)
        }
        return true
    }

    /// Goes on with TLS that is to begin, once nothing else is being done.
    func advanceNegotiation() {
        guard let negotiation, negotiation.step == .ready, !isPerforming else { return }
        guard stage == .relaying || stage == .negotiatingTLS, let interception else { return self.negotiation = nil }
        if negotiation.isDirect {
            if let fault = negotiation.fault {
                return failNegotiation(code: "malformed-client-hello", fault, leg: .client, alert: .decodeError)
            }
        } else {
            guard session.mayBeginTLS(at: now) else {
                self.negotiation = nil
                return perform()
            }
            // What the certificates are verified for, and made for, is what the stream inside has to be for.
            if let domain = session.info.domain { session.chose(domain: domain) }
        }
        stage = .negotiatingTLS
        guard negotiation.secures(.server) else { return findIdentity(negotiation) }
        negotiation.go(to: .server)
        do {
            let target = try target(of: negotiation)
            try server.secure(observed(TLSEngine(interception.serverLeg, to: target)))
        } catch let error as JIDError {
            return failNegotiation(
                code: "tls-failed",
                "no certificate can stand for the domain: \(error)",
                alert: .unrecognizedName
            )
        } catch {
            return failNegotiation(code: "tls-failed", "\(error)")
        }
        session.tlsBegins(.server, directly: negotiation.isDirect || session.serverTLSIsDirect, at: now)
        perform()
        server.tls?.start()
    }

    /// An engine whose messages are told where somebody wants to know.
    private func observed(_ engine: TLSEngine) -> TLSEngine {
        if options.level >= .trace { engine.keepMessages() }
        return engine
    }

    /// Whom the server is to be: the domain that the client wants.
    private func target(of negotiation: TLSNegotiation) throws -> ServerLegTarget {
        var target = ServerLegTarget(reference: try ServerReference(domain: name(for: negotiation)))
        guard let hello = negotiation.hello else {
            // The client, which has asked for TLS in its stream or not at all, names no protocol (XEP-0368 §3).
            if session.serverTLSIsDirect {
                target.protocols = [session.info.kind == .server ? "xmpp-server" : "xmpp-client"]
            }
            return target
        }
        target.protocols = hello.protocols
        // A client that hides the name hides it from the server too.
        if hello.serverName == nil { target.serverName = nil }
        return target
    }

    /// The domain that the client wants: the `to` of its stream, or the name in its hello; failing both, the server's own
    /// name.
    func name(for negotiation: TLSNegotiation) -> String {
        if let name = wantedName(negotiation) { return name }
        switch route {
        case .endpoint(let dialer):
            let host = dialer.endpoint.host
            return host.contains(":") ? "[\(host)]" : host
        case .domains(let dialer): return dialer.domains.first?.name ?? "localhost"
        }
    }

    /// The domain that the client has named; nil where it has named none.
    func wantedName(_ negotiation: TLSNegotiation) -> String? {
        negotiation.isDirect ? negotiation.hello?.serverName : session.info.domain
    }

    // MARK: What TLS tells

    /// Something has happened to TLS on a leg.
    func told(_ leg: Leg, _ event: TLSHandler.Event) {
        switch event {
        case .opened: leg == .server ? serverOpened() : clientOpened()
        case .needsIdentity: break
        case .messages(let messages):
            for message in messages {
                session.traceTLS(leg, message.name, length: message.length, isReceived: message.isReceived, at: now)
            }
            perform()
        case .truncated:
            handler(leg.other).tls?.sendsCloseNotify = false
            session.remarkTLS(
                leg,
                .verbose,
                code: "tls-truncated",
                "the \(leg.name)'s connection ends without close_notify: what it sent last may be missing",
                at: now
            )
        case .failed(let fault):
            guard let negotiation, stage == .negotiatingTLS else {
                return ended(leg, .failed("TLS: \(fault.words(peer: "the \(leg.name)"))"))
            }
            fail(negotiation, leg, by: fault)
        }
    }

    private func serverOpened() {
        guard stage == .negotiatingTLS, let negotiation, negotiation.step == .server,
            let parameters = server.tls?.engine.parameters()
        else {
            return
        }
        negotiation.agreed = parameters
        session.tlsOpened(
            .server,
            parameters.details,
            parameters.words(peer: "the server"),
            overlooked: parameters.overlookedWords,
            at: now
        )
        guard negotiation.secures(.client) else {
            forecastBinding(parameters.versionNumber, nil)
            tellBindings()
            self.negotiation = nil
            stage = .relaying
            return perform()
        }
        perform()
        findIdentity(negotiation)
    }

    /// Has a certificate found for the client, like the server's where that has shown one.
    private func findIdentity(_ negotiation: TLSNegotiation) {
        guard let interception else { return }
        negotiation.go(to: .identity)
        let real = negotiation.agreed?.certificate
        let isNamed = wantedName(negotiation) != nil
        let name = name(for: negotiation)
        interception.certificate(for: name, isNamed: isNamed, like: real, at: now.time, on: loop.eventLoop)
            .assumeIsolated().whenComplete { [weak self] result in
                guard let self, stage == .negotiatingTLS, self.negotiation === negotiation else { return }
                switch result {
                case .success(let shown): beginClient(negotiation, shown)
                case .failure(let failure as IdentityFailure):
                    if failure.isLimit, interception.limitWarning.isFirst() {
                        session.remarkTLS(
                            .client,
                            .warn,
                            code: "authority-limit",
                            "authority limit reached: TLS fails for sessions that need a new certificate authority: "
                                + failure.words,
                            at: now
                        )
                    }
                    failNegotiation(
                        code: failure.code,
                        "the client cannot be shown a certificate: \(failure.words)",
                        alert: failure.isForName ? .unrecognizedName : .internalError
                    )
                case .failure(let error):
                    failNegotiation(code: "no-certificate", "the client cannot be shown a certificate: \(error)")
                }
            }
    }

    private func beginClient(_ negotiation: TLSNegotiation, _ shown: ShownCertificate) {
        guard let interception else { return }
        negotiation.shown = shown
        if shown.isAuthorityNew, let name = shown.authority {
            session.remarkTLS(
                .client,
                .info,
                code: "authority-created",
                "created a certificate authority for \(name); clients must trust it: run 'xmpptap ca export --domain "
                    + "\(name)\(interception.authorities?.flag ?? "")'",
                at: now
            )
        }
        guard !hasPlaintext(from: .client, .server) else {
            return failNegotiation(
                code: "starttls-injection",
                "bytes that are not TLS came while TLS was to begin",
                leg: .client
            )
        }
        var offer = ClientLegOffer(identity: shown.identity)
        offer.maximumVersion = negotiation.agreed?.versionNumber
        if negotiation.isDirect { offer.protocols = protocols(negotiation) }
        do {
            let engine = observed(try TLSEngine(interception.clientLeg, for: offer))
            if !negotiation.isDirect {
                // The consent goes out in clear, and all after it by TLS.
                session.proceed(at: now)
                perform()
            }
            try client.secure(engine)
        } catch {
            return failNegotiation(code: "tls-failed", "\(error)", leg: .client)
        }
        negotiation.go(to: .client)
        session.tlsBegins(.client, directly: negotiation.isDirect, at: now)
        perform()
        client.tls?.start(early: negotiation.early.readableBytes > 0 ? negotiation.early : nil)
    }

    /// What ALPN is answered with: what the server has chosen, or as it would.
    private func protocols(_ negotiation: TLSNegotiation) -> ClientLegOffer.Protocols {
        guard negotiation.secures(.server) else { return .chosen(["xmpp-client", "xmpp-server"]) }
        return negotiation.agreed?.applicationProtocol.map { .chosen([$0]) } ?? .ignored
    }

    private func clientOpened() {
        guard stage == .negotiatingTLS, let negotiation, negotiation.step == .client,
            let parameters = client.tls?.engine.parameters()
        else {
            return
        }
        session.tlsOpened(.client, parameters.details, parameters.words(peer: "the client"), at: now)
        if let agreed = negotiation.agreed, agreed.version != parameters.version {
            session.remarkTLS(
                .client,
                .warn,
                code: "tls-version-skew",
                "\(parameters.version) with the client and \(agreed.version) with the server: where the server signs the "
                    + "version (XEP-0515), the client has to abort the login",
                at: now
            )
        }
        forecastBinding(negotiation.agreed?.versionNumber, parameters.versionNumber)
        tellBindings()
        self.negotiation = nil
        stage = .relaying
        perform()
    }

    /// Tells a session whose logins are ended here what they may be bound to.
    private func tellBindings() {
        guard loop.context.options.authenticator != nil else { return }
        session.secured(client: client.tls?.engine.securedLeg, server: server.tls?.engine.securedLeg)
    }

    /// Has the session tell what channel binding will come to; the client may have no TLS.
    private func forecastBinding(_ server: TLSVersion?, _ client: TLSVersion?) {
        guard let server, let interception else { return }
        let strategy: BindingForecast.Strategy
        switch interception.identities {
        case _ where options.stripsBinding: strategy = .strip
        case _ where client == nil: strategy = .clear
        case .minted: strategy = .minted
        case .own: strategy = .serverCertificate
        }
        let isOwn = strategy == .serverCertificate
        session.bind(
            BindingForecast.Legs(
                strategy,
                clientTLS: client?.rawValue,
                serverTLS: server.rawValue,
                hasSameCertificate: isOwn
            )
        )
    }

    /// Whether anything but white space waits that came before TLS.
    private func hasPlaintext(from legs: Leg...) -> Bool {
        deferred.contains { event in
            guard case .received(let leg, let buffer) = event, legs.contains(leg) else { return false }
            return buffer.readableBytesView.contains { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        }
    }
}

internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// TLS termination: gives inputs to the negotiation and performs its outputs.
extension SessionDriver {
    typealias Negotiation = TLSNegotiation<ShownCertificate>

    private var options: SessionOptions { loop.context.options }

    // MARK: Beginning

    /// Whether the client's first bytes begin TLS that is to be terminated here; they are kept then.
    func beginsDirectly(_ buffer: ByteBuffer) -> Bool {
        guard interception != nil, stage == .relaying, server.isOpen,
            let negotiation = Negotiation(options, upstream: upstreamName, first: buffer.readableBytesUInt8Span[0])
        else { return false }
        self.negotiation = negotiation
        stage = .negotiatingTLS
        // What has come behind it is more of the same.
        let more = deferred.takeReads(of: .client)
        heldHello = Array(buffer.readableBytesView) + Array(more.readableBytesView)
        return true
    }

    /// Begins TLS with what the client has begun with, once no command is under way: an end that came in between would wait.
    func beginHeldHello() {
        guard let hello = heldHello else { return }
        heldHello = nil
        negotiate(.received(hello))
    }

    /// Begins TLS behind the consent that the session holds, if it may.
    func beginAfterConsent() {
        isConsentHeld = false
        guard stage == .relaying, interception != nil else { return }
        guard session.mayBeginTLS(at: now) else { return perform() }
        let domain = session.info.domain
        // What the certificates are verified for, and made for, is what the stream inside has to be for.
        if let domain { session.chose(domain: domain) }
        let direct = session.info.kind == .server ? "xmpp-server" : "xmpp-client"
        negotiation = Negotiation(options, upstream: upstreamName)
        stage = .negotiatingTLS
        negotiate(.consented(domain: domain, directProtocol: session.serverTLSIsDirect ? direct : nil))
    }

    /// The server's own name, for a client that names no domain.
    private var upstreamName: String {
        switch route {
        case .endpoint(let dialer):
            let host = dialer.endpoint.host
            return host.contains(":") ? "[\(host)]" : host
        case .domains(let dialer): return dialer.domains.first?.name ?? "localhost"
        }
    }

    // MARK: What TLS tells

    /// Something has happened to TLS on a leg.
    func told(_ leg: Leg, _ event: TLSHandler.Event) {
        switch event {
        case .opened: opened(leg)
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
                "the \(leg.name)'s connection ended without close_notify: its last data may be missing",
                at: now
            )
        case .failed(let fault):
            guard stage == .negotiatingTLS else {
                return ended(leg, .failed("TLS: \(fault.words(peer: "the \(leg.name)"))"))
            }
            negotiate(.failed(leg, failure(leg, fault)))
        }
    }

    private func opened(_ leg: Leg) {
        guard stage == .negotiatingTLS, let parameters = handler(leg).tls?.engine.parameters() else { return }
        session.tlsOpened(
            leg,
            parameters.details,
            parameters.words(peer: "the \(leg.name)"),
            overlooked: parameters.overlookedWords,
            at: now
        )
        negotiate(
            .agreed(
                leg,
                Negotiation.Agreed(
                    version: parameters.versionNumber?.rawValue,
                    applicationProtocol: parameters.applicationProtocol
                )
            )
        )
        perform()
    }

    // MARK: What the negotiation wants

    /// Tells the negotiation what happened, and does what it wants.
    func negotiate(_ input: Negotiation.Input) {
        switch negotiation?.handle(input) {
        case nil: break
        case .startServer(let name, let sendsName, let protocols, let isDirect):
            startServer(name, sendsName: sendsName, protocols, isDirect: isDirect)
        case .findIdentity(let name, let isNamed): findIdentity(for: name, isNamed: isNamed)
        case .startClient(let handshake): startClient(handshake)
        case .release(let server, let client): release(server, client)
        case .abandon: endNegotiation()
        case .fail(let leg, let failure):
            endNegotiation()
            deferred.removeAll()
            session.tlsFailed(leg, failure, at: now)
            perform()
        }
    }

    private func endNegotiation() {
        negotiation = nil
        stage = .relaying
    }

    private func startServer(_ name: String, sendsName: Bool, _ protocols: [String], isDirect: Bool) {
        guard let interception else { return }
        do {
            var target = ServerLegTarget(reference: try ServerReference(domain: name))
            target.protocols = protocols
            if !sendsName { target.serverName = nil }
            try server.secure(observed(TLSEngine(interception.serverLeg, to: target)))
        } catch let error as JIDError {
            let words = "cannot issue a certificate for the domain: \(error)"
            return negotiate(.notStarted(TLSFailure(code: "tls-failed", words, alert: .unrecognizedName)))
        } catch {
            return negotiate(.notStarted(TLSFailure(code: "tls-failed", "\(error)")))
        }
        session.tlsBegins(.server, directly: isDirect, at: now)
        perform()
        server.tls?.start()
    }

    private func startClient(_ handshake: Negotiation.ClientHandshake) {
        guard let interception else { return }
        var offer = ClientLegOffer(identity: handshake.identity.identity)
        offer.maximumVersion = handshake.maximumVersion.flatMap(TLSVersion.init)
        offer.protocols = handshake.protocols.map { .chosen($0) } ?? .ignored
        do {
            let engine = observed(try TLSEngine(interception.clientLeg, for: offer))
            if handshake.early == nil {
                // The consent goes out in clear, and all after it by TLS.
                session.proceed(at: now)
                perform()
                guard stage == .negotiatingTLS else { return }
            }
            try client.secure(engine)
        } catch {
            return negotiate(.notStarted(TLSFailure(code: "tls-failed", "\(error)")))
        }
        session.tlsBegins(.client, directly: handshake.early != nil, at: now)
        perform()
        client.tls?.start(early: handshake.early.map { ByteBuffer(bytes: $0) })
    }

    /// Keeps the engine's handshake messages for the log at trace.
    private func observed(_ engine: TLSEngine) -> TLSEngine {
        if options.level >= .trace { engine.keepMessages() }
        return engine
    }

    /// Has a certificate found for the client, like the server's where that has shown one.
    private func findIdentity(for name: String, isNamed: Bool) {
        guard let interception else { return }
        let real = server.tls?.engine.parameters()?.certificate
        interception.certificate(for: name, isNamed: isNamed, like: real, at: now.time, on: loop.eventLoop)
            .assumeIsolated().whenComplete { [weak self] result in
                guard let self, stage == .negotiatingTLS else { return }
                switch result {
                case .success(let shown): found(shown)
                case .failure(let error): negotiate(.notFound(failure(for: error)))
                }
            }
    }

    private func found(_ shown: ShownCertificate) {
        if shown.isAuthorityNew, let name = shown.authority {
            session.remarkTLS(
                .client,
                .info,
                code: "authority-created",
                "created a certificate authority for \(name); clients must trust it: run 'xmpptap ca export --domain "
                    + "\(name)\(interception?.authorities?.flag ?? "")'",
                at: now
            )
        }
        negotiate(.found(shown, plaintextWaits: hasPlaintext))
    }

    /// Whether anything but white space waits that came before TLS.
    private var hasPlaintext: Bool {
        deferred.contains { event in
            guard case .received(_, let buffer) = event else { return false }
            return buffer.readableBytesView.contains { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        }
    }

    /// Has the session go on, which knows what TLS on its legs means for channel binding.
    private func release(_ server: Negotiation.Agreed?, _ client: Negotiation.Agreed?) {
        if let server = server?.version, let client = client?.version, server != client {
            session.remarkTLS(
                .client,
                .warn,
                code: "tls-version-skew",
                "\(ClientHello.name(ofVersion: client)) with the client and \(ClientHello.name(ofVersion: server)) with the "
                    + "server: if the server signs the version (XEP-0515), the client must abort the login",
                at: now
            )
        }
        forecastBinding(server?.version, client?.version)
        if options.authenticator != nil {
            session.secured(
                client: self.client.tls?.engine.securedLeg,
                server: self.server.tls?.engine.securedLeg
            )
        }
        endNegotiation()
        perform()
    }

    /// Has the session tell what channel binding will come to; the client may have no TLS.
    private func forecastBinding(_ server: UInt16?, _ client: UInt16?) {
        guard let server, let interception else { return }
        let strategy: BindingForecast.Strategy
        switch interception.identities {
        case _ where options.stripsBinding: strategy = .strip
        case _ where client == nil: strategy = .clear
        case .minted: strategy = .minted
        case .own: strategy = .serverCertificate
        }
        session.bind(
            BindingForecast.Legs(
                strategy,
                clientTLS: client,
                serverTLS: server,
                hasSameCertificate: strategy == .serverCertificate
            )
        )
    }
}

internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// TLS termination: performs the session's TLS commands, and reports their results to it.
extension SessionDriver {
    private var options: SessionOptions { loop.context.options }

    /// The name to use for the server if the client named no domain: the upstream's host, or the first domain.
    var upstreamName: String {
        switch route {
        case .endpoint(let dialer):
            let host = dialer.endpoint.host
            return host.contains(":") ? "[\(host)]" : host
        case .domains(let dialer): return dialer.domains.first?.name ?? "localhost"
        case .web(let server): return server.name
        case .target(let target):
            let host = target.upstreamName
            return host.contains(":") ? "[\(host)]" : host
        }
    }

    // MARK: Events of TLS

    /// Handles a TLS event of a leg.
    func handleTLS(_ leg: Leg, _ event: TLSHandler.Event) {
        switch event {
        case .opened, .failed, .identityRequested: deliver(.tls(leg, event))
        case .messages(let messages):
            for message in messages {
                let event = TLSEvent.message(message.name, length: message.length, isReceived: message.isReceived)
                session.handle(.tls(leg, event), at: now)
            }
            perform()
        case .truncated:
            handler(leg.other).tls?.sendsCloseNotify = false
            session.handle(.tls(leg, .truncated), at: now)
        }
    }

    /// Converts the end of a leg's handshake, or of its TLS, to an event for the session; nil if there is nothing to
    /// report.
    func tlsEvent(_ leg: Leg, _ event: TLSHandler.Event) -> TLSEvent? {
        switch event {
        case .opened:
            guard let engine = handler(leg).tls?.engine, let parameters = engine.parameters() else { return nil }
            if leg == .server, let certificate = parameters.certificate {
                loop.context.metrics.serverCertificate(
                    of: session.info.domain ?? upstreamName,
                    ends: certificate.notAfter.seconds
                )
            }
            var agreement = TLSAgreement(parameters, leg)
            if options.authenticator != nil { agreement.secured = engine.securedLeg }
            if leg == .client {
                agreement.peer = PeerCertificate(parameters.client)
                agreement.trust = shown?.authority.map { trust($0, isUnconfirmed: true) }
                agreement.isUnverified = shown?.faults.isEmpty == false
                shown = nil
            }
            return .opened(agreement)
        case .identityRequested:
            return handler(leg).tls?.engine.parameters().map { .identityRequested(TLSAgreement($0, leg)) }
        case .failed(let fault):
            // After the handshake, a failure means that TLS ended without close_notify. The other peer does not get one
            // either.
            if session.tls == nil { handler(leg.other).tls?.sendsCloseNotify = false }
            return .failed(failure(leg, fault))
        case .messages, .truncated: return nil
        }
    }

    // MARK: Commands of the session

    func run(_ command: TLSCommand) {
        guard let interception else { return }
        switch command {
        case .startServer(let name, let sendsName, let protocols, let isDirect):
            start(server, .started(directly: isDirect)) {
                var target = ServerLegTarget(
                    reference: try ServerReference(domain: name ?? upstreamName, service: interception.service)
                )
                target.protocols = protocols
                if !sendsName { target.serverName = nil }
                try server.secure(observed(TLSEngine(interception.serverLeg, to: target)))
            }
        case .findIdentity(let name): findIdentity(for: name, interception)
        case .startClient(let maximumVersion, let protocols, let isDirect, let first):
            guard let shown else { return }
            var offer = ClientLegOffer(identity: shown.identity)
            if interception.peers != nil {
                offer.reference = session.info.from.flatMap { try? ServerReference(domain: $0, service: .servers) }
            }
            offer.maximumVersion = maximumVersion.flatMap(TLSVersion.init)
            offer.protocols = protocols.map { .chosen($0) } ?? .ignored
            start(client, .started(directly: isDirect), early: isDirect ? ByteBuffer(bytes: first) : nil) {
                let engine = observed(try TLSEngine(interception.clientLeg, for: offer))
                // The bytes that grant TLS are sent unencrypted; later bytes are sent inside TLS.
                if !isDirect { client.write(first.span) }
                try client.secure(engine)
            }
        case .presentIdentity: presentIdentity(interception)
        }
    }

    /// Continues the handshake with a server that has requested a certificate.
    private func presentIdentity(_ interception: Interception) {
        guard let handler = server.tls else { return }
        let certificate = client.tls?.engine.parameters()?.client ?? .notRequested
        let decision = interception.peers?.decide(for: session.info.from, certificate, at: now.time, on: loop.eventLoop)
        guard case .show(let future)? = decision else {
            if case .none(let reason)? = decision { choose(.withheld(reason)) }
            return handler.present(nil)
        }
        future.assumeIsolated().whenComplete { [weak self] result in
            guard let self, session.tls != nil else { return }
            switch result {
            case .success(let found):
                shownToServer = found
                let remedy = found.authority.map { trustOfServer($0) }
                choose(.shown(summary: found.identity.certificate.summary, trust: remedy))
                handler.present(found.identity)
            case .failure(let error):
                let failure = error as? IdentityFailure
                choose(.withheld(failure?.message ?? "\(error)", failure?.remedy ?? .usual(.endedByTap)))
                handler.present(nil)
            }
            perform()
        }
    }

    private func choose(_ choice: IdentityChoice) {
        session.handle(.tls(.server, .identityChosen(choice)), at: now)
    }

    /// Adds TLS to a leg with `secure`, and starts the handshake.
    private func start(_ handler: LegHandler, _ started: TLSEvent, early: ByteBuffer? = nil, secure: () throws -> Void)
    {
        do {
            try secure()
        } catch let error as JIDError {
            let message = "cannot issue a certificate for the domain: \(error)"
            let failure = TLSFailure(code: "tls-failed", message, alert: .unrecognizedName)
            return session.handle(.tls(handler.leg, .notStarted(failure)), at: now)
        } catch {
            return session.handle(.tls(handler.leg, .notStarted(TLSFailure(code: "tls-failed", "\(error)"))), at: now)
        }
        session.handle(.tls(handler.leg, started), at: now)
        handler.tls?.start(early: early)
    }

    /// Makes the engine keep its handshake messages, if they are logged at level trace.
    private func observed(_ engine: TLSEngine) -> TLSEngine {
        if options.level >= .trace { engine.keepMessages() }
        return engine
    }

    /// Finds the certificate for the client; it mirrors the server's certificate, if there is one.
    private func findIdentity(for name: String?, _ interception: Interception) {
        let real = server.tls?.engine.parameters()
        interception.certificate(
            for: name ?? upstreamName,
            isNamed: name != nil,
            like: real?.certificate,
            faults: real?.overlooked ?? [],
            at: now.time,
            on: loop.eventLoop
        ).assumeIsolated().whenComplete { [weak self] result in
            guard let self, session.tls != nil else { return }
            switch result {
            case .success(let found):
                shown = found
                if found.isAuthorityNew, let name = found.authority {
                    remark(
                        .info,
                        code: "authority-created",
                        "created a certificate authority for \(name)",
                        remedy: trust(name)
                    )
                }
                handle(.identityFound(isServersOwn: found.authority == nil && found.faults.isEmpty))
            case .failure(let error): handle(.identityNotFound(failure(for: error)))
            }
        }
    }

    /// Passes a remark about the client's TLS to the session.
    func remark(_ level: Level, code: String, _ message: String, remedy: Remedy? = nil) {
        let advice = remedy.flatMap { options.advice?($0) }.map { "; \($0)" } ?? ""
        session.handle(.tls(.client, .remark(level, code: code, message + advice)), at: now)
    }
}

extension PeerCertificate {
    /// Creates the report of a certificate that was requested from a client; nil if none was.
    init?(_ certificate: ClientCertificate) {
        switch certificate {
        case .notRequested: return nil
        case .none: self = .missing
        case .shown(let info, let uses, let faults):
            guard let fault = faults.first else {
                self = .verified(info.summary, info.details, isForClients: uses.contains(.client))
                return
            }
            let explanation = faults.map(\.explanation).joined(separator: "; ")
            self = .refused(
                code: fault.name,
                explanation,
                summary: info.summary,
                info.details,
                dependsOnTrust: fault.dependsOnTrust
            )
        }
    }
}

extension TLSAgreement {
    /// Creates the result of a handshake with the peer of a leg.
    init(_ parameters: TLSParameters, _ leg: Leg) {
        self.init(
            version: parameters.versionNumber?.rawValue,
            details: parameters.details,
            summary: parameters.summary(peer: "the \(leg.name)")
        )
        applicationProtocol = parameters.applicationProtocol
        overlookedCode = parameters.overlooked.first?.name
        dependsOnTrust = parameters.overlooked.first?.dependsOnTrust == true
        overlooked = parameters.overlookedSummary
    }
}

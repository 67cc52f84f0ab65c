internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity

// TLS that cannot begin.
extension SessionDriver {
    /// A connection is over while TLS begins.
    func endedInHandshake(_ leg: Leg, _ end: LegEnd) {
        guard let negotiation else { return }
        // The one whose turn it is not can end the session in its own way.
        guard negotiation.leg == leg, negotiation.step != .identity else {
            self.negotiation = nil
            stage = .relaying
            session.ended(leg, end, at: now)
            return perform()
        }
        fail(negotiation, leg, by: TLSFault(.endedInHandshake))
    }

    /// Ends a session whose handshake has failed on a leg, and says why.
    func fail(_ negotiation: TLSNegotiation, _ leg: Leg, by fault: TLSFault) {
        let reason = reason(negotiation, leg, fault)
        if let diagnosis = reason.diagnosis {
            session.blame(
                diagnosis.cause,
                at: .tls,
                reason.words,
                side: diagnosis.side,
                condition: fault.name,
                advice: reason.advice
            )
        }
        failNegotiation(
            code: fault.name,
            reason.words,
            advice: reason.advice,
            leg: leg,
            alert: fault.alertForClient,
            certificate: leg == .client ? negotiation.shown?.identity.certificate : nil
        )
    }

    /// Why a handshake failed.
    private struct Reason {
        /// What happened, as a clause.
        var words: String
        /// What can be done about it.
        var advice: String?
        /// The cause, where the streams do not show it, and where it lies; nil is where it usually does.
        var diagnosis: (cause: LoginCause, side: LoginCause.Side?)?
    }

    private func reason(_ negotiation: TLSNegotiation, _ leg: Leg, _ fault: TLSFault) -> Reason {
        let words = fault.words(peer: "the \(leg.name)")
        switch leg {
        case .client:
            guard fault.isRefusedCertificate || fault.code == .endedInHandshake,
                client.tls?.engine.hasShownIdentity == true, let shown = negotiation.shown
            else { return Reason(words: words, advice: fault.adviceForClient) }
            return reason(negotiation, fault, shown)
        case .server:
            var reason = Reason(words: words, advice: fault.adviceForServer)
            guard case .untrusted(let faults) = fault.code, wantedName(negotiation) == nil else { return reason }
            let verified = name(for: negotiation)
            reason.words +=
                "; the client sent \(Self.missingName(negotiation)), so the upstream's own name, \(verified), was verified"
            guard case .wrongName(_, let names) = faults.first?.code else { return reason }
            // Without a proxy the client would have verified the name that it wants.
            reason.diagnosis = (.certificateWrongName, .tap)
            reason.advice = "let the client \(Self.naming(negotiation))" + upstreamAdvice(names)
            return reason
        }
    }

    /// How the upstream is named so that its certificate fits, as a further clause.
    private func upstreamAdvice(_ names: CertificateNames) -> String {
        guard case .endpoint(let dialer) = route else { return "" }
        guard let host = names.hosts.lazy.filter({ !$0.hasPrefix("*") }).compactMap({ try? CertificateName($0) }).first
        else { return ", or use --upstream-domain DOMAIN instead of --upstream" }
        return ", or name the upstream as its certificate does: --upstream \(host):\(dialer.endpoint.port)"
    }

    /// A client has refused what it was shown, or left when it saw that.
    private func reason(_ negotiation: TLSNegotiation, _ fault: TLSFault, _ shown: ShownCertificate) -> Reason {
        var words = fault.words(peer: "the client") + "; xmpptap presented the \(shown.identity.certificate.words)"
        let isNamed = wantedName(negotiation) != nil
        if (negotiation.hello?.serverName ?? client.tls?.engine.serverName) == nil {
            words +=
                isNamed
                ? "; it sent no server name (SNI)"
                : "; it sent \(Self.missingName(negotiation)), so the names were chosen from the server's certificate"
        }
        guard let authority = shown.authority else {
            return Reason(
                words: words,
                advice: "that is the server's own certificate (--certificate): check the client's log for the reason",
                diagnosis: (fault.alertReceived == nil ? .clientGaveUp : .tlsAlertByClient, .client)
            )
        }
        let flag = interception?.authorities?.flag ?? ""
        var advice =
            "let the client trust the certificate authority for \(authority): 'xmpptap ca export --domain "
            + "\(authority)\(flag)' prints it and says how for each client"
        if !isNamed {
            advice +=
                "; if it expects a name that the certificate lacks, let it \(Self.naming(negotiation)), or use a --ca-dir with an "
                + "authority for that name alone"
        }
        switch fault.alertReceived {
        case .unknownCA?: return Reason(words: words, advice: advice, diagnosis: (.authorityNotTrusted, nil))
        // What the client is shown was made today: if it is not valid, its clock differs from this machine's.
        case .certificateExpired?: return Reason(words: words)
        case let alert:
            advice +=
                "; Android apps accept a user-installed authority only if they opt in; on iOS, enable full trust for it; a "
                + "client that pins certificates, or asks DANE or POSH, needs the server's own by --certificate and --key, or "
                + "--tls passthrough"
            let isTold = alert != nil && isNamed
            return Reason(
                words: words,
                advice: advice,
                diagnosis: (isTold ? .authorityNotTrusted : .certificateNotAccepted, nil)
            )
        }
    }

    /// How a client names the server that it wants.
    private static func naming(_ negotiation: TLSNegotiation) -> String {
        negotiation.isDirect ? "send SNI" : "name the domain in its stream header (to)"
    }

    private static func missingName(_ negotiation: TLSNegotiation) -> String {
        negotiation.isDirect ? "no server name (SNI)" : "no domain in its stream"
    }

    /// Ends a session whose TLS cannot begin; on the leg whose turn it is, if none is named.
    ///
    /// - Parameters:
    ///   - alert: The alert for a client that began with TLS and has no answer yet.
    ///   - certificate: What the client was shown.
    func failNegotiation(
        code: String,
        _ words: String,
        advice: String? = nil,
        leg: Leg? = nil,
        alert: Session.Alert = .internalError,
        certificate: CertificateInfo? = nil
    ) {
        guard let negotiation else { return }
        self.negotiation = nil
        stage = .relaying
        deferred.removeAll()
        session.tlsFailed(
            leg ?? negotiation.leg,
            directly: negotiation.isDirect && negotiation.step != .client,
            alert: alert,
            code: code,
            words,
            advice: advice,
            certificate: certificate?.details,
            at: now
        )
        perform()
    }
}

extension TLSFault {
    /// The alert that tells a client what the server, or its TLS, has said.
    var alertForClient: Session.Alert {
        switch code {
        case .alertReceived(.unrecognizedName): .unrecognizedName
        case .alertReceived(.protocolVersion), .version: .protocolVersion
        case .alertReceived(.noApplicationProtocol), .noSharedProtocol: .noApplicationProtocol
        default: .internalError
        }
    }
}

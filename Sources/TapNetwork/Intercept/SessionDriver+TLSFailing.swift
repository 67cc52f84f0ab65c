internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity

// Why TLS failed, and what can be done about it.
extension SessionDriver {
    /// Why there is no certificate for the client.
    func failure(for error: any Error) -> TLSFailure {
        guard let failure = error as? IdentityFailure else {
            return TLSFailure(code: "no-certificate", "no certificate for the client: \(error)")
        }
        if failure.isLimit, interception?.limitWarning.isFirst() == true {
            session.remarkTLS(
                .client,
                .warn,
                code: "authority-limit",
                "authority limit reached: TLS fails for sessions that need a new certificate authority: "
                    + failure.words,
                at: now
            )
        }
        return TLSFailure(
            code: failure.code,
            "no certificate for the client: \(failure.words)",
            alert: failure.isForName ? .unrecognizedName : .internalError
        )
    }

    /// Why a handshake failed on a leg.
    func failure(_ leg: Leg, _ fault: TLSFault) -> TLSFailure {
        var failure = TLSFailure(
            code: fault.name,
            fault.words(peer: "the \(leg.name)"),
            alert: fault.alertForClient
        )
        failure.peerAlert = fault.alertReceived?.name
        guard let negotiation else { return failure }
        switch leg {
        case .client:
            failure.advice = fault.adviceForClient
            guard let shown = negotiation.identity else { break }
            failure.certificate = shown.identity.certificate.details
            if fault.isRefusedCertificate || fault.code == .endedInHandshake,
                client.tls?.engine.hasShownIdentity == true
            {
                explain(&failure, negotiation, fault, shown)
            }
        case .server:
            failure.advice = fault.adviceForServer
            guard case .untrusted(let faults) = fault.code, negotiation.clientName == nil else { break }
            failure.words += "; the client sent \(negotiation.missingName), so the upstream's own name, "
            failure.words += "\(negotiation.name), was verified"
            guard case .wrongName(_, let names) = faults.first?.code else { break }
            // Without a proxy the client would have verified the name that it wants.
            failure.cause = .certificateWrongName
            failure.side = .tap
            failure.advice = "let the client \(negotiation.naming)" + upstreamAdvice(names)
        }
        return failure
    }

    /// How to name the upstream so that its certificate matches, as a further clause.
    private func upstreamAdvice(_ names: CertificateNames) -> String {
        guard case .endpoint(let dialer) = route else { return "" }
        guard let host = names.hosts.lazy.filter({ !$0.hasPrefix("*") }).compactMap({ try? CertificateName($0) }).first
        else { return ", or use --upstream-domain DOMAIN instead of --upstream" }
        return ", or use the name in the upstream's certificate: --upstream \(host):\(dialer.endpoint.port)"
    }

    /// A client has refused what it was shown, or left when it saw that.
    private func explain(
        _ failure: inout TLSFailure,
        _ negotiation: Negotiation,
        _ fault: TLSFault,
        _ shown: ShownCertificate
    ) {
        let isNamed = negotiation.clientName != nil
        failure.words += "; xmpptap presented the \(shown.identity.certificate.words)"
        if (negotiation.isDirect ? negotiation.clientName : client.tls?.engine.serverName) == nil {
            failure.words +=
                isNamed
                ? "; it sent no server name (SNI)"
                : "; it sent \(negotiation.missingName), so the names were chosen from the server's certificate"
        }
        guard let authority = shown.authority else {
            failure.advice =
                "this is the server's own certificate (--certificate); check the client's log for the reason"
            failure.cause = fault.alertReceived == nil ? .clientGaveUp : .tlsAlertByClient
            failure.side = .client
            return
        }
        let flag = interception?.authorities?.flag ?? ""
        var advice =
            "let the client trust the certificate authority for \(authority): 'xmpptap ca export --domain "
            + "\(authority)\(flag)' prints it with instructions for each client"
        if !isNamed {
            advice +=
                "; if it expects a name that the certificate lacks, let it \(negotiation.naming), or use a --ca-dir with an "
                + "authority for that name alone"
        }
        switch fault.alertReceived {
        case .unknownCA?:
            failure.cause = .authorityNotTrusted
            failure.advice = advice
        // What the client is shown was made today: if it is not valid, its clock differs from this machine's.
        case .certificateExpired?: failure.advice = nil
        case let alert:
            failure.cause = alert != nil && isNamed ? .authorityNotTrusted : .certificateNotAccepted
            failure.advice =
                advice
                + "; Android apps accept a user-installed authority only if they opt in; on iOS, enable full trust for it; a "
                + "client with certificate pinning, DANE or POSH needs the server's own certificate (--certificate, --key) "
                + "or --tls passthrough"
        }
    }
}

extension TLSNegotiation {
    /// How a client names the server that it wants.
    fileprivate var naming: String { isDirect ? "send SNI" : "name the domain in its stream header (to)" }

    fileprivate var missingName: String { isDirect ? "no server name (SNI)" : "no domain in its stream" }
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

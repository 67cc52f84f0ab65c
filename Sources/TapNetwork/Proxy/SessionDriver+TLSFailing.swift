internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity

// The causes of TLS failures, and their remedies.
extension SessionDriver {
    /// Returns the failure if no certificate can be provided for the client.
    func failure(for error: any Error) -> TLSFailure {
        guard let failure = error as? IdentityFailure else {
            return TLSFailure(code: "no-certificate", "no certificate for the client: \(error)")
        }
        if failure.isLimit { loop.context.metrics.reached(.authorities) }
        if failure.isLimit, interception?.limitWarning.isFirst() == true {
            remark(
                .warn,
                code: "authority-limit",
                "authority limit reached: TLS fails for sessions that need a new certificate authority: "
                    + failure.message,
                remedy: failure.remedy
            )
        }
        var found = TLSFailure(
            code: failure.code,
            "no certificate for the client: \(failure.message)",
            alert: failure.isForName ? .unrecognizedName : .internalError
        )
        found.remedy = failure.remedy
        // With this cause, the diagnosis contains the remedy.
        found.cause = .endedByTap
        return found
    }

    /// Returns the failure of a handshake on a leg.
    func failure(_ leg: Leg, _ fault: TLSFault) -> TLSFailure {
        var failure = TLSFailure(
            code: fault.name,
            fault.explanation(peer: "the \(leg.name)"),
            alert: fault.alertForClient
        )
        failure.peerAlert = fault.alertReceived?.name
        if leg == .server { blameIdentity(for: &failure, fault) }
        guard let negotiation = session.tls else { return failure }
        switch leg {
        case .client:
            failure.remedy = fault.remedyForClient
            guard client.tls != nil, let shown else { break }
            failure.certificate = shown.identity.certificate.details
            if fault.isRefusedCertificate || fault.code == .endedInHandshake,
                client.tls?.engine.hasShownIdentity == true
            {
                blameCertificate(for: &failure, negotiation, fault, shown)
            }
        case .server:
            if failure.remedy == nil { failure.remedy = fault.remedyForServer }
            if failure.remedy == .comparePin {
                // The usual advice for an untrusted certificate does not apply to pinning.
                failure.cause = .certificateRefused
                return failure
            }
            guard case .untrusted(let faults) = fault.code, negotiation.clientName == nil else { break }
            failure.explanation += "; the client sent \(negotiation.missingName), so the upstream's own name, "
            failure.explanation += "\(upstreamName), was verified"
            guard case .wrongName(_, let names) = faults.first?.code else { break }
            // Without xmpptap, the client would have verified the certificate for its own domain.
            failure.cause = .certificateWrongName
            failure.side = .tap
            failure.remedy = .nameServer(negotiation.naming, upstreamNaming(names))
        }
        return failure
    }

    /// Describes the failure if a server refused the certificate that xmpptap showed on behalf of another server, or left
    /// while it waited for one.
    private func blameIdentity(for failure: inout TLSFailure, _ fault: TLSFault) {
        if fault.code == .endedInHandshake, server.tls?.engine.awaitsIdentity == true {
            failure.explanation += ", while it waited for the certificate of the initiating server"
            failure.cause = .serverGone
            failure.side = .unknown
            return
        }
        guard fault.isRefusedCertificate, let shownToServer else { return }
        failure.explanation += "; xmpptap presented the \(shownToServer.identity.certificate.summary)"
        failure.certificate = shownToServer.identity.certificate.details
        guard let authority = shownToServer.authority else {
            failure.cause = .tlsAlertByServer
            return
        }
        failure.cause = fault.alertReceived == .unknownCA ? .authorityNotTrusted : .certificateNotAccepted
        failure.remedy = trustOfServer(authority)
    }

    /// Returns the remedy that the receiving server should trust one of xmpptap's authorities.
    func trustOfServer(_ authority: CertificateName) -> Remedy {
        var trust = interception?.trust(authority) ?? Remedy.AuthorityTrust(domain: "\(authority)")
        trust.server = session.info.domain ?? upstreamName
        return .trustAuthority(trust)
    }

    /// Returns the reason why a WebSocket was not opened, if TLS with its server failed.
    func upgradeFailure(_ fault: TLSFault) -> UpgradeFailure {
        var failure = UpgradeFailure(fault.explanation(peer: "the server"))
        failure.code = fault.name
        failure.remedy = fault.remedyForServer
        failure.cause =
            switch fault.code {
            case .untrusted: LoginCause(certificateFault: fault.name)
            case .alertReceived: .tlsAlertByServer
            case .notTLS: .tlsUnexpected
            case .version, .noSharedCipher: .tlsIncompatible
            case .endedInHandshake: .serverGone
            default: .tlsFailed
            }
        if fault.code == .notTLS {
            failure.side = .tap
            failure.remedy = .checkServerPort
        }
        return failure
    }

    /// Returns the upstream name that would match the certificate; nil if no option sets the name.
    private func upstreamNaming(_ names: CertificateNames) -> Remedy.UpstreamNaming? {
        guard case .endpoint(let dialer) = route else { return nil }
        guard let host = names.hosts.lazy.filter({ !$0.hasPrefix("*") }).compactMap({ try? CertificateName($0) }).first
        else { return .domain }
        return .host("\(host)", port: dialer.endpoint.port)
    }

    /// Describes the failure if the client refused xmpptap's certificate, or disconnected after receiving it.
    private func blameCertificate(
        for failure: inout TLSFailure,
        _ negotiation: TLSNegotiation,
        _ fault: TLSFault,
        _ shown: ShownCertificate
    ) {
        let isNamed = negotiation.clientName != nil
        failure.explanation += "; xmpptap presented the \(shown.identity.certificate.summary)"
        if (negotiation.isDirect ? negotiation.clientName : client.tls?.engine.serverName) == nil {
            failure.explanation +=
                isNamed
                ? "; it sent no server name (SNI)"
                : "; it sent \(negotiation.missingName), so the names were chosen from the server's certificate"
        }
        if let original = shown.faults.first {
            failure.explanation += "; the receiving server's certificate could not be verified: "
            failure.explanation += shown.faults.map(\.explanation).joined(separator: "; ")
            failure.cause = LoginCause(certificateFault: original.name)
            failure.side = original.dependsOnTrust ? .unknown : .server
            failure.remedy = original.dependsOnTrust ? .trustIssuer : .renewCertificate
            return
        }
        guard let authority = shown.authority else {
            failure.remedy = .checkClientLog
            failure.cause = fault.alertReceived == nil ? .clientGaveUp : .tlsAlertByClient
            failure.side = .client
            return
        }
        let missing = isNamed ? nil : negotiation.naming
        switch fault.alertReceived {
        case .unknownCA?:
            failure.cause = .authorityNotTrusted
            failure.remedy = trust(authority, missing: missing)
        // The certificate was issued today: a client that considers it expired has a different time.
        case .certificateExpired?: failure.remedy = nil
        case let alert:
            failure.cause = alert != nil && isNamed ? .authorityNotTrusted : .certificateNotAccepted
            failure.remedy = trust(authority, missing: missing, isUnconfirmed: true)
        }
    }

    /// Returns the remedy that the client should trust one of xmpptap's authorities.
    func trust(_ authority: CertificateName, missing: Remedy.ClientNaming? = nil, isUnconfirmed: Bool = false) -> Remedy
    {
        var trust = interception?.trust(authority) ?? Remedy.AuthorityTrust(domain: "\(authority)")
        trust.missing = missing
        trust.isUnconfirmed = isUnconfirmed
        if interception?.peers != nil { trust.server = session.info.from ?? "the initiating server" }
        trust.client = loop.context.run.clientSoftware(of: session, client.tls?.engine.clientLibrary)
        return .trustAuthority(trust)
    }
}

extension TLSNegotiation {
    fileprivate var naming: Remedy.ClientNaming { isDirect ? .serverName : .header }

    fileprivate var missingName: String { isDirect ? "no server name (SNI)" : "no domain in its stream" }
}

extension TLSFault {
    /// The TLS alert to send to the client if TLS with the server failed for this reason.
    var alertForClient: HandshakeAlert {
        switch code {
        case .alertReceived(.unrecognizedName): .unrecognizedName
        case .alertReceived(.protocolVersion), .version: .protocolVersion
        case .alertReceived(.noApplicationProtocol), .noSharedProtocol: .noApplicationProtocol
        default: .internalError
        }
    }

    /// The remedy for a TLS failure with the client, unless the certificate is the cause.
    fileprivate var remedyForClient: Remedy? {
        switch code {
        case .notTLS: .checkClientPort
        case .version: .lowerVersionForClient
        default: nil
        }
    }

    /// The remedy for a TLS failure with the server.
    fileprivate var remedyForServer: Remedy? {
        switch code {
        case .untrusted(let faults):
            switch faults.first?.code {
            case .selfSigned, .unknownIssuer: .trustIssuer
            case .expired, .notYetValid: .renewCertificate
            case .wrongName: .nameDomain
            case .notPinned: .comparePin
            default: .overlookFaults
            }
        case .version, .alertReceived(.protocolVersion), .noSharedCipher: .lowerVersionForServer
        case .notTLS: .checkServerPort
        default: nil
        }
    }
}

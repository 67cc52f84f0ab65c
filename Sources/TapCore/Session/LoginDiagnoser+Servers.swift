internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Diagnoses failed streams between servers: SASL EXTERNAL (XEP-0178), dialback (XEP-0220), and their certificates.
extension LoginDiagnoser {
    /// Returns the diagnosis of a server that could not authenticate to another; nil for other failures.
    func diagnoseFederation() -> LoginDiagnosis? {
        guard info.kind == .server, info.authentication != .succeeded, var found = diagnoseServers() else { return nil }
        found.party =
            switch found.side {
            case .client: initiatingServer
            case .server: receivingServer
            case .network, .tap, .unknown: nil
            }
        found.certificates = [
            notes.peer.map { "\(initiatingServer): \(Self.line($0.details))" },
            notes.serverTLS.map { "\(receivingServer): \(Self.line($0.details))" },
        ].compactMap { $0 }
        return found
    }

    private var initiatingServer: String { initiator ?? "the initiating server" }
    private var receivingServer: String { domain ?? "the receiving server" }

    private func diagnoseServers() -> LoginDiagnosis? {
        let dialbacks = steps.filter { [.dialback, .dialbackVerification].contains($0.name) }
        // After a refused certificate, servers use dialback: its outcome decides.
        if let pending = dialbacks.last(where: { $0.awaited != nil }) {
            var found = diagnoseTimeout(pending)
            found.finding = "\(found.finding)\(earlierRefusal)"
            return found
        }
        // A stream error of the initiating server after a failed dialback is a consequence of the failure.
        if let failed = dialbacks.last(where: { $0.outcome.result == .failed }) { return diagnoseDialback(failed) }
        if let attempt, let condition = attempt.condition, attempt.mechanism == "EXTERNAL" {
            let said = attempt.text.map { ": \($0.clause)" } ?? ""
            let finding: Prose = "\(receivingServer) refused SASL EXTERNAL of \(initiatingServer) (\(condition))\(said)"
            return diagnoseCertificate(at: .sasl, finding, condition, quoting: attempt.text)
        }
        guard notes.peer != nil, attempt == nil else { return nil }
        let said = info.reason.map { ": \($0.clause)" } ?? ""
        switch info.ending {
        case .error(let condition, .recv):
            let finding: Prose = "\(receivingServer) refused \(initiatingServer) (\(condition))\(said)"
            return diagnoseCertificate(at: reached, finding, condition, quoting: info.reason)
        case .error(let condition, .send) where StreamErrorCondition(rawValue: condition) == .notAuthorized:
            return diagnoseRefusedServer(
                "\(initiatingServer) refused \(receivingServer) (\(condition))\(said)",
                condition
            )
        // A server should close the stream if it does not trust the other's certificate (XEP-0178 §3).
        case .clean(.send), .unclean(.client, _):
            return diagnoseRefusedServer("\(initiatingServer) closed the stream before it authenticated", nil)
        default: return nil
        }
    }

    /// Explains why the initiating server refuses the receiving server.
    private func diagnoseRefusedServer(_ finding: Prose, _ condition: String?) -> LoginDiagnosis {
        if notes.sawUnverified, let faults = notes.serverTLS?.overlooked, let code = notes.serverTLS?.overlookedCode {
            let found = LoginDiagnosis(
                LoginCause(certificateFault: code),
                at: reached,
                "\(finding); the certificate of \(receivingServer) is not valid: \(faults)",
                condition: condition
            )
            return found.forServers(dependsOnTrust: notes.serverTLS?.dependsOnTrust == true)
        }
        return possibly(
            .certificateNotAccepted,
            at: reached,
            "\(finding); it may not trust the authority of the certificate that xmpptap shows for \(receivingServer)",
            condition,
            notes.trust
        )
    }

    /// Explains the refusal of the initiating server by its certificate, as far as that is evidence; nil for other
    /// refusals.
    ///
    /// - Parameter text: The receiving server's text.
    private func diagnoseCertificate(
        at step: LoginStep.Name,
        _ finding: Prose,
        _ condition: String,
        quoting text: Prose?
    ) -> LoginDiagnosis? {
        guard condition == StreamErrorCondition.notAuthorized.rawValue, let peer = notes.peer else { return nil }
        func diagnosis(_ cause: LoginCause, _ reason: Prose, side: LoginCause.Side = .client) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: step, "\(finding); \(reason)", condition: condition, side: side)
        }
        switch (peer, notes.identity) {
        case (.missing, .withheld?), (.missing, nil):
            return diagnosis(.certificateMissing, "\(initiatingServer) shows no certificate")
        case (.refused(let code, let explanation, _, _, let dependsOnTrust), .withheld?):
            return diagnosis(
                LoginCause(certificateFault: code),
                "the certificate of \(initiatingServer) is not trusted, so xmpptap showed none: \(explanation)"
            )
            .forServers(dependsOnTrust: dependsOnTrust)
        case (.verified, .withheld(let reason, let remedy)?):
            var found = diagnosis(
                .certificateMissing,
                "xmpptap showed \(receivingServer) no certificate of \(initiatingServer): \(reason)",
                side: .tap
            )
            found.rule = nil
            if let remedy { found.remedy = remedy }
            return found
        case (.verified(_, _, isForClients: false), .shown?) where text.map { "\($0)".contains("purpose") } == true:
            var found = diagnosis(
                .certificateRefused,
                "the certificate of \(initiatingServer) is valid, but only for TLS servers (no clientAuth)"
            )
            found.rule = "XEP-0178 §2, RFC 5280 §4.2.1.12"
            found.remedy = .allowClientUse
            return found
        case (_, .shown(_, let trust?)?):
            let limit: Prose =
                if case .verified(_, _, isForClients: false) = peer {
                    ", or accept it only from TLS clients (the certificate of \(initiatingServer) has no clientAuth)"
                } else {
                    ""
                }
            return possibly(
                .certificateNotAccepted,
                at: step,
                "\(finding); it may not trust the authority of the certificate that xmpptap shows for "
                    + "\(initiatingServer)\(limit)",
                condition,
                trust
            )
        case (_, .shown(_, nil)?), (.refused, nil), (.verified, nil): return nil
        }
    }

    /// Returns a diagnosis that the session does not prove.
    private func possibly(
        _ cause: LoginCause,
        at step: LoginStep.Name,
        _ finding: Prose,
        _ condition: String?,
        _ remedy: Remedy?
    ) -> LoginDiagnosis {
        var found = LoginDiagnosis(cause, at: step, finding, condition: condition, side: .unknown)
        found.isProxyTheCause = nil
        if let remedy { found.remedy = remedy }
        return found
    }

    // MARK: Dialback

    /// The conditions of errors if a server cannot be asked about a key (XEP-0220 §2.4).
    private static let unreachable: Set = [
        "remote-server-not-found", "remote-server-timeout", "remote-connection-failed",
    ]

    private func diagnoseDialback(_ failed: LoginStep) -> LoginDiagnosis? {
        guard case .failed(let condition, _) = failed.outcome else { return nil }
        // A stream can be for further pairs of domains.
        let from = failed.details["from"]?.text ?? initiatingServer
        let to = failed.details["to"]?.text ?? receivingServer
        func diagnosis(_ finding: Prose, _ side: LoginCause.Side) -> LoginDiagnosis {
            LoginDiagnosis(
                .dialbackFailed,
                at: failed.name,
                "\(finding)\(earlierRefusal)",
                condition: condition,
                side: side
            )
        }
        switch condition {
        case "item-not-found": return diagnosis("\(receivingServer) does not serve \(to) (item-not-found)", .unknown)
        case let condition? where Self.unreachable.contains(condition):
            return diagnosis("\(to) could not reach the server of \(from) to verify its key (\(condition))", .unknown)
        case let condition?:
            let finding: Prose = "\(to) did not verify \(from) by dialback (\(condition))"
            return diagnoseCertificate(at: failed.name, "\(finding)\(earlierRefusal)", condition, quoting: nil)
                ?? diagnosis(finding, .unknown)
        // A verification asks the receiving server about a key that the initiating server got on another stream.
        case nil where failed.name == .dialbackVerification:
            return diagnosis("\(to) did not confirm the dialback key that \(from) got", .unknown)
        case nil: return diagnosis("\(to) found the dialback key of \(from) invalid", .client)
        }
    }

    /// The refusal of SASL EXTERNAL before a dialback, as a suffix of a finding.
    private var earlierRefusal: Prose {
        guard let attempt, let condition = attempt.condition, attempt.mechanism == "EXTERNAL" else { return "" }
        let said = attempt.text.map { ": \($0.clause)" } ?? ""
        return "; before, SASL EXTERNAL was refused (\(condition))\(said)"
    }

    /// Returns the names, the issuer and the dates of a certificate.
    private static func line(_ details: Attributes?) -> String {
        guard let details else { return "no certificate" }
        let names = details["names"]?.text ?? "no name"
        let dates = [details["not_before"], details["not_after"]].map { $0?.text ?? "?" }
        return "for \(names), issued by \(details["issuer"]?.text ?? "?"), valid from \(dates[0]) to \(dates[1])"
    }
}

extension LoginDiagnosis {
    /// Returns the diagnosis of a server's certificate with advice for servers.
    ///
    /// - Parameter dependsOnTrust: Whether the servers may find no fault, because they trust other issuers or have
    ///   another clock.
    fileprivate func forServers(dependsOnTrust: Bool) -> LoginDiagnosis {
        var found = self
        switch cause {
        case .certificateUnknownIssuer: found.remedy = .trustIssuer
        case .certificateExpired, .clockSkew: found.remedy = .renewCertificate
        case .certificateWrongName: found.remedy = .nameDomain
        default: found.remedy = .compareLogs
        }
        if dependsOnTrust {
            found.side = .unknown
            found.isProxyTheCause = nil
        }
        return found
    }
}

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
        // What follows a failed dialback, often a stream error of the initiating server, is its consequence.
        let dialback = steps.last {
            [.dialback, .dialbackVerification].contains($0.name) && $0.outcome.result == .failed && $0.awaited == nil
        }
        if let dialback { return diagnoseDialback(dialback) }
        if let attempt, let condition = attempt.condition, attempt.mechanism == "EXTERNAL" {
            let said = attempt.text.map { ": \($0.clause)" } ?? ""
            let finding: Prose = "\(receivingServer) refused SASL EXTERNAL of \(initiatingServer) (\(condition))\(said)"
            return diagnoseCertificate(at: .sasl, finding, condition)
        }
        guard case .error(let condition, let direction) = info.ending, notes.peer != nil,
            StreamErrorCondition(rawValue: condition) == .notAuthorized
        else { return nil }
        let said = info.reason.map { ": \($0.clause)" } ?? ""
        if direction == .send {
            guard let faults = notes.serverTLS?.overlooked, let code = notes.serverTLS?.overlookedCode else {
                return nil
            }
            return LoginDiagnosis(
                LoginCause(certificateFault: code),
                at: reached,
                "\(initiatingServer) refused \(receivingServer) (\(condition))\(said); the certificate of "
                    + "\(receivingServer) is not valid: \(faults)",
                condition: condition
            )
            .withRemedyForServers
        }
        return diagnoseCertificate(
            at: reached,
            "\(receivingServer) refused \(initiatingServer) (\(condition))\(said)",
            condition
        )
    }

    /// Explains the refusal of a server by the certificate that it showed to xmpptap.
    private func diagnoseCertificate(at step: LoginStep.Name, _ finding: Prose, _ condition: String) -> LoginDiagnosis?
    {
        func diagnosis(_ cause: LoginCause, _ reason: Prose, side: LoginCause.Side = .client) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: step, "\(finding); \(reason)", condition: condition, side: side)
        }
        switch notes.peer {
        case nil: return nil
        case .missing?:
            return diagnosis(.certificateMissing, "\(initiatingServer) shows no certificate")
        case .refused(let code, let explanation, _, _)?:
            return diagnosis(
                LoginCause(certificateFault: code),
                "the certificate of \(initiatingServer) is not trusted, so xmpptap showed none: \(explanation)"
            )
            .withRemedyForServers
        case .verified(_, _, isForClients: false)?:
            var found = diagnosis(
                .certificateRefused,
                "the certificate of \(initiatingServer) is valid, but only for TLS servers (no clientAuth)"
            )
            found.rule = "XEP-0178 §2, RFC 5280 §4.2.1.12"
            found.remedy = .allowClientUse
            return found
        case .verified?:
            return diagnosis(
                .authorityNotTrusted,
                "the certificate of \(initiatingServer) is valid, but \(receivingServer) sees the one that xmpptap shows",
                side: .tap
            )
        }
    }

    /// The conditions of dialback errors if a server cannot be asked about a key (XEP-0220 §2.4).
    private static let unreachable: Set = [
        "remote-server-not-found", "remote-server-timeout", "item-not-found", "remote-connection-failed",
    ]

    private func diagnoseDialback(_ failed: LoginStep) -> LoginDiagnosis? {
        guard case .failed(let condition, let words) = failed.outcome else { return nil }
        // A verification asks the receiving server about a key that the initiating server got on another stream.
        if failed.name == .dialbackVerification {
            return LoginDiagnosis(
                .dialbackFailed,
                at: failed.name,
                "\(receivingServer) did not confirm a key for \(initiatingServer)\(condition.map { " (\($0))" } ?? "")",
                condition: condition,
                side: .server
            )
        }
        var finding: Prose
        var side = LoginCause.Side.client
        let isUnreachable = condition.map(Self.unreachable.contains) ?? false
        switch condition {
        case _ where isUnreachable:
            finding =
                "\(receivingServer) could not reach the server of \(initiatingServer) to verify its key (\(condition ?? ""))"
        case let condition?:
            finding = "\(receivingServer) did not verify \(initiatingServer) by dialback (\(condition))"
        case nil:
            finding =
                "\(receivingServer) found the dialback key of \(initiatingServer) invalid\(words == nil ? "" : ", after asking its server")"
            side = .unknown
        }
        if let attempt, let failure = attempt.condition, attempt.mechanism == "EXTERNAL" {
            finding = "\(finding); before, it refused SASL EXTERNAL (\(failure))"
            if let said = attempt.text { finding = "\(finding): \(said.clause)" }
            if let condition, !isUnreachable,
                let found = diagnoseCertificate(at: .dialback, finding, condition), found.side == .client
            {
                return found
            }
        }
        return LoginDiagnosis(.dialbackFailed, at: .dialback, finding, condition: condition, side: side)
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
    /// The diagnosis with advice for the certificate of a server, instead of advice for its clients.
    fileprivate var withRemedyForServers: LoginDiagnosis {
        var found = self
        switch cause {
        case .certificateExpired, .clockSkew: found.remedy = .renewCertificate
        case .certificateWrongName: found.remedy = .nameDomain
        default: break
        }
        return found
    }
}

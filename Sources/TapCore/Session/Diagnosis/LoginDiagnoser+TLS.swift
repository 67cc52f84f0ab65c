public import TapDiagnosis
internal import TapRecord

// Failed TLS of a leg, by the code of its record.
extension LoginDiagnoser {
    /// The diagnosis of a failed step `tls`; its detail `leg` names the leg.
    func ofTLS(_ loginStep: LoginStep, _ code: String?, _ words: String?) -> LoginDiagnosis {
        let isClient = loginStep.details["leg"] == "client"
        let side: LoginCause.Side = isClient ? .client : .server
        func diagnosis(_ cause: LoginCause, side: LoginCause.Side? = nil) -> LoginDiagnosis {
            let leg = loginStep.details["leg"].map { " with the \($0.text)" } ?? ""
            return LoginDiagnosis(cause, at: .tls, words ?? "TLS\(leg) failed", condition: code, side: side)
        }
        switch code {
        // The certificate given to xmpptap is not the server's, or xmpptap could issue none.
        case "certificate-differs", "no-certificate": return diagnosis(.endedByTap)
        case .some(let code) where code.hasPrefix("certificate-"): return diagnosis(LoginCause(certificateFault: code))
        case "tls-no-shared-protocol": return diagnosis(.alpnMismatch, side: side)
        case "tls-version", "tls-no-shared-cipher": return diagnosis(.tlsIncompatible, side: side)
        case "starttls-injection": return diagnosis(.startTLSInjection, side: side)
        // The driver has a separate code for a client that disconnects because of the certificate.
        case "tls-ended-in-handshake" where isClient: return diagnosis(.clientGaveUp)
        case "tls-ended-in-handshake": return diagnosis(.serverGone)
        // Without a server header there was no STARTTLS: this is direct TLS.
        case "tls-not-tls" where !isClient && !notes.hasServerHeader: return diagnosis(.tlsUnexpected)
        case "tls-alert": return ofAlert(loginStep.details[LoginStep.alertDetail]?.text, isClient, diagnosis)
        default: return diagnosis(.tlsFailed, side: side)
        }
    }

    private func ofAlert(
        _ alert: String?,
        _ isClient: Bool,
        _ diagnosis: (LoginCause, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis {
        switch alert {
        case "no_application_protocol": return diagnosis(.alpnMismatch, isClient ? .client : .server)
        case "protocol_version", "handshake_failure", "insufficient_security":
            return diagnosis(.tlsIncompatible, isClient ? .client : .server)
        // xmpptap's certificate was issued today: if the client finds it invalid, the clocks differ.
        case "certificate_expired" where isClient: return diagnosis(.clockSkew, nil)
        case "unknown_ca", "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_unknown",
            "certificate_expired", "access_denied":
            return diagnosis(isClient ? .authorityNotTrusted : .tlsAlertByServer, nil)
        default: return diagnosis(isClient ? .tlsAlertByClient : .tlsAlertByServer, nil)
        }
    }
}

extension LoginCause {
    /// The cause for a fault of the server's certificate, by its code.
    public init(certificateFault code: String) {
        self =
            switch code {
            case "certificate-expired": .certificateExpired
            case "certificate-not-yet-valid": .clockSkew
            case "certificate-wrong-name": .certificateWrongName
            case "certificate-self-signed", "certificate-unknown-issuer": .certificateUnknownIssuer
            default: .certificateRefused
            }
    }
}

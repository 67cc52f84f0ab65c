package import TapDiagnosis
internal import TapRecord
import XMPPCore

/// Determines why a login failed, from the relayed items. Explicit errors take precedence over conclusions from
/// silence.
struct LoginDiagnoser {
    let info: SessionInfo
    let steps: [LoginStep]
    let notes: LoginObserver
    /// The domain that the client requested, redacted if the policy hides it.
    let domain: String?
    /// The domain of a server that connects to another one, redacted like ``domain``.
    var initiator: String?
    /// Whether the session is read from a log of another program, which may lack items.
    var isLog = false
    /// Whether the session is read from packets or from a log, both of which may lack items.
    var isObserved = false
    /// The time in nanoseconds after which silence is a fault. A side that leaves sooner may have another reason.
    static let patience: Int64 = 5_000_000_000

    /// Returns the diagnosis; nil without a login, or if its messages could not be decoded.
    func diagnosis(isUnreadable: Bool) -> LoginDiagnosis? {
        // XML from a log is checked before a session reads it, so the fault can only be the order of items in the log.
        if isLog, notes.fault != nil, !notes.attempts.contains(where: { $0.condition != nil }) { return nil }
        if notes.isEstablished { return nil }
        if let diagnosis = diagnoseFederation() { return diagnosis }
        if let diagnosis = diagnoseTap() ?? diagnoseFault() { return diagnosis }
        if case .error(let condition, let direction) = info.ending {
            return diagnose(streamError: condition, direction)
        }
        // The last failed step counts: a client may be refused and then try another way.
        let failed = steps.last { loginStep in
            loginStep.outcome.result == .failed && loginStep.name != .resume && loginStep.awaited == nil
        }
        if let failed, let diagnosis = diagnose(failed) { return diagnosis }
        guard !isUnreadable else { return nil }
        // Silence proves nothing if the recording does not show how the session ended.
        guard info.ending != .unrecorded, !notes.hasGap, !isIncomplete else { return nil }
        // If no bytes were sent, the connection was a port check, not a client.
        guard info.sent.bytes > 0, !hasRegistered else { return nil }
        if let awaited = steps.last(where: { $0.awaited != nil && $0.name != .resume }) {
            // A log may lack the answer.
            guard !isLog || awaited.awaited != .server || notes.hasRepeatedFeatures else { return nil }
            return diagnoseTimeout(awaited)
        }
        return diagnoseWithoutFailedStep()
    }

    /// Whether the recording lacks items: one side continued without an answer that it needed, or answered a request
    /// that is missing.
    private var isIncomplete: Bool {
        guard isObserved else { return false }
        return steps.contains { step in
            switch step.awaited {
            case .server: step.name != .resume && step.later.sent > 0
            case .client: step.later.received > 0
            case nil: false
            }
        }
    }

    // MARK: Properties of the session

    var reached: LoginStep.Name { steps.last?.name ?? .connect }
    var attempt: LoginObserver.Attempt? { notes.attempts.last }

    /// Whether the client registered an account and left without a login, which is a success.
    private var hasRegistered: Bool {
        steps.contains { $0.name == .registration && $0.outcome.result == .ok && $0.details["phase"] == "submit" }
            && info.authentication == .none
    }

    /// The leg whose connection ended first.
    var leaver: Leg? {
        switch info.ending {
        case .clean(let direction): direction.source
        case .unclean(let leg, _), .undecoded(let leg, _): leg
        case .error, .tap, .stopped, .unrecorded, .tls, nil: nil
        }
    }

    var isTimedOut: Bool {
        switch info.ending {
        case .tap(let condition), .error(let condition, _):
            condition == StreamErrorCondition.connectionTimeout.rawValue
        default: false
        }
    }

    // MARK: This program

    private func diagnoseTap() -> LoginDiagnosis? {
        guard case .tap(let condition) = info.ending, notes.fault == nil else { return nil }
        switch condition {
        case StreamErrorCondition.remoteConnectionFailed.rawValue: return diagnoseConnection()
        case StreamErrorCondition.hostUnknown.rawValue:
            let finding = notes.refusal ?? "xmpptap does not serve the domain"
            return LoginDiagnosis(.domainNotServed, at: .streamOpen, finding.clause, condition: condition)
        // The timeline shows which side did not answer.
        case StreamErrorCondition.connectionTimeout.rawValue:
            guard let awaited = steps.last(where: { $0.awaited != nil && $0.name != .resume }) else { break }
            return diagnoseLimit(awaited)
        default: break
        }
        if let diagnosis = diagnoseOwnLogin() { return diagnosis }
        let finding = notes.refusal ?? "xmpptap closed the session"
        if let cause = notes.refusalCause {
            return LoginDiagnosis(cause, at: .startTLS, finding.clause, condition: condition)
        }
        return LoginDiagnosis(.endedByTap, at: reached, finding.clause, condition: condition)
    }

    /// Returns the diagnosis of a login that reached a time limit of xmpptap: either the awaited side was slow, or the
    /// limit is too short.
    private func diagnoseLimit(_ awaited: LoginStep) -> LoginDiagnosis {
        var found = diagnoseTimeout(awaited)
        found.finding = "\(found.finding), and xmpptap closed the session at its time limit"
        found.isProxyTheCause = nil
        return found
    }

    private func diagnoseConnection() -> LoginDiagnosis {
        let cause = notes.connectionFault.cause
        let loginStep: LoginStep.Name =
            switch cause {
            case .nameNotFound, .serviceNotOffered, .lookupFailed: .nameLookup
            default: .connect
            }
        return LoginDiagnosis(cause, at: loginStep, notes.refusal?.clause ?? "the server cannot be reached")
    }

    // MARK: Malformed streams

    private func diagnoseFault() -> LoginDiagnosis? {
        // If bytes are missing, the recording itself may have damaged the stream.
        guard let (fault, direction, isForeign) = notes.fault, !notes.hasGap else { return nil }
        // A log may contain the end of another stream in between.
        if isLog, fault.code == .afterStreamEnd { return nil }
        // A refused client that closes its stream and then continues, such as slixmpp, failed because of the refusal.
        if fault.code == .afterStreamEnd, notes.attempts.contains(where: { $0.condition != nil }) { return nil }
        let side: LoginCause.Side = direction == .send ? .client : .server
        if isForeign, direction == .send {
            return LoginDiagnosis(.notXMPP, at: .streamOpen, "the client does not send XMPP")
        }
        if isForeign, notes.hasServerTLS {
            return LoginDiagnosis(
                .tlsExpected,
                at: .streamOpen,
                "the server answered the clear-text stream with a TLS record: this port expects direct TLS"
            )
        }
        if isForeign, let name = notes.serverProtocol {
            var found = LoginDiagnosis(
                .notXMPP,
                at: .streamOpen,
                "the server's port speaks \(name), not XMPP",
                side: .network
            )
            found.rule = nil
            found.remedy = .checkUpstream
            return found
        }
        if notes.secondDeclaration == direction { return diagnoseDeclaration(side, fault.condition.rawValue) }
        let finding: Prose = "malformed stream from the \(side.rawValue): \(fault.explanation)"
        switch fault.code {
        case .notAStream:
            return LoginDiagnosis(
                .namespaceMismatch,
                at: .streamOpen,
                finding,
                condition: fault.condition.rawValue,
                side: side
            )
        default: break
        }
        return LoginDiagnosis(.malformedStream, at: reached, finding, condition: fault.condition.rawValue, side: side)
    }
}

extension LoginDiagnoser {
    /// Returns the diagnosis of an XML declaration within a stream: XML 1.0 §2.8 allows it only at the beginning.
    func diagnoseDeclaration(_ side: LoginCause.Side, _ condition: String) -> LoginDiagnosis {
        var found = LoginDiagnosis(
            .malformedStream,
            at: reached,
            "the \(side.rawValue) sent a second XML declaration within its stream",
            condition: condition,
            side: side,
            rule: "XML 1.0 §2.8"
        )
        found.remedy = .removeDeclaration
        return found
    }
}

// Diagnoses failed TLS of a leg, by the code of its record.
extension LoginDiagnoser {
    /// Returns the diagnosis of a failed step `tls`; the step's detail `leg` names the leg.
    func diagnoseTLS(_ loginStep: LoginStep, _ code: String?, _ text: Prose?) -> LoginDiagnosis {
        let isClient = loginStep.details["leg"] == "client"
        let side: LoginCause.Side = isClient ? .client : .server
        func diagnosis(_ cause: LoginCause, side: LoginCause.Side? = nil) -> LoginDiagnosis {
            let leg = loginStep.details["leg"].map { " with the \($0.text)" } ?? ""
            return LoginDiagnosis(cause, at: .tls, text ?? "TLS\(leg) failed", condition: code, side: side)
        }
        switch code {
        // The certificate given to xmpptap differs from the server's, or xmpptap could not issue a certificate.
        case "certificate-differs", "no-certificate": return diagnosis(.endedByTap)
        case .some(let code) where code.hasPrefix("certificate-"): return diagnosis(LoginCause(certificateFault: code))
        case "tls-no-shared-protocol": return diagnosis(.alpnMismatch, side: side)
        case "tls-version", "tls-no-shared-cipher": return diagnosis(.tlsIncompatible, side: side)
        case "starttls-injection": return diagnosis(.startTLSInjection, side: side)
        // The driver has a separate code for a client that disconnects because of the certificate.
        case "tls-ended-in-handshake" where isClient: return diagnosis(.clientGaveUp)
        case "tls-ended-in-handshake": return diagnosis(.serverGone)
        // STARTTLS would require a server header first, so this is direct TLS.
        case "tls-not-tls" where !isClient && !notes.hasServerHeader: return diagnosis(.tlsUnexpected)
        case "tls-alert": return diagnoseAlert(loginStep.details[LoginStep.alertDetail]?.text, isClient, diagnosis)
        default: return diagnosis(.tlsFailed, side: side)
        }
    }

    private func diagnoseAlert(
        _ alert: String?,
        _ isClient: Bool,
        _ diagnosis: (LoginCause, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis {
        switch alert {
        case "no_application_protocol": return diagnosis(.alpnMismatch, isClient ? .client : .server)
        case "protocol_version", "handshake_failure", "insufficient_security":
            return diagnosis(.tlsIncompatible, isClient ? .client : .server)
        // xmpptap's certificate was issued today: if the client finds it expired, the clocks differ.
        case "certificate_expired" where isClient: return diagnosis(.clockSkew, nil)
        case "unknown_ca", "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_unknown",
            "certificate_expired", "access_denied":
            return diagnosis(isClient ? .authorityNotTrusted : .tlsAlertByServer, nil)
        default: return diagnosis(isClient ? .tlsAlertByClient : .tlsAlertByServer, nil)
        }
    }
}

extension LoginCause {
    /// Creates the cause for a fault of the server's certificate, from the code of the fault.
    package init(certificateFault code: String) {
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

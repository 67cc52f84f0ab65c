internal import TapDiagnosis
internal import TapRecord

// Diagnoses refused steps of a login.
extension LoginDiagnoser {
    /// Returns the diagnosis of a step that the other side refused; nil for other steps.
    func diagnose(_ loginStep: LoginStep) -> LoginDiagnosis? {
        guard case .failed(let condition, let text) = loginStep.outcome else { return nil }
        let quotedText = text.map { ": \($0.clause)" } ?? ""
        func diagnosis(_ cause: LoginCause, _ finding: Prose, rule: String? = nil) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: loginStep.name, finding, condition: condition, rule: rule)
        }
        switch loginStep.name {
        case .sasl, .sasl2: return notes.attempts.last { $0.condition != nil }.map { diagnose($0) }
        case .nameLookup, .connect: return nil
        case .startTLS:
            return diagnosis(.tlsDeclined, "the server answered <failure/> to <starttls/>, although it offers TLS")
        case .legacyAuthentication:
            return diagnosis(
                .notAuthorized,
                "the server refused the login\(suffix(condition))\(quotedText)",
                rule: "XEP-0078 §3"
            )
        case .registration: return diagnoseRegistration(condition, quotedText)
        case .bind, .bind2, .session: return diagnoseBinding(loginStep.name, condition, quotedText)
        case .handshake: return diagnosis(.handshakeRefused, "the server rejected the component's secret")
        case .dialback, .dialbackVerification:
            return diagnosis(.dialbackFailed, text ?? "dialback did not verify the domain")
        case .tls: return diagnoseTLS(loginStep, condition, text)
        case .streamOpen, .features, .mechanism, .compression, .resume, .ready:
            return diagnosis(.streamError, "\(loginStep.name.rawValue) failed\(suffix(condition))\(quotedText)")
        }
    }

    private func suffix(_ condition: String?) -> String { condition.map { " (\($0))" } ?? "" }

    private func diagnoseRegistration(_ condition: String?, _ quotedText: String) -> LoginDiagnosis {
        let (cause, finding): (LoginCause, Prose) =
            switch condition {
            case "conflict", "409": (.accountExists, "the user name that the client wants to register is taken")
            case "not-allowed", "forbidden", "service-unavailable", "feature-not-implemented", "405", "403", "503":
                (.registrationNotAllowed, "the server does not allow registration")
            default: (.registrationRefused, "the server refused the registration")
            }
        return LoginDiagnosis(
            cause,
            at: .registration,
            "\(finding)\(suffix(condition))\(quotedText)",
            condition: condition
        )
    }

    private func diagnoseBinding(_ loginStep: LoginStep.Name, _ condition: String?, _ quotedText: String)
        -> LoginDiagnosis
    {
        let (cause, finding): (LoginCause, Prose) =
            switch condition {
            case "conflict": (.conflict, "the resource is already in use")
            case "resource-constraint":
                (.resourceConstraint, "the account has reached the server's limit of sessions")
            default: (.bindRefused, "the server refused \(loginStep == .session ? "the session" : "the resource")")
            }
        let rule = cause == .resourceConstraint ? "RFC 6120 §7.6.2.1" : nil
        return LoginDiagnosis(
            cause,
            at: loginStep,
            "\(finding)\(suffix(condition))\(quotedText)",
            condition: condition,
            rule: rule
        )
    }

    // MARK: SASL

    /// Returns the diagnosis of the login that xmpptap performed itself, if the server did not authenticate itself.
    func diagnoseOwnLogin() -> LoginDiagnosis? {
        guard notes.isServerUnproven, let explanation = notes.ownFailure else { return nil }
        return LoginDiagnosis(
            .serverNotProven,
            at: steps.contains { $0.name == .sasl2 } ? .sasl2 : .sasl,
            "xmpptap gave up its own login to the server: \(explanation)",
            condition: attempt?.condition
        )
    }

    /// Returns the diagnosis if the server violated SCRAM or SASL and the client gave up; `deed` is the client's action,
    /// as a verb phrase.
    func diagnoseViolation(_ attempt: LoginObserver.Attempt, at loginStep: LoginStep.Name, _ deed: String)
        -> LoginDiagnosis?
    {
        guard !attempt.isOwn, let breach = attempt.breach else { return nil }
        // A log may show less of a challenge than the server sent.
        guard attempt.isSCRAM || !isLog else { return nil }
        return LoginDiagnosis(
            attempt.isSCRAM ? .serverNotProven : .malformedChallenge,
            at: loginStep,
            "the server \(breach), and the client \(deed)",
            condition: attempt.condition
        )
    }

    /// Returns the diagnosis of a failed authentication.
    func diagnose(_ attempt: LoginObserver.Attempt) -> LoginDiagnosis {
        let loginStep: LoginStep.Name = steps.contains { $0.name == .sasl2 } ? .sasl2 : .sasl
        let condition = attempt.condition ?? "undefined-condition"
        let quotedText = attempt.text.map { ": \($0.clause)" } ?? ""
        func diagnosis(_ cause: LoginCause, _ finding: Prose, side: LoginCause.Side? = nil) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: loginStep, "\(finding)\(quotedText)", condition: condition, side: side)
        }
        if attempt.isOwn, let diagnosis = diagnoseOwnLogin() { return diagnosis }
        if attempt.isOwn, let explanation = notes.ownFailure {
            var found = LoginDiagnosis(
                .ownLoginRefused,
                at: loginStep,
                "xmpptap gave up its own login to the server by \(attempt.mechanism): \(explanation)",
                condition: condition
            )
            found.remedy = .checkOwnAccount
            return found
        }
        if attempt.isOwn {
            return diagnosis(
                .ownLoginRefused,
                "the server refused xmpptap's own login by \(attempt.mechanism) (\(condition))"
            )
        }
        if attempt.isAborted || condition == "aborted",
            let diagnosis = diagnoseViolation(attempt, at: loginStep, "aborted \(attempt.mechanism)")
        {
            return diagnosis
        }
        if attempt.isRefusedHere, let diagnosis = diagnoseRefusalHere(attempt, diagnosis) { return diagnosis }
        if let (cause, finding, side) = diagnoseBinding(attempt, condition) {
            return diagnosis(cause, finding, side: side)
        }
        if let earlier = downgraded(attempt) {
            // Both attempts failed because of the password; the stronger mechanism may have given more detail.
            if earlier.condition == "not-authorized", condition == "not-authorized" {
                var diagnosis = diagnose(earlier)
                diagnosis.finding =
                    "\(diagnosis.finding); the client then revealed its password by PLAIN, which failed too"
                return diagnosis
            }
            return diagnosis(
                .plainDowngrade,
                "\(earlier.mechanism) failed (\(earlier.condition ?? "aborted")), then the client sent its password "
                    + "by PLAIN, which failed too (\(condition))"
            )
        }
        let by = attempt.mechanism
        switch condition {
        // Some servers answer an `<abort/>` with `not-authorized`.
        case "not-authorized" where attempt.isAborted && attempt.serverError == nil:
            return diagnosis(.clientAborted, "the client aborted \(by)")
        case "not-authorized": return diagnoseCredentials(attempt, diagnosis)
        case "account-disabled": return diagnosis(.accountDisabled, "the account is disabled")
        case "credentials-expired": return diagnosis(.credentialsExpired, "the password or token has expired")
        case "encryption-required":
            var found = diagnosis(.mechanismTooWeak, "the server does not accept \(by) without TLS")
            found.remedy = .startTLS
            return found
        case "mechanism-too-weak":
            return diagnosis(.mechanismTooWeak, "the server requires a stronger mechanism than \(by)")
        case "invalid-mechanism" where info.mechanisms.contains(by):
            return diagnosis(.noCommonMechanism, "the server refused \(by), although it offers it", side: .server)
        case "invalid-mechanism":
            let offered = info.mechanisms.isEmpty ? "none" : info.mechanisms.joined(separator: ", ")
            return diagnosis(.noCommonMechanism, "the server does not support \(by) (offered: \(offered))")
        case "invalid-authzid":
            return diagnosis(.invalidAuthorization, "the account may not act as the client's authorization identity")
        case "malformed-request", "incorrect-encoding":
            guard attempt.hasLineBreak else {
                return diagnosis(.malformedRequest, "the server rejected the client's \(by) message as malformed")
            }
            var found = diagnosis(
                .malformedRequest,
                "the server rejected the client's \(by) message: its base64 contains a line break"
            )
            found.rule = "RFC 6120 §6.4.2, RFC 4648 §3.1"
            found.remedy = .removeLineBreaks
            return found
        case "temporary-auth-failure":
            return diagnosis(.temporaryFailure, "the server cannot check credentials at the moment")
        case "aborted": return diagnosis(.clientAborted, "the client aborted \(by)")
        default:
            var found = diagnosis(.notAuthorized, "the server refused the login (\(condition))", side: .unknown)
            found.remedy = .compareLogs
            return found
        }
    }

    /// Returns the diagnosis of a login that xmpptap refused itself.
    private func diagnoseRefusalHere(
        _ attempt: LoginObserver.Attempt,
        _ diagnosis: (LoginCause, Prose, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis? {
        switch attempt.condition {
        case "not-authorized" where notes.hasMissedAccount:
            return diagnosis(
                .bindingMismatch,
                "the login uses channel binding to the client's TLS connection to xmpptap, and its account is not in "
                    + "the accounts file",
                nil
            )
        case "not-authorized":
            var found = diagnosis(
                .wrongPassword,
                "the client's password differs from that of the account in the accounts file",
                nil
            )
            found.remedy = .comparePassword
            return found
        case "malformed-request" where attempt.isBindingUnavailable:
            let type = attempt.binding ?? "an unknown type"
            let isOld = type == "tls-unique" && notes.legs?.clientTLS ?? 0 >= 0x0304
            var found = diagnosis(
                .bindingMismatch,
                "the client's channel binding \(type) is not available on its connection"
                    + (isOld ? ": it is not defined for TLS 1.3" : ""),
                .client
            )
            if isOld { found.rule = "RFC 8446 §C.5" }
            found.remedy = .changeBindingType
            return found
        case "malformed-request", "incorrect-encoding":
            return diagnosis(
                .malformedRequest,
                "xmpptap rejected the client's \(attempt.mechanism) message as malformed",
                nil
            )
        case "temporary-auth-failure":
            return diagnosis(.ownLoginRefused, "xmpptap cannot log in to the server for the client", nil)
        case "invalid-mechanism":
            let base = BridgedOffer.base(of: attempt.mechanism)
            var found = diagnosis(
                .noCommonMechanism,
                "the account has no stored key for \(base)",
                .tap
            )
            found.remedy = .addKey(mechanism: base)
            return found
        default: return nil
        }
    }

    private func diagnoseCredentials(
        _ attempt: LoginObserver.Attempt,
        _ diagnosis: (LoginCause, Prose, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis {
        switch (attempt.serverError, attempt.namedCause) {
        case ("unknown-user", _), (nil, .unknownUser):
            return diagnosis(.unknownUser, "the server does not know the user name", nil)
        case ("invalid-proof", _), (nil, .wrongPassword):
            return diagnosis(.wrongPassword, "the user name is known, the password is wrong", nil)
        default: break
        }
        let mechanism = SASLMechanism(attempt.mechanism)
        switch mechanism {
        case .plain, .scram, .digestMD5, .other: break
        case .external, .anonymous, .oauth, .hashedToken:
            var found = diagnosis(.notAuthorized, Self.refusal(mechanism, attempt.mechanism), nil)
            found.remedy = .checkCredential(mechanism.credential)
            return found
        }
        // The server needs a salt for its challenge, and has none for an unknown user.
        if attempt.isSCRAM, !attempt.isChallenged {
            return diagnosis(
                .unknownUser,
                "the server refused \(attempt.mechanism) before its challenge: probably an unknown user name",
                nil
            )
        }
        if attempt.isSCRAM, attempt.bindingFlag == "p" {
            return diagnosis(
                .notAuthorized,
                "the server refused the password of a login with channel binding "
                    + "\(attempt.binding ?? "of unknown type"); wrong channel binding gives the same error",
                nil
            )
        }
        var found = diagnosis(
            .notAuthorized,
            "the server refused the user name or the password and does not say which",
            nil
        )
        if let user = attempt.user, user.contains("@") {
            found.finding = "\(found.finding); the user name \(user) contains a domain"
            found.remedy = .useLocalPart
        }
        return found
    }

    private static func refusal(_ mechanism: SASLMechanism, _ name: String) -> Prose {
        switch mechanism {
        case .external: "the server did not accept the client's certificate, or its identity (\(name))"
        case .anonymous: "the server did not accept an anonymous login"
        case .oauth, .hashedToken: "the server did not accept the client's token (\(name))"
        case .plain, .scram, .digestMD5, .other: "the server did not accept the login"
        }
    }

    /// Returns the fault of channel binding; nil if none is known.
    private func diagnoseBinding(
        _ attempt: LoginObserver.Attempt,
        _ condition: String
    ) -> (LoginCause, Prose, LoginCause.Side?)? {
        let forecast = notes.bindingForecast?.cause
        switch attempt.serverError {
        case "channel-bindings-dont-match":
            let side: LoginCause.Side? = forecast == .bindingMismatch ? .tap : .client
            return (.bindingMismatch, "channel binding does not match: the server has a different TLS connection", side)
        case "server-does-support-channel-binding": return denial()
        case "channel-binding-not-supported", "unsupported-channel-binding-type":
            let type = attempt.binding ?? "type of the client"
            return (.bindingMismatch, "the server does not support the channel binding \(type)", .client)
        case nil where attempt.namedCause == .bindingMismatch && attempt.bindingFlag == "p":
            let side: LoginCause.Side = forecast == .bindingMismatch ? .tap : .network
            return (.bindingMismatch, "channel binding does not match: the server has a different TLS connection", side)
        // The server's text names channel binding; its condition does not matter.
        case nil where attempt.namedCause == .bindingMismatch && attempt.bindingFlag == "y":
            return (
                .bindingDenied,
                "the server refused the channel binding of a client that says the server offers none (gs2 flag y)",
                nil
            )
        default: break
        }
        guard ["not-authorized", "malformed-request", "aborted"].contains(condition) else { return nil }
        switch attempt.bindingFlag {
        case "y" where notes.bindingSeen == true: break
        case "y" where condition == "malformed-request": return denial()
        // A server refuses the flag before its challenge, and a wrong proof after it.
        case "y" where (forecast == .bindingDenied || hasOfferedBinding) && !attempt.isChallenged:
            let (cause, finding, side) = denial()
            return (cause, "\(finding); an unknown user name can give the same error", side)
        case "p" where forecast == .bindingMismatch:
            return (.bindingMismatch, "the login uses channel binding to the client's TLS connection to xmpptap", nil)
        default: break
        }
        guard let forecast, forecast == .mechanismsAltered || forecast == .tlsVersionAltered,
            condition == "aborted" || attempt.isAborted
        else { return nil }
        return (forecast, "the client found that the server's signed values differ from those it received", nil)
    }

    /// Whether the server offered mechanisms with channel binding.
    private var hasOfferedBinding: Bool { info.mechanisms.contains { $0.hasSuffix("-PLUS") } }

    private func denial() -> (LoginCause, Prose, LoginCause.Side?) {
        // If xmpptap removed the `-PLUS` mechanisms, xmpptap is at fault.
        let side: LoginCause.Side? = notes.bindingForecast?.strategy == .strip ? .tap : nil
        return (
            .bindingDenied,
            "the client says that the server offers no channel binding (gs2 flag y), but it does",
            side
        )
    }

    /// Returns the failed attempt after which the client fell back to PLAIN; nil if it did not.
    private func downgraded(_ attempt: LoginObserver.Attempt) -> LoginObserver.Attempt? {
        attempt.mechanism == "PLAIN" ? notes.failedSCRAM : nil
    }
}

extension SASLMechanism {
    /// The credential that the client uses.
    fileprivate var credential: Remedy.Credential {
        switch self {
        case .external: .certificate
        case .anonymous: .none
        case .oauth, .hashedToken: .token
        case .plain, .scram, .digestMD5, .other: .password
        }
    }
}

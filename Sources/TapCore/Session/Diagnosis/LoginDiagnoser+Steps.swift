internal import TapDiagnosis
internal import TapRecord

// Steps of a login that were refused.
extension LoginDiagnoser {
    /// A step has failed by an answer.
    func of(_ loginStep: LoginStep) -> LoginDiagnosis? {
        guard case .failed(let condition, let words) = loginStep.outcome else { return nil }
        let said = words.map { ": \(Self.clause($0))" } ?? ""
        func diagnosis(_ cause: LoginCause, _ finding: String, rule: String? = nil) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: loginStep.name, finding, condition: condition, rule: rule)
        }
        switch loginStep.name {
        case .sasl, .sasl2: return notes.attempts.last { $0.condition != nil }.map { of($0) }
        case .nameLookup, .connect: return nil
        case .startTLS: return diagnosis(.tlsDeclined, "the server declines the TLS that it offers")
        case .legacyAuthentication:
            return diagnosis(.notAuthorized, "the server refuses the login\(of(condition))\(said)", rule: "XEP-0078 §3")
        case .registration: return ofRegistration(condition, said)
        case .bind, .bind2, .session: return ofBinding(loginStep.name, condition, said)
        case .handshake: return diagnosis(.handshakeRefused, "the server does not believe the component's secret")
        case .dialback, .dialbackVerification:
            return diagnosis(.dialbackFailed, words ?? "the domain is not believed")
        case .tls: return ofTLS(loginStep, condition, words)
        case .streamOpen, .features, .mechanism, .compression, .resume, .ready:
            return diagnosis(.streamError, "\(loginStep.name.rawValue) failed\(of(condition))\(said)")
        }
    }

    private func of(_ condition: String?) -> String { condition.map { " (\($0))" } ?? "" }

    private func ofRegistration(_ condition: String?, _ said: String) -> LoginDiagnosis {
        let (cause, words): (LoginCause, String) =
            switch condition {
            case "conflict", "409": (.accountExists, "the name that the client wants to register is taken")
            case "not-allowed", "forbidden", "service-unavailable", "feature-not-implemented", "405", "403", "503":
                (.registrationNotAllowed, "the server lets nobody register")
            default: (.registrationRefused, "the server refuses the registration")
            }
        return LoginDiagnosis(cause, at: .registration, words + of(condition) + said, condition: condition)
    }

    private func ofBinding(_ loginStep: LoginStep.Name, _ condition: String?, _ said: String) -> LoginDiagnosis {
        let (cause, words): (LoginCause, String) =
            switch condition {
            case "conflict": (.conflict, "the resource is in use")
            case "resource-constraint":
                (.resourceConstraint, "the server lets the account have no further session")
            default: (.bindRefused, "the server refuses \(loginStep == .session ? "the session" : "the resource")")
            }
        let rule = cause == .resourceConstraint ? "RFC 6120 §7.6.2.1" : nil
        return LoginDiagnosis(cause, at: loginStep, words + of(condition) + said, condition: condition, rule: rule)
    }

    // MARK: SASL

    /// The login that this program made for the client, where the server did not prove itself in it.
    func ofOwnLogin() -> LoginDiagnosis? {
        guard notes.isServerUnproven, let words = notes.ownFailure else { return nil }
        return LoginDiagnosis(
            .serverNotProven,
            at: steps.contains { $0.name == .sasl2 } ? .sasl2 : .sasl,
            "xmpptap gave up its own login to the server: \(words)",
            condition: attempt?.condition
        )
    }

    /// The server broke the rules of SCRAM and the client would not have it; `deed` is what the client did.
    func ofBreach(_ attempt: LoginNotes.Attempt, at loginStep: LoginStep.Name, _ deed: String) -> LoginDiagnosis? {
        guard !attempt.isOwn, let breach = attempt.breach else { return nil }
        return LoginDiagnosis(
            .serverNotProven,
            at: loginStep,
            "the server \(breach), and the client \(deed)",
            condition: attempt.condition
        )
    }

    /// An authentication has failed.
    func of(_ attempt: LoginNotes.Attempt) -> LoginDiagnosis {
        let loginStep: LoginStep.Name = steps.contains { $0.name == .sasl2 } ? .sasl2 : .sasl
        let condition = attempt.condition ?? "undefined-condition"
        let said = attempt.words.map { ": \(Self.clause($0))" } ?? ""
        func diagnosis(_ cause: LoginCause, _ finding: String, side: LoginCause.Side? = nil) -> LoginDiagnosis {
            LoginDiagnosis(cause, at: loginStep, finding + said, condition: condition, side: side)
        }
        if attempt.isOwn, let diagnosis = ofOwnLogin() { return diagnosis }
        if attempt.isOwn, let words = notes.ownFailure {
            var found = LoginDiagnosis(
                .ownLoginRefused,
                at: loginStep,
                "xmpptap gives up the login that it makes for the client by \(attempt.mechanism): \(words)",
                condition: condition
            )
            found.advice = "look at the account in --accounts, and at what the server says of it in the records above"
            return found
        }
        if attempt.isOwn {
            return diagnosis(
                .ownLoginRefused,
                "the server refuses the login that xmpptap makes for the client by \(attempt.mechanism) (\(condition))"
            )
        }
        if attempt.isAborted || condition == "aborted",
            let diagnosis = ofBreach(attempt, at: loginStep, "aborted \(attempt.mechanism)")
        {
            return diagnosis
        }
        if attempt.isRefusedHere, let diagnosis = ofRefusalHere(attempt, diagnosis) { return diagnosis }
        if let (cause, words, side) = ofBinding(attempt, condition) { return diagnosis(cause, words, side: side) }
        if let earlier = downgraded(attempt) {
            // Both say that the password is wrong, and the stronger mechanism may have said more of it.
            if earlier.condition == "not-authorized", condition == "not-authorized" {
                var diagnosis = of(earlier)
                diagnosis.finding += "; the client then showed its password by PLAIN, in vain"
                return diagnosis
            }
            return diagnosis(
                .plainDowngrade,
                "\(earlier.mechanism) failed (\(earlier.condition ?? "aborted")), then the client offered its password "
                    + "by PLAIN, which failed too (\(condition))"
            )
        }
        let by = attempt.mechanism
        switch condition {
        // Some servers do not say of an abort what it was.
        case "not-authorized" where attempt.isAborted && attempt.serverError == nil:
            return diagnosis(.clientAborted, "the client aborted \(by)")
        case "not-authorized": return ofCredentials(attempt, diagnosis)
        case "account-disabled": return diagnosis(.accountDisabled, "the account is disabled")
        case "credentials-expired": return diagnosis(.credentialsExpired, "the password or token has expired")
        case "encryption-required": return diagnosis(.mechanismTooWeak, "the server does not take \(by) without TLS")
        case "mechanism-too-weak": return diagnosis(.mechanismTooWeak, "the server finds \(by) too weak")
        case "invalid-mechanism":
            let offered = info.mechanisms.isEmpty ? "none" : info.mechanisms.joined(separator: ", ")
            return diagnosis(.noCommonMechanism, "the server does not know or offer \(by) (offered: \(offered))")
        case "invalid-authzid": return diagnosis(.invalidAuthorization, "the client may not act for the name it gives")
        case "malformed-request", "incorrect-encoding":
            return diagnosis(.malformedRequest, "the server cannot make sense of the client's \(by) message")
        case "temporary-auth-failure":
            return diagnosis(.temporaryFailure, "the server cannot check the credentials at the moment")
        case "aborted": return diagnosis(.clientAborted, "the client aborted \(by)")
        default: return diagnosis(.notAuthorized, "the server refuses the login (\(condition))")
        }
    }

    /// The client's login was ended here, and it did not come as far as the server.
    private func ofRefusalHere(
        _ attempt: LoginNotes.Attempt,
        _ diagnosis: (LoginCause, String, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis? {
        switch attempt.condition {
        case "not-authorized" where notes.hasMissedAccount:
            return diagnosis(
                .bindingMismatch,
                "the login is bound to the client's TLS connection, which ends at xmpptap, and its account is not in "
                    + "--accounts",
                nil
            )
        case "not-authorized":
            var found = diagnosis(
                .wrongPassword,
                "xmpptap, which ends the login itself, has another password for the account in --accounts than the client",
                nil
            )
            found.advice = "compare the client's password with the one in --accounts"
            return found
        case "malformed-request" where attempt.words == "unsupported-channel-binding-type":
            let type = attempt.binding ?? "an unknown type"
            let isOld = type == "tls-unique" && notes.legs?.clientTLS ?? 0 >= 0x0304
            var found = diagnosis(
                .bindingMismatch,
                "the client binds its login by \(type), which its connection has not"
                    + (isOld ? ": it is not defined on TLS 1.3" : ""),
                .client
            )
            if isOld { found.rule = "RFC 8446 §C.5" }
            found.advice =
                "let the client bind by a type that it was told of, or log in by PLAIN, which xmpptap ends, or use a newer "
                + "client that knows tls-exporter (RFC 9266)"
            return found
        case "malformed-request", "incorrect-encoding":
            return diagnosis(
                .malformedRequest,
                "xmpptap, which ends the login itself, cannot make sense of the client's \(attempt.mechanism) message",
                nil
            )
        case "temporary-auth-failure":
            return diagnosis(.ownLoginRefused, "xmpptap cannot log in to the server for the client", nil)
        case "invalid-mechanism":
            let base = BridgedOffer.base(of: attempt.mechanism)
            var found = diagnosis(
                .noCommonMechanism,
                "xmpptap, which ends the login itself, has no stored key of \(base) for the account in --accounts",
                .tap
            )
            found.advice = "add the record of \(base) or the password to the account's file"
            return found
        default: return nil
        }
    }

    private func ofCredentials(
        _ attempt: LoginNotes.Attempt,
        _ diagnosis: (LoginCause, String, LoginCause.Side?) -> LoginDiagnosis
    ) -> LoginDiagnosis {
        switch (attempt.serverError, attempt.tells) {
        case ("unknown-user", _), (nil, .unknownUser):
            return diagnosis(.unknownUser, "the server does not know the name", nil)
        case ("invalid-proof", _), (nil, .wrongPassword):
            return diagnosis(.wrongPassword, "the server knows the name, and the password is wrong", nil)
        default: break
        }
        // The server needs a salt for its challenge, and of an unknown name it has none.
        if attempt.isSCRAM, !attempt.isChallenged {
            return diagnosis(
                .unknownUser,
                "the server ended \(attempt.mechanism) before its challenge, as servers do that do not know the name",
                nil
            )
        }
        if attempt.isSCRAM, attempt.bindingFlag == "p" {
            return diagnosis(
                .notAuthorized,
                "the server refuses the password of a login that is bound to TLS by "
                    + "\(attempt.binding ?? "an unknown type"); a wrong binding looks the same",
                nil
            )
        }
        return diagnosis(.notAuthorized, "the server refuses the name or the password and does not say which", nil)
    }

    /// What went wrong with the binding of the login to TLS, where that is known.
    private func ofBinding(
        _ attempt: LoginNotes.Attempt,
        _ condition: String
    ) -> (LoginCause, String, LoginCause.Side?)? {
        let forecast = notes.bindingForecast?.cause
        switch attempt.serverError {
        case "channel-bindings-dont-match":
            let side: LoginCause.Side? = forecast == .bindingMismatch ? .tap : .client
            return (.bindingMismatch, "the login is bound to another TLS connection than the server has", side)
        case "server-does-support-channel-binding": return denial()
        case "channel-binding-not-supported", "unsupported-channel-binding-type":
            let type = attempt.binding ?? "of a type"
            return (.bindingMismatch, "the server does not support the channel binding \(type)", .client)
        case nil where attempt.tells == .bindingMismatch && attempt.bindingFlag == "p":
            let side: LoginCause.Side = forecast == .bindingMismatch ? .tap : .network
            return (.bindingMismatch, "the login is bound to another TLS connection than the server has", side)
        default: break
        }
        guard ["not-authorized", "malformed-request", "aborted"].contains(condition) else { return nil }
        switch attempt.bindingFlag {
        case "y" where notes.bindingSeen == true: break
        case "y" where condition == "malformed-request": return denial()
        // Before its challenge a server may refuse the flag; behind it, it is the proof that it did not like.
        case "y" where forecast == .bindingDenied && !attempt.isChallenged:
            let (cause, words, side) = denial()
            return (cause, "\(words); servers may give the same answer for an unknown user name", side)
        case "p" where forecast == .bindingMismatch:
            return (.bindingMismatch, "the login is bound to the client's TLS connection, which ends at xmpptap", nil)
        default: break
        }
        guard let forecast, forecast == .mechanismsAltered || forecast == .tlsVersionAltered,
            condition == "aborted" || attempt.isAborted
        else { return nil }
        return (forecast, "the client found that what it sees is not what the server signs", nil)
    }

    private func denial() -> (LoginCause, String, LoginCause.Side?) {
        // The client saw no -PLUS mechanism, or does not want one.
        let side: LoginCause.Side? = notes.bindingForecast?.strategy == .strip ? .tap : nil
        return (
            .bindingDenied,
            "the client says that the server has no channel binding (gs2 flag y), and the server has it",
            side
        )
    }

    /// The attempt that failed before the client fell back to PLAIN.
    private func downgraded(_ attempt: LoginNotes.Attempt) -> LoginNotes.Attempt? {
        attempt.mechanism == "PLAIN" ? notes.failedSCRAM : nil
    }
}

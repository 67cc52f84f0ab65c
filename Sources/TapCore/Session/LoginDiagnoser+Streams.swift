internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Diagnoses stream errors and silence.
extension LoginDiagnoser {
    /// Returns the diagnosis of a session that a stream error ended.
    func diagnose(streamError name: String, _ direction: Direction) -> LoginDiagnosis? {
        // After a SASL failure, a server may close the stream with any condition (RFC 6120 §6.4.5).
        if let attempt, attempt.condition != nil, direction == .recv { return diagnose(attempt) }
        if let rule = info.boshRule { return diagnose(boshCondition: name, direction, rule) }
        if info.kind == .component, name == "not-authorized" {
            return LoginDiagnosis(
                .handshakeRefused,
                at: .handshake,
                "the server rejected the component's secret",
                condition: name
            )
        }
        if direction == .recv, !notes.hasGap, let fault = info.enableFault(for: name) {
            return LoginDiagnosis(.earlyEnable, at: reached, fault, condition: name)
        }
        // Prosody closes the stream with this error if it has no features to offer.
        if direction == .recv, offersNothing, name == StreamErrorCondition.undefinedCondition.rawValue,
            notes.offer != nil || quotedText.contains("No stream features to proceed with")
        {
            return LoginDiagnosis(
                .noMechanismOffered,
                at: .features,
                "the server offers no SASL mechanism\(quotedText)",
                condition: name
            )
        }
        if notes.secondDeclaration == direction.opposite { return diagnoseDeclaration(blamed(by: direction), name) }
        guard let condition = StreamErrorCondition(rawValue: name) else { return other(name, direction) }
        let who = direction == .recv ? "the server" : "the client"
        switch condition {
        case .hostUnknown, .hostGone:
            return diagnosis(
                .hostUnknown,
                condition,
                "the server does not serve \(domain ?? "the requested domain")\(quotedText)"
            )
        case .seeOtherHost:
            return diagnosis(.seeOtherHost, condition, info.reason ?? "the server redirects the client to another host")
        case .resourceConstraint:
            return diagnosis(.resourceConstraint, condition, "\(who) is out of resources\(quotedText)")
        case .policyViolation:
            let finding: Prose =
                info.reason.map { "policy violation: \($0)" } ?? "policy violation; \(who) gave no reason"
            var found = diagnosis(.policyViolation, condition, finding, side: blamed(by: direction))
            if direction == .send { found.remedy = .compareLogs }
            return found
        case .systemShutdown: return diagnosis(.systemShutdown, condition, "\(who) is shutting down\(quotedText)")
        case .conflict:
            return diagnosis(
                .conflict,
                condition,
                info.reason ?? "another login uses the same resource",
                rule: "RFC 6120 §4.9.3.3"
            )
        case .invalidNamespace, .badNamespacePrefix:
            let other = direction == .recv ? "client" : "server"
            return diagnosis(
                .namespaceMismatch,
                condition,
                "\(who) rejected the namespace of the \(other)'s stream",
                side: blamed(by: direction)
            )
        case .unsupportedVersion:
            return diagnosis(
                .versionMismatch,
                condition,
                "\(who) does not support the XMPP version in the stream header",
                side: blamed(by: direction)
            )
        case .connectionTimeout:
            let other: Leg = direction == .recv ? .client : .server
            if let awaited = steps.last(where: { $0.awaited != nil }), awaited.awaited == other {
                return diagnoseTimeout(awaited)
            }
            let finding: Prose = "\(who) timed out at \(reached.rawValue)\(quotedText)"
            var found = diagnosis(.streamError, condition, finding, side: .unknown)
            found.remedy = .compareLogs
            return found
        case .notAuthorized where isAuthenticated:
            guard hasSentBeforeBinding else { return other(name, direction) }
            return diagnosis(.missingBind, condition, "the client sent stanzas before it bound a resource\(quotedText)")
        case .notWellFormed, .badFormat, .invalidXML, .restrictedXML, .unsupportedEncoding:
            let other = direction == .recv ? "client" : "server"
            let finding: Prose = "\(who) rejected the \(other)'s stream as malformed\(quotedText)"
            return diagnosis(.malformedStream, condition, finding, side: blamed(by: direction))
        default: return other(name, direction)
        }
    }

    /// Returns the diagnosis of a session that a condition of BOSH ended (XEP-0124 §17).
    private func diagnose(boshCondition name: String, _ direction: Direction, _ rule: String) -> LoginDiagnosis {
        let who = direction == .recv ? "the server" : "the client"
        let ended: Prose = "\(who) ended the BOSH session: \(name)\(quotedText)"
        let (cause, finding, side): (LoginCause, Prose, LoginCause.Side?) =
            switch name {
            case "host-unknown", "host-gone":
                (.hostUnknown, "the server does not serve \(domain ?? "the requested domain")", nil)
            case "policy-violation": (.policyViolation, ended, nil)
            case "see-other-uri": (.seeOtherHost, info.reason ?? ended, nil)
            case "system-shutdown": (.systemShutdown, "\(who) is shutting down", nil)
            // Prosody refuses unknown domains by this condition.
            case "improper-addressing" where domain != nil:
                (.hostUnknown, "the server does not serve \(domain ?? "the domain") by BOSH: \(name)", nil)
            case "bad-request", "improper-addressing": (.streamError, ended, blamed(by: direction))
            case "internal-server-error", "remote-connection-failed":
                (.streamError, ended, Self.sender(direction))
            default: (.streamError, ended, .unknown)
            }
        return LoginDiagnosis(cause, at: reached, finding, condition: name, side: side, rule: rule)
    }

    /// The text of the stream error, as a suffix for a finding.
    private var quotedText: String { info.reason.map { ": \($0.clause)" } ?? "" }

    /// Whether the server has opened its stream, but offered no mechanism and no TLS.
    private var offersNothing: Bool {
        info.kind == .client && notes.hasServerHeader && info.authentication == .none && info.mechanisms.isEmpty
            && notes.attempts.isEmpty && notes.offer?.offersTLS != true && notes.serverVersion != nil
    }

    /// Whether the client is known to have sent an element after its login, but no request for resource binding.
    private var hasSentBeforeBinding: Bool {
        !notes.hasGap && steps.last { $0.name == .bind }.map { $0.later.sent > 0 } == true
    }

    private var isAuthenticated: Bool { info.authentication == .succeeded }

    private func blamed(by direction: Direction) -> LoginCause.Side { direction == .recv ? .client : .server }

    private static func sender(_ direction: Direction) -> LoginCause.Side { direction == .recv ? .server : .client }

    /// Whether the sender of this condition declares the fault its own (RFC 6120 §4.9.3.8, §4.9.3.15, §4.9.3.17).
    private static func blamesItself(_ name: String) -> Bool {
        [.internalServerError, .remoteConnectionFailed, .resourceConstraint].contains(
            StreamErrorCondition(rawValue: name)
        )
    }

    private func diagnosis(
        _ cause: LoginCause,
        _ condition: StreamErrorCondition,
        _ finding: Prose,
        side: LoginCause.Side? = nil,
        rule: String? = nil
    ) -> LoginDiagnosis {
        LoginDiagnosis(
            cause,
            at: cause == .missingBind ? .bind : reached,
            finding,
            condition: condition.rawValue,
            side: side,
            rule: rule ?? (cause == .missingBind ? nil : condition.section)
        )
    }

    private func other(_ name: String, _ direction: Direction) -> LoginDiagnosis {
        let who = direction == .recv ? "the server" : "the client"
        var found = LoginDiagnosis(
            .streamError,
            at: reached,
            "\(who) closed the stream: \(name)\(quotedText)",
            condition: name,
            side: Self.blamesItself(name) ? Self.sender(direction) : blamed(by: direction),
            rule: StreamErrorCondition(rawValue: name)?.section
        )
        // These conditions name no fault (RFC 6120 §4.9.3.16, §4.9.3.21); `not-authorized` can mean that the account
        // was deleted (§4.9.3.12).
        if [.undefinedCondition, .reset, .notAuthorized].contains(StreamErrorCondition(rawValue: name)) {
            found.side = .unknown
            found.remedy = .compareLogs
        }
        return found
    }

    // MARK: Silence

    /// Returns the diagnosis of a pending step that the awaited side never continued.
    func diagnoseTimeout(_ loginStep: LoginStep) -> LoginDiagnosis {
        guard loginStep.awaited == .client else {
            if loginStep.name == .streamOpen, info.received.bytes == 0, !steps.contains(where: { $0.name == .tls }) {
                return diagnoseSilentServer(loginStep)
            }
            if leaver == .client, loginStep.duration < Self.patience {
                return LoginDiagnosis(
                    .clientGaveUp,
                    at: loginStep.name,
                    "the client disconnected before the server answered, after \(LineBuffer.duration(loginStep.duration))",
                    side: .unknown
                )
            }
            if notes.hasRepeatedFeatures {
                return LoginDiagnosis(
                    .serverSilent,
                    at: loginStep.name,
                    "the server sent its features again instead of an answer"
                )
            }
            if loginStep.later.received > 0 {
                return LoginDiagnosis(
                    .serverSilent,
                    at: loginStep.name,
                    "the server sent \(notes.lastAnswer.map { "<\($0)/>" } ?? "another element") instead of the expected answer"
                )
            }
            guard leaver == .server else {
                return LoginDiagnosis(
                    .serverSilent,
                    at: loginStep.name,
                    "the server did not answer\(waited(loginStep))"
                )
            }
            return LoginDiagnosis(
                .serverGone,
                at: loginStep.name,
                "the server closed the connection without a stream error"
            )
        }
        let went = isTimedOut || leaver == nil ? "stopped" : "disconnected"
        if leaver == .server, let found = diagnoseServerLeaving(loginStep) { return found }
        switch loginStep.name {
        case .startTLS:
            return LoginDiagnosis(
                notes.demandsTLS ? .legWithoutTLS : .tlsRequired,
                at: .startTLS,
                "\(notes.demandsTLS ? "xmpptap" : "the server") requires TLS, and the client \(went) without STARTTLS"
            )
        case .mechanism:
            return LoginDiagnosis(
                .noCommonMechanism,
                at: .mechanism,
                "the client \(went) without choosing a mechanism\(offered)"
            )
        case .bind:
            return LoginDiagnosis(.missingBind, at: .bind, "the client \(went) without binding a resource")
        case .sasl, .sasl2: return afterChallenge(loginStep.name, went)
        default:
            return LoginDiagnosis(.clientGaveUp, at: loginStep.name, "the client \(went) at \(loginStep.name.rawValue)")
        }
    }

    /// Returns the diagnosis of a server that closed the connection while the client had to continue.
    private func diagnoseServerLeaving(_ loginStep: LoginStep) -> LoginDiagnosis? {
        // A server may close a connection that has been idle for a long time.
        let isPatient = loginStep.duration >= Self.patience
        let missing: Prose =
            switch loginStep.name {
            case .startTLS: "the client started TLS"
            case .mechanism: "the client chose a mechanism"
            case .bind: "the client bound a resource"
            case .sasl, .sasl2: "the client answered its challenge"
            case .handshake: "the component sent its handshake"
            default: "the client continued"
            }
        let time = isPatient ? " \(waited(loginStep).dropFirst(5)) after its last element" : ""
        return LoginDiagnosis(
            .serverGone,
            at: loginStep.name,
            "the server closed the connection\(time) before \(missing)",
            side: isPatient ? .unknown : nil
        )
    }

    /// Returns the diagnosis of a server that sent no byte: its port may expect direct TLS.
    private func diagnoseSilentServer(_ loginStep: LoginStep) -> LoginDiagnosis {
        let isGone = leaver == .server
        var found = LoginDiagnosis(
            isGone ? .serverGone : .serverSilent,
            at: loginStep.name,
            isGone
                ? "the server closed the connection without sending a byte"
                : "the server did not send a byte\(waited(loginStep))",
            side: .network
        )
        found.rule = nil
        found.remedy = .tryOtherPort
        return found
    }

    private func waited(_ loginStep: LoginStep) -> String {
        // Rounded to the nearest second: a time limit of whole seconds may have begun before the step did.
        let seconds = (loginStep.duration + 500_000_000) / 1_000_000_000
        return seconds > 0 ? " for \(seconds) s" : ""
    }

    private var offered: String {
        guard !info.mechanisms.isEmpty else { return "" }
        let tls = notes.offer?.offersTLS == true ? "; TLS was offered but not used" : ""
        return " (offered: \(info.mechanisms.joined(separator: ", "))\(tls))"
    }

    /// Returns the diagnosis of a client that gave up after a challenge: it may have rejected the server's message or
    /// its signed values.
    private func afterChallenge(_ loginStep: LoginStep.Name, _ went: String) -> LoginDiagnosis {
        if let attempt,
            let diagnosis = diagnoseViolation(attempt, at: loginStep, attempt.isAborted ? "aborted it" : went)
        {
            return diagnosis
        }
        if let attempt, attempt.isAborted {
            return LoginDiagnosis(.clientAborted, at: loginStep, "the client aborted \(attempt.mechanism)")
        }
        // The challenge itself can contain the error (RFC 5802 §7).
        if var attempt, let error = attempt.serverError {
            attempt.condition = "not-authorized"
            var found = diagnose(attempt)
            found.condition = nil
            found.finding = "\(found.finding) (e=\(error))"
            return found
        }
        let plain: Prose = "the client \(went) after the server's challenge"
        if let cause = notes.bindingForecast?.cause, cause == .mechanismsAltered || cause == .tlsVersionAltered {
            let what = cause == .mechanismsAltered ? "mechanisms" : "TLS versions"
            return LoginDiagnosis(
                cause,
                at: loginStep,
                "\(plain), which signs \(what) that differ from those the client received"
            )
        }
        return LoginDiagnosis(.clientGaveUp, at: loginStep, plain)
    }

    /// Returns the diagnosis if no step failed and none was pending.
    func diagnoseWithoutFailedStep() -> LoginDiagnosis? {
        if let attempt, attempt.hasSucceeded, notes.offer == nil {
            if let diagnosis = diagnoseViolation(attempt, at: .sasl, "disconnected") { return diagnosis }
            if leaver == .server {
                return LoginDiagnosis(.serverGone, at: .sasl, "the server closed the connection after <success/>")
            }
            let suspicion = attempt.isSCRAM ? ": it may have rejected the server's signature (RFC 5802 §5, v=)" : ""
            return LoginDiagnosis(.clientGaveUp, at: .sasl, "the client disconnected after <success/>\(suspicion)")
        }
        if info.kind != .component, notes.hasServerHeader, notes.offer == nil,
            notes.serverVersion == nil || info.version == nil
        {
            let isOfServer = info.version != nil
            let who = isOfServer ? "the server's" : "the client's"
            return LoginDiagnosis(
                .versionMismatch,
                at: .streamOpen,
                "\(who) stream header has no version, so there are no stream features to continue with",
                side: isOfServer ? .server : .client
            )
        }
        if let offer = notes.offer, info.mechanisms.isEmpty, info.authentication == .none {
            let tls = offer.offersTLS ? "; TLS was offered but not used" : ""
            return LoginDiagnosis(
                offer.offersTLS ? .noCommonMechanism : .noMechanismOffered,
                at: .features,
                "the server offers no SASL mechanism\(tls)"
            )
        }
        if info.authentication == .succeeded, notes.offer?.offersBinding == false {
            let finding: Prose = "the server does not offer resource binding"
            var found = LoginDiagnosis(.missingBind, at: .bind, finding, side: .server)
            found.remedy = .offerBinding
            return found
        }
        guard leaver != nil else {
            return LoginDiagnosis(
                .clientGaveUp,
                at: reached,
                "no records of the session after \(reached.rawValue)"
            )
        }
        // Some clients verify the certificate after the handshake.
        if leaver == .client, reached == .tls, let trust = notes.trust {
            var diagnosis = LoginDiagnosis(
                .certificateNotAccepted,
                at: .tls,
                "the client disconnected right after the TLS handshake: it may not trust xmpptap's certificate"
            )
            diagnosis.remedy = trust
            return diagnosis
        }
        // A log may lack the items after the last step.
        guard !isLog else { return nil }
        let who = leaver == .server ? "server" : "client"
        return LoginDiagnosis(
            leaver == .server ? .serverGone : .clientGaveUp,
            at: reached,
            "the \(who) closed the connection after \(reached.rawValue) without a stream error"
        )
    }
}

extension StreamErrorCondition {
    /// The section of RFC 6120 that defines the condition. The sections and the cases are both in alphabetical order.
    fileprivate var section: String? {
        Self.allCases.firstIndex(of: self).map { "RFC 6120 §4.9.3.\($0 + 1)" }
    }
}

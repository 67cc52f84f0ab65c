internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Stream errors, and silence.
extension LoginDiagnoser {
    /// A stream error has ended it.
    func of(streamError name: String, _ direction: Direction) -> LoginDiagnosis? {
        // After a failure of SASL a server may end the stream in whatever terms (RFC 6120 §6.4.5).
        if let attempt, attempt.condition != nil, direction == .recv { return of(attempt) }
        if info.kind == .component, name == "not-authorized" {
            return LoginDiagnosis(
                .handshakeRefused,
                at: .handshake,
                "the server does not believe the component's secret",
                condition: name
            )
        }
        guard let condition = StreamErrorCondition(rawValue: name) else { return other(name, direction) }
        let who = direction == .recv ? "the server" : "the client"
        switch condition {
        case .hostUnknown, .hostGone:
            let words = "the server does not serve \(domain ?? "the domain that the client asks for")"
            return diagnosis(.hostUnknown, condition, words)
        case .seeOtherHost: return diagnosis(.seeOtherHost, condition, info.reason ?? "the client is sent elsewhere")
        case .resourceConstraint: return diagnosis(.resourceConstraint, condition, "\(who) has no room for the session")
        case .policyViolation:
            let words = info.reason.map { "\(who) forbids it: \($0)" } ?? "\(who) forbids it and does not say why"
            return diagnosis(.policyViolation, condition, words, side: blamed(by: direction))
        case .systemShutdown: return diagnosis(.systemShutdown, condition, "\(who) shuts down")
        case .conflict:
            return diagnosis(.conflict, condition, "another login has taken the resource", rule: "RFC 6120 §4.9.3.3")
        case .invalidNamespace, .badNamespacePrefix:
            let other = direction == .recv ? "client" : "server"
            return diagnosis(
                .namespaceMismatch,
                condition,
                "\(who) does not accept the namespace of the \(other)'s stream",
                side: blamed(by: direction)
            )
        case .unsupportedVersion:
            return diagnosis(
                .versionMismatch,
                condition,
                "\(who) does not speak the version of XMPP that the stream header names",
                side: blamed(by: direction)
            )
        case .connectionTimeout:
            if let awaited = steps.last(where: { $0.awaited != nil }) { return ofSilence(awaited) }
            return diagnosis(.clientGaveUp, condition, "\(who) waited in vain at \(reached.rawValue)")
        case .notAuthorized where isAuthenticated:
            return diagnosis(.missingBind, condition, "the client sends stanzas and has bound no resource")
        case .notWellFormed, .badFormat, .invalidXML, .restrictedXML, .unsupportedEncoding:
            let other = direction == .recv ? "client" : "server"
            let words = "\(who) cannot read the \(other)'s stream"
            return diagnosis(.malformedStream, condition, words, side: blamed(by: direction))
        default: return other(name, direction)
        }
    }

    private var isAuthenticated: Bool { info.authentication == .succeeded }

    private func blamed(by direction: Direction) -> LoginCause.Side { direction == .recv ? .client : .server }

    private func diagnosis(
        _ cause: LoginCause,
        _ condition: StreamErrorCondition,
        _ finding: String,
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
        return LoginDiagnosis(
            .streamError,
            at: reached,
            "\(who) ends the stream: \(name)",
            condition: name,
            side: blamed(by: direction),
            rule: StreamErrorCondition(rawValue: name)?.section
        )
    }

    // MARK: Silence

    /// Somebody had to go on and did not.
    func ofSilence(_ loginStep: LoginStep) -> LoginDiagnosis {
        guard loginStep.awaited == .client else {
            if loginStep.name == .streamOpen, info.received.bytes == 0, !steps.contains(where: { $0.name == .tls }) {
                return ofNoByte(loginStep)
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
                "the server closed the connection and did not say why"
            )
        }
        let went = isTimedOut || leaver == nil ? "did not go on" : "left"
        switch loginStep.name {
        case .startTLS:
            return LoginDiagnosis(
                notes.demandsTLS ? .legWithoutTLS : .tlsRequired,
                at: .startTLS,
                "\(notes.demandsTLS ? "xmpptap" : "the server") demands TLS, and the client \(went) without asking for it"
            )
        case .mechanism:
            return LoginDiagnosis(
                .noCommonMechanism,
                at: .mechanism,
                "the client \(went) without taking any mechanism\(offered)"
            )
        case .bind:
            return LoginDiagnosis(.missingBind, at: .bind, "the client \(went) without asking for a resource")
        case .sasl, .sasl2: return afterChallenge(loginStep.name, went)
        default:
            return LoginDiagnosis(.clientGaveUp, at: loginStep.name, "the client \(went) at \(loginStep.name.rawValue)")
        }
    }

    /// Not one byte has come from the server: perhaps it expects TLS, in which the rules of XMPP for a stream's end do not
    /// hold yet.
    private func ofNoByte(_ loginStep: LoginStep) -> LoginDiagnosis {
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
        found.advice =
            "look in the server's log; a port that expects TLS from the first byte looks like this to a client in clear text: "
            + "name its port for STARTTLS (usually 5222), or use --server-tls direct"
        return found
    }

    private func waited(_ loginStep: LoginStep) -> String {
        let seconds = loginStep.duration / 1_000_000_000
        return seconds > 0 ? " for \(seconds) s" : ""
    }

    private var offered: String {
        guard !info.mechanisms.isEmpty else { return "" }
        let tls = notes.offer?.offersTLS == true ? "; TLS was offered and not taken" : ""
        return " (offered: \(info.mechanisms.joined(separator: ", "))\(tls))"
    }

    /// The client had a challenge to answer and left: it does not like what the server's message says or signs.
    private func afterChallenge(_ loginStep: LoginStep.Name, _ went: String) -> LoginDiagnosis {
        if let attempt, let diagnosis = ofBreach(attempt, at: loginStep, attempt.isAborted ? "aborted it" : went) {
            return diagnosis
        }
        if let attempt, attempt.isAborted {
            return LoginDiagnosis(.clientAborted, at: loginStep, "the client aborted \(attempt.mechanism)")
        }
        let plain = "the client \(went) after the server's challenge"
        if let cause = notes.bindingForecast?.cause, cause == .mechanismsAltered || cause == .tlsVersionAltered {
            let what = cause == .mechanismsAltered ? "mechanisms" : "TLS version"
            return LoginDiagnosis(cause, at: loginStep, "\(plain), which signs another \(what) than the client sees")
        }
        return LoginDiagnosis(.clientGaveUp, at: loginStep, plain)
    }

    /// Nothing failed and nothing was under way.
    func ofNothing() -> LoginDiagnosis {
        if let attempt, attempt.hasSucceeded, notes.offer == nil {
            if let diagnosis = ofBreach(attempt, at: .sasl, "left") { return diagnosis }
            return LoginDiagnosis(
                .clientGaveUp,
                at: .sasl,
                "the client left after the server's success: it may not believe the server's own proof"
                    + (attempt.isSCRAM ? " (RFC 5802 §5, v=)" : "")
            )
        }
        if notes.hasServerHeader, notes.serverVersion == nil || info.version == nil, notes.offer == nil {
            let isOfServer = info.version != nil
            let who = isOfServer ? "the server's" : "the client's"
            return LoginDiagnosis(
                .versionMismatch,
                at: .streamOpen,
                "\(who) stream header has no version, so that no features follow, and the login went no further",
                side: isOfServer ? .server : .client
            )
        }
        if let offer = notes.offer, info.mechanisms.isEmpty, info.authentication == .none {
            let tls = offer.offersTLS ? "; TLS is offered and was not taken" : ""
            return LoginDiagnosis(
                .noCommonMechanism,
                at: .features,
                "the server offers no mechanism\(tls)",
                side: offer.offersTLS ? .client : .server
            )
        }
        if info.authentication == .succeeded, notes.offer?.offersBinding == false {
            return LoginDiagnosis(.missingBind, at: .bind, "the server offers no binding of resources", side: .server)
        }
        guard leaver != nil else {
            return LoginDiagnosis(
                .clientGaveUp,
                at: reached,
                "nothing is told of the session after \(reached.rawValue)"
            )
        }
        let who = leaver == .server ? "server" : "client"
        return LoginDiagnosis(
            leaver == .server ? .serverGone : .clientGaveUp,
            at: reached,
            "the \(who) closed the connection after \(reached.rawValue) and did not say why"
        )
    }
}

extension StreamErrorCondition {
    /// Where RFC 6120 defines it: in the order of the alphabet, as here.
    fileprivate var section: String? {
        Self.allCases.firstIndex(of: self).map { "RFC 6120 §4.9.3.\($0 + 1)" }
    }
}

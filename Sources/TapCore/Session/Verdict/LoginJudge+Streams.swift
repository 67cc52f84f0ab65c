import XMPPCore

// Stream errors, and silence.
extension LoginJudge {
    /// A stream error has ended it.
    func of(streamError name: String, _ direction: Direction) -> LoginVerdict? {
        // After a failure of SASL a server may end the stream in whatever terms (RFC 6120 §6.4.5).
        if let attempt, attempt.condition != nil, direction == .recv { return of(attempt) }
        if facts.kind == .component, name == "not-authorized" {
            return LoginVerdict(
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
            return verdict(.hostUnknown, condition, words)
        case .seeOtherHost: return verdict(.seeOtherHost, condition, facts.reason ?? "the client is sent elsewhere")
        case .resourceConstraint: return verdict(.resourceConstraint, condition, "\(who) has no room for the session")
        case .policyViolation:
            let words = facts.reason.map { "\(who) forbids it: \($0)" } ?? "\(who) forbids it and does not say why"
            return verdict(.policyViolation, condition, words, side: blamed(by: direction))
        case .systemShutdown: return verdict(.systemShutdown, condition, "\(who) shuts down")
        case .conflict:
            return verdict(.conflict, condition, "another login has taken the resource", rule: "RFC 6120 §4.9.3.3")
        case .invalidNamespace, .badNamespacePrefix:
            let other = direction == .recv ? "client" : "server"
            return verdict(
                .namespaceMismatch,
                condition,
                "\(who) does not accept the namespace of the \(other)'s stream",
                side: blamed(by: direction)
            )
        case .unsupportedVersion:
            return verdict(
                .versionMismatch,
                condition,
                "\(who) does not speak the version of XMPP that the stream header names",
                side: blamed(by: direction)
            )
        case .connectionTimeout:
            if let awaited = rungs.last(where: { $0.awaited != nil }) { return ofSilence(awaited) }
            return verdict(.clientGaveUp, condition, "\(who) waited in vain at \(reached.rawValue)")
        case .notAuthorized where isAuthenticated:
            return verdict(.missingBind, condition, "the client sends stanzas and has bound no resource")
        case .notWellFormed, .badFormat, .invalidXML, .restrictedXML, .unsupportedEncoding:
            let other = direction == .recv ? "client" : "server"
            let words = "\(who) cannot read the \(other)'s stream"
            return verdict(.malformedStream, condition, words, side: blamed(by: direction))
        default: return other(name, direction)
        }
    }

    private var isAuthenticated: Bool { facts.authentication == .succeeded }

    private func blamed(by direction: Direction) -> LoginCause.Side { direction == .recv ? .client : .server }

    private func verdict(
        _ cause: LoginCause,
        _ condition: StreamErrorCondition,
        _ finding: String,
        side: LoginCause.Side? = nil,
        rule: String? = nil
    ) -> LoginVerdict {
        LoginVerdict(
            cause,
            at: cause == .missingBind ? .bind : reached,
            finding,
            condition: condition.rawValue,
            side: side,
            rule: rule ?? (cause == .missingBind ? nil : condition.section)
        )
    }

    private func other(_ name: String, _ direction: Direction) -> LoginVerdict {
        let who = direction == .recv ? "the server" : "the client"
        return LoginVerdict(
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
    func ofSilence(_ rung: Rung) -> LoginVerdict {
        guard rung.awaited == .client else {
            if rung.name == .streamOpen, facts.received.bytes == 0, !rungs.contains(where: { $0.name == .tls }) {
                return ofNoByte(rung)
            }
            guard leaver == .server else {
                return LoginVerdict(.serverSilent, at: rung.name, "the server did not answer\(waited(rung))")
            }
            return LoginVerdict(.serverGone, at: rung.name, "the server closed the connection and did not say why")
        }
        let went = isTimedOut || leaver == nil ? "did not go on" : "left"
        switch rung.name {
        case .startTLS:
            return LoginVerdict(
                notes.demandsTLS ? .legWithoutTLS : .tlsRequired,
                at: .startTLS,
                "\(notes.demandsTLS ? "xmpptap" : "the server") demands TLS, and the client \(went) without asking for it"
            )
        case .mechanism:
            return LoginVerdict(
                .noCommonMechanism,
                at: .mechanism,
                "the client \(went) without taking any mechanism\(offered)"
            )
        case .bind:
            return LoginVerdict(.missingBind, at: .bind, "the client \(went) without asking for a resource")
        case .sasl, .sasl2: return afterChallenge(rung.name, went)
        default: return LoginVerdict(.clientGaveUp, at: rung.name, "the client \(went) at \(rung.name.rawValue)")
        }
    }

    /// Not one byte has come from the server: perhaps it expects TLS, in which the rules of XMPP for a stream's end do not
    /// hold yet.
    private func ofNoByte(_ rung: Rung) -> LoginVerdict {
        let isGone = leaver == .server
        var found = LoginVerdict(
            isGone ? .serverGone : .serverSilent,
            at: rung.name,
            isGone
                ? "the server closed the connection without sending a byte"
                : "the server did not send a byte\(waited(rung))",
            side: .network
        )
        found.rule = nil
        found.advice =
            "look in the server's log; a port that expects TLS from the first byte looks like this to a client in clear text: "
            + "name its port for STARTTLS (usually 5222), or use --server-tls direct"
        return found
    }

    private func waited(_ rung: Rung) -> String {
        let seconds = rung.duration / 1_000_000_000
        return seconds > 0 ? " for \(seconds) s" : ""
    }

    private var offered: String {
        guard !facts.mechanisms.isEmpty else { return "" }
        let tls = notes.offer?.offersTLS == true ? "; TLS was offered and not taken" : ""
        return " (offered: \(facts.mechanisms.joined(separator: ", "))\(tls))"
    }

    /// The client had a challenge to answer and left: it does not like what the server's message says or signs.
    private func afterChallenge(_ rung: Rung.Name, _ went: String) -> LoginVerdict {
        if let attempt, let verdict = ofBreach(attempt, at: rung, attempt.isAborted ? "aborted it" : went) {
            return verdict
        }
        if let attempt, attempt.isAborted {
            return LoginVerdict(.clientAborted, at: rung, "the client aborted \(attempt.mechanism)")
        }
        let plain = "the client \(went) after the server's challenge"
        if let cause = notes.bindingForecast?.cause, cause == .mechanismsAltered || cause == .tlsVersionAltered {
            let what = cause == .mechanismsAltered ? "mechanisms" : "TLS version"
            return LoginVerdict(cause, at: rung, "\(plain), which signs another \(what) than the client sees")
        }
        return LoginVerdict(.clientGaveUp, at: rung, plain)
    }

    /// Nothing failed and nothing was under way.
    func ofNothing() -> LoginVerdict {
        if let attempt, attempt.hasSucceeded, notes.offer == nil {
            if let verdict = ofBreach(attempt, at: .sasl, "left") { return verdict }
            return LoginVerdict(
                .clientGaveUp,
                at: .sasl,
                "the client left after the server's success: it may not believe the server's own proof"
                    + (attempt.isSCRAM ? " (RFC 5802 §5, v=)" : "")
            )
        }
        if notes.hasServerHeader, notes.serverVersion == nil || facts.version == nil, notes.offer == nil {
            let isOfServer = facts.version != nil
            let who = isOfServer ? "the server's" : "the client's"
            return LoginVerdict(
                .versionMismatch,
                at: .streamOpen,
                "\(who) stream header has no version, so that no features follow, and the login went no further",
                side: isOfServer ? .server : .client
            )
        }
        if let offer = notes.offer, facts.mechanisms.isEmpty, facts.authentication == .none {
            let tls = offer.offersTLS ? "; TLS is offered and was not taken" : ""
            return LoginVerdict(
                .noCommonMechanism,
                at: .features,
                "the server offers no mechanism\(tls)",
                side: offer.offersTLS ? .client : .server
            )
        }
        if facts.authentication == .succeeded, notes.offer?.offersBinding == false {
            return LoginVerdict(.missingBind, at: .bind, "the server offers no binding of resources", side: .server)
        }
        guard leaver != nil else {
            return LoginVerdict(.clientGaveUp, at: reached, "nothing is told of the session after \(reached.rawValue)")
        }
        let who = leaver == .server ? "server" : "client"
        return LoginVerdict(
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

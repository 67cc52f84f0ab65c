package import TapDiagnosis
package import TapRecord
import TapRules
import XMPPCore

// Why a login failed, reported once when the session ends.
extension Session {
    /// A cause that the driver knows and the streams do not show: a certificate that was not trusted, an
    /// alert of TLS. It is reported when the session ends, unless it became ready.
    ///
    /// - Parameters:
    ///   - cause: The cause.
    ///   - step: The step that failed.
    ///   - finding: A description for people, as a clause without secrets.
    ///   - side: The side at fault; nil for the table's side.
    ///   - condition: The code of the failure, if any.
    ///   - remedy: The remedy; nil for the usual one of the cause.
    package mutating func blame(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        remedy: Remedy? = nil
    ) {
        var diagnosis = LoginDiagnosis(cause, at: loginStep, Prose(finding), condition: condition, side: side)
        if let remedy { diagnosis.remedy = remedy }
        login?.observe(.blamed(diagnosis))
    }

    /// Warns of a password sent by PLAIN after a stronger mechanism failed: an attacker may have caused that failure.
    mutating func noteDowngrade() {
        guard info.mechanism == "PLAIN", let earlier = login?.failedSCRAM else { return }
        note(
            code: LoginCause.plainDowngrade.rawValue,
            "the client reveals its password by PLAIN after \(earlier.mechanism) failed "
                + "(\(earlier.condition ?? "aborted"))",
            direction: .send,
            part: .sasl
        )
    }

    /// The diagnosis of an ended session; nil if it became ready, or if it is unknown whether it failed.
    func diagnosis() -> LoginDiagnosis? {
        var diagnosis = judged()
        if options.isObserved, let found = diagnosis {
            diagnosis?.isProxyTheCause = nil
            // Such a recording does not show whether xmpptap took part.
            if found.side == .tap { diagnosis?.side = .network }
            switch found.remedy {
            case .useLocalPart, .removeLineBreaks, .removeDeclaration, .checkCredential, .compareLogs, .startTLS,
                .offerBinding:
                break
            default: diagnosis?.remedy = .observed(found.cause)
            }
        }
        // A recorded diagnosis has its own advice.
        if let remedy = diagnosis?.remedy, diagnosis?.advice == nil { diagnosis?.advice = options.advice?(remedy) }
        return diagnosis
    }

    private func judged() -> LoginDiagnosis? {
        guard info.opened == nil, info.ending != .stopped, let login, !login.hasVerified else { return nil }
        if let blamed = login.blamed { return blamed }
        // A partial recording allows no diagnosis.
        if let recording, recording.isPartial { return nil }
        let judge = LoginDiagnoser(
            info: info,
            steps: timeline.steps,
            notes: login,
            domain: info.domain.map { tools.redactor.disclose(address: $0) },
            isLog: options.isDecoded,
            isObserved: options.isObserved
        )
        let isUnreadable = context.directions.send.isUnreadable || context.directions.recv.isUnreadable
        return judge.diagnosis(isUnreadable: isUnreadable).map { attribute($0, to: login.acted) }
    }

    /// Attributes a failure to the action of a rule or the user on the login. A side's error condition takes
    /// precedence, unless the input of that side was changed.
    private func attribute(_ found: LoginDiagnosis, to acted: [Direction: LoginObserver.Deed]) -> LoginDiagnosis {
        guard found.side != .tap else { return found }
        var deeds = Direction.allCases.compactMap { acted[$0] }
        if found.condition != nil {
            var received = Direction.send
            if case .error(_, .send) = info.ending { received = .recv }
            deeds = [acted[received]].compactMap { $0 }.filter(\.isCertain)
        }
        if let deed = deeds.first(where: \.isCertain) {
            return LoginDiagnosis(
                .alteredByTap,
                at: found.loginStep,
                "\(deed.words); then: \(found.finding)",
                condition: found.condition
            )
        }
        guard let deed = deeds.first else { return found }
        // A delay may have had no effect.
        var delayed = found
        delayed.finding = "\(found.finding); before that, \(deed.words)"
        delayed.side = .unknown
        delayed.isProxyTheCause = nil
        delayed.remedy = .usual(.alteredByTap)
        return delayed
    }

    /// Stores the action of rules on an item of the login.
    mutating func noteActed(_ ruling: ItemRuling, _ event: StreamEvent, _ direction: Direction) {
        guard let login, !ruling.isWatched, info.opened == nil else { return }
        let verdict = ruling.verdict
        let deed: Prose
        var isCertain = true
        switch verdict.fate {
        case .pass where verdict.edited != nil: deed = "changed"
        case .pass:
            guard ruling.delays else { return }
            (deed, isCertain) = ("delayed", false)
        case .drop, .fault(.loseAck): deed = "dropped"
        case .fault: deed = "stopped"
        }
        let name = Self.shownName(context.directions.bytes(direction).slice(event.head.name))
        let rule = ruling.rule.map { "\($0)" } ?? "a rule"
        login.observe(
            .acted("\(rule) \(deed) \(name.map { "<\($0)/>" } ?? "an element")", direction, isCertain: isCertain)
        )
    }

    /// Counts an item of the login, and remembers the last element of the server.
    mutating func noteLoginItem(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        guard kind == .element || kind == .header else { return }
        timeline.count(direction)
        guard kind == .element, direction == .recv else { return }
        login?.observe(.answer(Self.shownName(context.directions.bytes(.recv).slice(event.head.name))))
        if negotiation.isBinding, info.kind == .client, [.message, .presence].contains(event.head.kind) {
            login?.observe(.established)
        }
    }

    /// The name of an element for a message; nil if it is long or not plain ASCII.
    private static func shownName(_ name: Span<UInt8>) -> String? {
        guard 1...32 ~= name.count else { return nil }
        var text = ""
        for index in name.indices {
            switch name[index] {
            case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, 0x2D: text.unicodeScalars.append(Unicode.Scalar(name[index]))
            default: return nil
            }
        }
        return text
    }

    mutating func noteDiagnosis() {
        guard options.level >= .error, let diagnosis = diagnosis() else { return }
        var record = context.makeRecord(.note, .error, part: diagnosis.loginStep.part)
        record.code = Record.Code.loginFailed
        record.condition = diagnosis.condition
        record.message = diagnosis.message
        record.details = diagnosis.details
        context.emit(consume record)
    }
}

extension DirectionRelay {
    /// Whether the stream continues undecoded: its outcome is unknown.
    fileprivate var isUnreadable: Bool {
        switch mode {
        case .opaque(.tls, _), .opaque(.compression, _): true
        default: false
        }
    }
}

// The forecast of channel binding, before the login ends (RFC 5802 §6).
extension Session {
    /// Asks which logins with channel binding a server of the domain has accepted, for the forecast.
    mutating func askAboutBindings() {
        if let domain = info.domain, login?.legs != nil { context.ask(.bindings(domain: domain)) }
    }

    /// Updates the forecast from the messages so far, and logs it if it changed.
    mutating func forecastBinding() {
        guard let login, let legs = login.legs, !info.mechanisms.isEmpty else { return }
        let attempt = login.attempts.last { $0.condition == nil }
        // Before the client has chosen: the forecast for the strongest offered mechanism.
        let strongest =
            info.mechanisms.first { $0.hasSuffix("-PLUS") } ?? info.mechanisms.first { $0.hasPrefix("SCRAM-") }
        guard let mechanism = attempt?.mechanism ?? strongest else { return }
        var subject = BindingForecast.Login(
            mechanism: mechanism,
            flag: attempt.flatMap { Self.flag(of: $0) },
            offered: info.mechanisms,
            bindings: login.offer?.bindings,
            clientTLS: legs.clientTLS,
            serverTLS: legs.serverTLS
        )
        subject.signsMechanisms = attempt?.signsMechanisms ?? false
        subject.signsTLSVersion = attempt?.signsTLSVersion ?? false
        subject.hasSameCertificate = legs.hasSameCertificate
        let forecast = BindingForecast(
            subject,
            negotiation.bridged?.bridge.isEnding == true ? .accounts : legs.strategy
        )
        guard forecast != login.bindingForecast else { return }
        let seen = forecast.cause.flatMap { login.bindingHistory[$0] }
        login.observe(.forecast(forecast, seen: seen))
        // Before the client has chosen, it may not matter.
        guard let attempt, attempt.bindingFlag != nil || !attempt.isSCRAM,
            let (level, words) = forecast.warning(seen: seen, options.advice)
        else { return }
        let remedy = SASLMechanism(mechanism) == .external ? Remedy.giveClientCertificate : nil
        note(.note, level, code: Record.Code.channelBinding, words, part: .sasl, remedy: remedy)
    }

    /// The server accepted or refused the login; the result is remembered for the next one.
    mutating func noteBindingOutcome(accepted: Bool) {
        if let forecast = login?.bindingForecast {
            counters.count(.predicted(forecast.strategy, verdict: forecast.outcome.name))
        }
        guard let login, let domain = info.domain, let cause = login.bindingForecast?.cause,
            let attempt = login.attempts.last, !attempt.isOwn, accepted || attempt.isRefusedForBinding
        else { return }
        login.observe(.history(login.bindingHistory.merging([cause: accepted]) { $1 }))
        context.ask(.bindingOutcome(domain: domain, cause, accepted: accepted))
    }

    private static func flag(of attempt: LoginObserver.Attempt) -> BindingForecast.Flag? {
        switch attempt.bindingFlag {
        case "n": BindingForecast.Flag.none
        case "y": .unsupportedByServer
        case "p": attempt.binding.map { .bound($0) }
        default: nil
        }
    }
}

extension LoginObserver.Attempt {
    /// Whether the server's answer shows that it refused the login because of channel binding.
    fileprivate var isRefusedForBinding: Bool {
        switch serverError {
        case "server-does-support-channel-binding", "channel-bindings-dont-match": return true
        default: break
        }
        return tells == .bindingMismatch || bindingFlag == "y" && condition == "malformed-request"
    }
}

extension BindingForecast {
    /// The message about it, after the client's choice; nil if there is nothing to report.
    ///
    /// - Parameter seen: Whether this server accepted such a login before; nil if unknown.
    func warning(seen: Bool?, _ advice: Advice?) -> (level: Level, words: Prose)? {
        switch outcome {
        case .works: return nil
        case .depends(let what): return (.info, "channel binding: the result depends on \(what): \(words)")
        case .fails(let cause):
            let rule = cause.entry.rule ?? "the standard"
            let hint = advice.map { "; try: \($0(.usual(cause)))" } ?? ""
            // The client compares the signed values (XEP-0474, XEP-0515).
            let duty =
                switch cause {
                case .mechanismsAltered, .tlsVersionAltered: "the client must abort this login"
                default: "the server must refuse this login"
                }
            switch seen {
            case true?: return nil
            case false?:
                return (
                    .warn,
                    "by \(rule), \(duty): \(words); this server has refused such a login before\(hint)"
                )
            case nil where isRisk:
                return (
                    .info,
                    "this login is at risk: \(rule) requires the server to refuse it (Prosody 0.12 does, ejabberd 23.01 "
                        + "does not): \(words)"
                )
            case nil: return (.warn, "by \(rule), \(duty): \(words)\(hint)")
            }
        }
    }
}

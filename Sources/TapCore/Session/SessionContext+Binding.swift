internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Forecasts the effect of channel binding, before the login ends (RFC 5802 §6).
extension SessionContext {
    /// Requests whether servers of the domain have accepted logins that must fail because of channel binding, for the
    /// forecast.
    mutating func askAboutBindings() {
        if let domain = info.domain, login?.legs != nil { requestShared(.bindings(domain: domain)) }
    }

    /// Updates the forecast from the messages so far, and logs it if it changed.
    mutating func forecastBinding() {
        // Servers use EXTERNAL with the certificate that xmpptap shows for them.
        guard let login, let legs = login.legs, !info.mechanisms.isEmpty, login.peer == nil else { return }
        let attempt = login.attempts.last { $0.condition == nil }
        // Before the client has chosen a mechanism, the forecast is for the strongest offered one.
        let strongest =
            info.mechanisms.first { $0.hasSuffix("-PLUS") }
            ?? info.mechanisms.first { $0.hasPrefix("SCRAM-") }
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
            negotiation.bridged?.performsLogin == true ? .accounts : legs.strategy
        )
        guard forecast != login.bindingForecast else { return }
        let seen = forecast.cause.flatMap { login.bindingHistory[$0] }
        login.observe(.forecast(forecast, seen: seen))
        // Before the client has chosen, the forecast may prove irrelevant, so nothing is logged.
        guard let attempt, attempt.bindingFlag != nil || !attempt.isSCRAM,
            let (level, message) = forecast.warning(seen: seen, options.advice)
        else { return }
        let remedy = SASLMechanism(mechanism) == .external ? Remedy.giveClientCertificate : nil
        report(.note, level, code: Record.Code.channelBinding, message, part: .sasl, remedy: remedy)
    }

    /// Stores whether the server accepted the login, for the forecasts of later logins.
    mutating func recordBindingOutcome(accepted: Bool) {
        if let forecast = login?.bindingForecast {
            counters.count(.predicted(forecast.strategy, verdict: forecast.outcome.name))
        }
        guard let login, let domain = info.domain, let cause = login.bindingForecast?.cause,
            let attempt = login.attempts.last, !attempt.isOwn, accepted || attempt.isRefusedForBinding
        else { return }
        login.observe(.history(login.bindingHistory.merging([cause: accepted]) { $1 }))
        requestShared(.bindingOutcome(domain: domain, cause, accepted: accepted))
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
        return namedCause == .bindingMismatch || bindingFlag == "y" && condition == "malformed-request"
    }
}

extension BindingForecast {
    /// Returns the message about the forecast, after the client's choice; nil if there is nothing to report.
    ///
    /// - Parameter seen: Whether this server has accepted a login that must fail for this cause; nil if unknown.
    func warning(seen: Bool?, _ advice: Advice?) -> (level: Level, message: Prose)? {
        switch outcome {
        case .works: return nil
        case .depends(let what): return (.info, "channel binding: the result depends on \(what): \(reason)")
        case .fails(let cause):
            let rule = cause.entry.rule ?? "the standard"
            let hint = advice.map { "; try: \($0(.usual(cause)))" } ?? ""
            // The client compares the signed values (XEP-0474, XEP-0515), so the client must abort.
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
                    "by \(rule), \(duty): \(reason); this server has refused such a login before\(hint)"
                )
            case nil where isRisk:
                return (
                    .info,
                    "this login is at risk: \(rule) requires the server to refuse it (Prosody 0.12 does, ejabberd 23.01 "
                        + "does not): \(reason)"
                )
            case nil: return (.warn, "by \(rule), \(duty): \(reason)\(hint)")
            }
        }
    }
}

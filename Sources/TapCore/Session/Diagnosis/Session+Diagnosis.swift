public import TapDiagnosis
public import TapRecord
import XMPPCore

// Why a session did not become ready, told once when it ends.
extension Session {
    /// What the driver knows of why a login fails, and the streams cannot show: a certificate that was not believed, an
    /// alert of TLS. It is told when the session ends, unless it became ready.
    ///
    /// - Parameters:
    ///   - cause: The cause.
    ///   - step: The step that failed.
    ///   - finding: What happened, as a clause for people, without a secret.
    ///   - side: Where the cause lies; nil is where it usually does.
    ///   - condition: The code of the failure; nil where it has none.
    ///   - advice: What to try; nil is what usually helps.
    public mutating func blame(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        advice: String? = nil
    ) {
        guard let login, login.blamed == nil else { return }
        var diagnosis = LoginDiagnosis(cause, at: loginStep, finding, condition: condition, side: side)
        if let advice { diagnosis.advice = advice }
        login.blamed = diagnosis
    }

    /// Takes what channel binding will come to on this session's legs, to judge a failure by.
    public mutating func expect(_ forecast: BindingForecast) { login?.bindingForecast = forecast }

    /// Warns of a password that is shown after a mechanism that hides it has failed: whoever made that fail has it now.
    mutating func noteDowngrade() {
        guard info.mechanism == "PLAIN", let earlier = login?.failedSCRAM else { return }
        note(
            .note,
            .warn,
            code: LoginCause.plainDowngrade.rawValue,
            "the client shows its password by PLAIN after \(earlier.mechanism) has failed "
                + "(\(earlier.condition ?? "aborted"))",
            direction: .send,
            part: .sasl
        )
    }

    /// The diagnosis of a session that has ended; nil where it became ready, or nobody can say that it failed.
    func diagnosis() -> LoginDiagnosis? {
        var diagnosis = judged()
        if options.isClientLog { diagnosis?.isProxyTheCause = nil }
        return diagnosis
    }

    private func judged() -> LoginDiagnosis? {
        guard info.opened == nil, !isVerifying, info.ending != .stopped, let login else { return nil }
        if let blamed = login.blamed { return blamed }
        let judge = LoginDiagnoser(
            info: info,
            steps: timeline.steps,
            notes: login,
            domain: info.domain.map { tools.redactor.disclose(address: $0) }
        )
        let isUnreadable = directions.send.isUnreadable || directions.recv.isUnreadable
        return judge.diagnosis(isUnreadable: isUnreadable)
    }

    /// Tells the diagnosis.
    mutating func noteDiagnosis() {
        guard options.level >= .error, let diagnosis = diagnosis() else { return }
        var record = makeRecord(.note, .error, part: diagnosis.loginStep.part)
        record.code = Record.Code.loginFailed
        record.condition = diagnosis.condition
        record.message = diagnosis.message
        record.details = diagnosis.details
        emit(consume record)
    }
}

extension DirectionRelay {
    /// Whether the stream goes on where nobody can read it: how it went there cannot be told.
    fileprivate var isUnreadable: Bool {
        switch mode {
        case .opaque(.tls, _), .opaque(.compression, _): true
        default: false
        }
    }
}

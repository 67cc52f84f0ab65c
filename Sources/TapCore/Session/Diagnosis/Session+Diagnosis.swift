public import TapDiagnosis
public import TapRecord
import XMPPCore

// Why a login failed, reported once when the session ends.
extension Session {
    /// A cause that the driver knows and the streams do not show: a certificate that was not trusted, an
    /// alert of TLS. It is reported when the session ends, unless it became ready.
    ///
    /// - Parameters:
    ///   - cause: The cause.
    ///   - step: The step that failed.
    ///   - finding: What happened, as a clause for people, without a secret.
    ///   - side: Where the cause is; nil for the table's side.
    ///   - condition: The code of the failure, if any.
    ///   - remedy: What to try; nil for what helps against the cause usually.
    public mutating func blame(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        remedy: Remedy? = nil
    ) {
        var diagnosis = LoginDiagnosis(cause, at: loginStep, finding, condition: condition, side: side)
        if let remedy { diagnosis.remedy = remedy }
        login?.observe(.blamed(diagnosis))
    }

    /// Warns of a password sent by PLAIN after a stronger mechanism failed: an attacker may have caused that failure.
    mutating func noteDowngrade() {
        guard info.mechanism == "PLAIN", let earlier = login?.failedSCRAM else { return }
        note(
            .note,
            .warn,
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
        if options.isClientLog { diagnosis?.isProxyTheCause = nil }
        // That of a recording has its own.
        if let remedy = diagnosis?.remedy, diagnosis?.advice == nil { diagnosis?.advice = options.advice?(remedy) }
        return diagnosis
    }

    private func judged() -> LoginDiagnosis? {
        guard info.opened == nil, info.ending != .stopped, let login, !login.hasVerified else { return nil }
        if let blamed = login.blamed { return blamed }
        // Who has not seen all of it cannot judge it.
        if let recording, recording.isPartial { return nil }
        let judge = LoginDiagnoser(
            info: info,
            steps: timeline.steps,
            notes: login,
            domain: info.domain.map { tools.redactor.disclose(address: $0) }
        )
        let isUnreadable = directions.send.isUnreadable || directions.recv.isUnreadable
        return judge.diagnosis(isUnreadable: isUnreadable)
    }

    /// Records the diagnosis.
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
    /// Whether the stream continues undecoded: its outcome is unknown.
    fileprivate var isUnreadable: Bool {
        switch mode {
        case .opaque(.tls, _), .opaque(.compression, _): true
        default: false
        }
    }
}

import XMPPCore

// Why a session did not become ready, told once when it ends.
extension Session {
    /// What the driver knows of why a login fails, and the streams cannot show: a certificate that was not believed, an
    /// alert of TLS. It is told when the session ends, unless it became ready.
    ///
    /// - Parameters:
    ///   - cause: The cause.
    ///   - rung: The rung that failed.
    ///   - finding: What happened, as a clause for people, without a secret.
    ///   - side: Where the cause lies; nil is where it usually does.
    ///   - condition: The code of the failure; nil where it has none.
    ///   - advice: What to try; nil is what usually helps.
    public mutating func blame(
        _ cause: LoginCause,
        at rung: Rung.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        advice: String? = nil
    ) {
        guard let login, login.blamed == nil else { return }
        var verdict = LoginVerdict(cause, at: rung, finding, condition: condition, side: side)
        if let advice { verdict.advice = advice }
        login.blamed = verdict
    }

    /// Takes what channel binding will come to on this session's legs, to judge a failure by.
    public mutating func expect(_ forecast: BindingForecast) { login?.bindingForecast = forecast }

    /// Warns of a password that is shown after a mechanism that hides it has failed: whoever made that fail has it now.
    mutating func noteDowngrade() {
        guard facts.mechanism == "PLAIN", let earlier = login?.failedSCRAM else { return }
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

    /// The verdict of a session that has ended; nil where it became ready, or nobody can say that it failed.
    func verdict() -> LoginVerdict? {
        var verdict = judged()
        if options.isClientLog { verdict?.isProxyTheCause = nil }
        return verdict
    }

    private func judged() -> LoginVerdict? {
        guard facts.opened == nil, !isVerifying, facts.ending != .stopped, let login else { return nil }
        if let blamed = login.blamed { return blamed }
        let judge = LoginJudge(
            facts: facts,
            rungs: ladder.rungs,
            notes: login,
            domain: facts.domain.map { tools.redactor.disclose(address: $0) }
        )
        let isUnreadable = pipes.send.isUnreadable || pipes.recv.isUnreadable
        return judge.verdict(isUnreadable: isUnreadable)
    }

    /// Tells the verdict.
    mutating func noteVerdict() {
        guard options.level >= .error, let verdict = verdict() else { return }
        var record = makeRecord(.note, .error, part: verdict.rung.part)
        record.code = LoginVerdict.code
        record.condition = verdict.condition
        record.message = verdict.message
        record.details = verdict.details
        emit(consume record)
    }
}

extension Pipe {
    /// Whether the stream goes on where nobody can read it: how it went there cannot be told.
    fileprivate var isUnreadable: Bool { mode == .opaque(.tls) || mode == .opaque(.compression) }
}

package import TapRecord

/// The diagnosis of a failed login: the record `login-failed`, and the output of `explain`.
package struct LoginDiagnosis: Sendable {
    /// The cause.
    package var cause: LoginCause
    /// The step that failed.
    package var loginStep: LoginStep.Name
    /// The side at fault.
    package var side: LoginCause.Side
    /// The RFC section or XEP that contains the broken rule, if any.
    package var rule: String?
    /// The domain of the server at fault, between servers.
    package var party: String?
    /// The certificates of both servers, each as a line, between servers.
    package var certificates: [String] = []
    /// Whether the login would have succeeded without xmpptap; nil if the recording does not show whether xmpptap was
    /// used.
    package var isProxyTheCause: Bool?
    /// The failure, as a human-readable clause.
    package var finding: Prose
    /// The key of the advice. A diagnosis read from a record has the usual advice for the cause.
    package var remedy: Remedy
    /// The advice as an imperative; nil if none was given.
    package var advice: String?
    /// The error condition, if any.
    package var condition: String?

    /// Creates a diagnosis with the table's values for the cause.
    ///
    /// - Parameters:
    ///   - side: The side at fault if it differs from the table.
    ///   - rule: The source of the rule if it differs from the table.
    package init(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: Prose,
        condition: String? = nil,
        side: LoginCause.Side? = nil,
        rule: String? = nil
    ) {
        let entry = cause.entry
        remedy = .usual(cause)
        self.cause = cause
        self.loginStep = loginStep
        self.side = side ?? entry.side
        self.rule = rule ?? entry.rule
        isProxyTheCause = self.side == .tap
        self.finding = finding
        self.condition = condition
    }

    /// The diagnosis as one line.
    package var message: Prose {
        let broken = rule.map { " (\($0))" } ?? ""
        let fault = isProxyTheCause.map { $0 ? "; xmpptap itself is the cause" : "; xmpptap is not the cause" } ?? ""
        let hint = advice.map { "; try: \($0)" } ?? ""
        return "the login failed at \(loginStep.rawValue): \(finding)\(broken)\(fault)\(hint)"
    }

    /// The diagnosis as typed details.
    package var details: Attributes {
        var details: Attributes = [
            Record.Detail.cause: .string(cause.rawValue), "step": .string(loginStep.rawValue),
            "side": .string(side.rawValue),
        ]
        details["rule"] = rule.map { .string($0) }
        details["proxy_is_cause"] = isProxyTheCause.map { .boolean($0) }
        details["party"] = party.map { .string($0) }
        if !certificates.isEmpty { details["certificates"] = .strings(certificates) }
        details[Record.Detail.finding] = .string("\(finding)")
        details[Record.Detail.advice] = advice.map { .string($0) }
        return details
    }

    /// Reads the diagnosis of a record; nil if it contains none.
    package init?(_ record: Record) {
        guard record.code == Record.Code.loginFailed, let details = record.details,
            let cause = (details[Record.Detail.cause]?.text).flatMap(LoginCause.init(rawValue:)),
            let loginStep = (details["step"]?.text).flatMap(LoginStep.Name.init(rawValue:)),
            let side = (details["side"]?.text).flatMap(LoginCause.Side.init(rawValue:))
        else { return nil }
        self.cause = cause
        self.loginStep = loginStep
        self.side = side
        rule = details["rule"]?.text
        party = details["party"]?.text
        if case .strings(let lines)? = details["certificates"] { certificates = lines }
        isProxyTheCause = details["proxy_is_cause"].map { $0 == true }
        finding = Prose(details[Record.Detail.finding]?.text ?? "")
        advice = details[Record.Detail.advice]?.text
        remedy = .usual(cause)
        condition = record.condition
    }
}

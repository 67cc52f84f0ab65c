public import TapRecord

/// Why a login failed: the record `login-failed`, and what `explain` prints.
public struct LoginDiagnosis: Sendable {
    /// The cause.
    public var cause: LoginCause
    /// The step on which it failed.
    public var loginStep: LoginStep.Name
    /// Where the cause is.
    public var side: LoginCause.Side
    /// The RFC section or XEP with the broken rule, if any.
    public var rule: String?
    /// Whether the login would have succeeded without xmpptap in between; nil if the recording does not show whether it was.
    public var isProxyTheCause: Bool?
    /// What happened, as a clause for people.
    public var finding: Prose
    /// What to try, as a key. Of a diagnosis that is read from a record, the usual one.
    public var remedy: Remedy
    /// What to try, as an imperative; nil where nobody has said.
    public var advice: String?
    /// The error condition, if any.
    public var condition: String?

    /// A diagnosis with the table's values for the cause.
    ///
    /// - Parameter side: Where it lies elsewhere than usually.
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

    /// The diagnosis in one line.
    public var message: Prose {
        let broken = rule.map { " (\($0))" } ?? ""
        let fault = isProxyTheCause.map { $0 ? "; xmpptap itself is the cause" : "; xmpptap is not the cause" } ?? ""
        let hint = advice.map { "; try: \($0)" } ?? ""
        return "the login failed at \(loginStep.rawValue): \(finding)\(broken)\(fault)\(hint)"
    }

    /// The diagnosis as typed details.
    public var details: Attributes {
        var details: Attributes = [
            Record.Detail.cause: .string(cause.rawValue), "step": .string(loginStep.rawValue),
            "side": .string(side.rawValue),
        ]
        details["rule"] = rule.map { .string($0) }
        details["proxy_is_cause"] = isProxyTheCause.map { .boolean($0) }
        details[Record.Detail.finding] = .string("\(finding)")
        details[Record.Detail.advice] = advice.map { .string($0) }
        return details
    }

    /// Reads the diagnosis from a record; nil if it has none.
    public init?(_ record: Record) {
        guard record.code == Record.Code.loginFailed, let details = record.details,
            let cause = (details[Record.Detail.cause]?.text).flatMap(LoginCause.init(rawValue:)),
            let loginStep = (details["step"]?.text).flatMap(LoginStep.Name.init(rawValue:)),
            let side = (details["side"]?.text).flatMap(LoginCause.Side.init(rawValue:))
        else { return nil }
        self.cause = cause
        self.loginStep = loginStep
        self.side = side
        rule = details["rule"]?.text
        isProxyTheCause = details["proxy_is_cause"].map { $0 == true }
        finding = Prose(details[Record.Detail.finding]?.text ?? "")
        advice = details[Record.Detail.advice]?.text
        remedy = .usual(cause)
        condition = record.condition
    }
}

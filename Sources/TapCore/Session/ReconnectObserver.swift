internal import TapRecord

/// Reports clients whose sessions repeatedly drop soon after login, or whose logins repeatedly fail.
struct ReconnectObserver {
    /// The key of the client within its account; nil before the login.
    private(set) var client: ReconnectWatch.Key?

    /// Stores the key of the client of an open session.
    mutating func identify(_ login: LoginObserver?, _ context: borrowing SessionContext) {
        guard context.info.kind == .client, client == nil, let account = context.info.jid else { return }
        client =
            ReconnectWatch.Client(
                account: account,
                resource: login?.requestedResource,
                agent: login?.agent,
                remote: context.remote
            ).key
    }

    /// Takes over the client's key from the resumed session.
    mutating func resume(_ client: ReconnectWatch.Key?) { self.client = client }

    /// Asks the shared state whether an ended session that failed to log in, or dropped soon after its login, is part
    /// of a loop; returns false if the session ended in another way.
    func askAboutLoop(_ context: inout SessionContext) -> Bool {
        if let opened = context.info.opened {
            guard let client, context.info.isDropped,
                context.now.monotonic - opened.monotonic <= ReconnectWatch.soon
            else { return false }
            context.requestShared(.dropped(client))
        } else {
            guard case .failed = context.info.authentication, let user = context.info.user else { return false }
            let account = user.contains("@") ? user : "\(user)@\(context.info.domain ?? "")"
            context.requestShared(.loginFailed(ReconnectWatch.Client(account: account, remote: context.remote).key))
        }
        return true
    }

    /// Records a loop of `count` drops or failed logins within `span` nanoseconds.
    func recordLoop(_ count: Int, _ span: Int64, _ context: inout SessionContext) {
        if case .failed(let condition) = context.info.authentication, context.info.opened == nil {
            return context.report(
                code: Record.Code.loginLoop,
                "login loop: \(count) logins of this account from this address failed in \(Self.format(span)); the "
                    + "last condition: \(condition)",
                part: .sasl
            )
        }
        let advice = context.info.closeReason == .conflict ? "; configure a different resource for each client" : ""
        context.report(
            code: Record.Code.reconnectLoop,
            "reconnect loop: \(count) sessions of this client dropped within \(ReconnectWatch.soon / 1_000_000_000) s of "
                + "login, in \(Self.format(span)); the last one: \(context.info.endingDescription)\(advice)"
        )
    }

    private static func format(_ span: Int64) -> String {
        span < 1_000_000_000 ? "less than a second" : "\(span / 1_000_000_000) s"
    }
}

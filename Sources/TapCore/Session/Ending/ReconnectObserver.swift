internal import TapRecord

/// Reports clients whose sessions repeatedly drop soon after login, or whose logins repeatedly fail.
struct ReconnectObserver {
    /// Identifies the client within its account; nil before the login.
    private(set) var client: ReconnectWatch.Key?

    /// Identifies the client of an open session.
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

    /// The session continues one of this client.
    mutating func resume(_ client: ReconnectWatch.Key?) { self.client = client }

    /// Counts an ended session that failed to log in, or was dropped soon after its login; records a loop.
    func observeEnd(_ context: inout SessionContext) {
        observeDrop(&context)
        observeFailedLogin(&context)
    }

    private func observeFailedLogin(_ context: inout SessionContext) {
        let info = context.info
        guard info.opened == nil, case .failed(let condition) = info.authentication, let user = info.user else {
            return
        }
        let client = ReconnectWatch.Client(
            account: user.contains("@") ? user : "\(user)@\(info.domain ?? "")",
            remote: context.remote
        )
        guard let loop = context.run.failedLogins.noteDrop(of: client.key, at: context.now.monotonic) else { return }
        context.note(
            code: Record.Code.loginLoop,
            "login loop: \(loop.count) logins of this account from this address failed in \(Self.format(loop.span)); the "
                + "last condition: \(condition)",
            part: .sasl
        )
    }

    private func observeDrop(_ context: inout SessionContext) {
        guard let client, let opened = context.info.opened, context.info.isDropped,
            context.now.monotonic - opened.monotonic <= ReconnectWatch.soon,
            let loop = context.run.reconnects.noteDrop(of: client, at: context.now.monotonic)
        else { return }
        let advice = context.info.closeReason == .conflict ? "; configure a different resource for each client" : ""
        context.note(
            code: Record.Code.reconnectLoop,
            "reconnect loop: \(loop.count) sessions of this client dropped within \(ReconnectWatch.soon / 1_000_000_000) s of "
                + "login, in \(Self.format(loop.span)); the last one: \(context.info.endingWords)\(advice)"
        )
    }

    private static func format(_ span: Int64) -> String {
        span < 1_000_000_000 ? "less than a second" : "\(span / 1_000_000_000) s"
    }
}

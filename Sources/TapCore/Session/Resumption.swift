internal import TapRecord
import XMPPCore

/// The place of a session among those that can be resumed (XEP-0198 §5): its own, and what it has from the session that
/// it continues.
struct Resumption {
    /// The key by which the session can be resumed.
    private var key: ResumptionTable.Key?
    /// The counts of the sessions that it continues; nil if there are none.
    private var earlierCounts: EarlierCounts?
    /// The place for the state of the session that it continues; nil if that is already taken.
    private var inheritance: Inheritance?

    /// Whether the session can be resumed.
    var isResumable: Bool { key != nil }

    /// The counts of a session and of those that it continues.
    func allCounts(_ info: SessionInfo) -> EarlierCounts {
        guard let earlierCounts else { return EarlierCounts(info.sent, info.received) }
        return EarlierCounts(info.sent + earlierCounts.sent, info.received + earlierCounts.received)
    }

    // MARK: The session's own place

    /// The server has enabled stream management: if the session is resumable, adds it to the table.
    mutating func enable(_ enabled: Element, _ client: ReconnectWatch.Key?, _ context: inout SessionContext) {
        guard enabled.matches("enabled", .streamManagement) || enabled.matches("enabled", .streamManagement2),
            let id = enabled.attribute("id"), !id.isEmpty, let jid = context.info.jid
        else { return }
        let table = context.run.resumptions
        if let key { table.end(key, of: context.number) }
        let owner =
            Self.account(context.info.user, context.info) ?? Self.domain(context.info)
            ?? Address(jid).comparableBare
        let key = table.key(id: id, account: owner)
        self.key = key
        table.enable(
            key,
            ResumptionTable.Suspended(jid: jid, session: context.number, client: client),
            seconds: enabled.attribute("max").flatMap { Int64($0) }
        )
        if context.outlet.hasDiverged { diverge(&context) }
    }

    /// The ends begin to count differently: after a restart of xmpptap the session cannot be resumed.
    func diverge(_ context: inout SessionContext) {
        guard let key, let mark = context.run.resumptions.diverge(key, of: context.number) else { return }
        context.outlet.request(.addToJournal(mark))
    }

    /// Warns if the server names another host for resumption (XEP-0198 §3, XEP-0397 §5): the client would bypass
    /// xmpptap. The record omits the host, which can be a secret.
    func observeLocation(_ enabled: Element, _ context: inout SessionContext) {
        let isPlace = enabled.isNamed("enabled") && enabled.namespace == .streamManagement
        guard isPlace, context.edited == nil,
            ([enabled] + enabled.children).contains(where: { $0.attribute("location") != nil })
        else { return }
        context.outlet.streamManagement?.noteOtherPlace()
        guard !context.options.isObserved else { return }
        context.note(
            code: "other-location",
            "the server names another host for resumption; a client that resumes there will bypass xmpptap",
            direction: .recv
        )
    }

    /// Ends or suspends the session in the table. A session whose stream was closed properly cannot be resumed.
    ///
    /// - Parameters:
    ///   - roster: Its contacts, which are read only if another session may continue it.
    ///   - injections: Its unsent stanzas of rules are left to the next connection.
    mutating func end(
        _ roster: inout RosterObserver,
        _ injections: Injections?,
        _ context: inout SessionContext
    ) {
        guard let key else { return }
        self.key = nil
        let table = context.run.resumptions
        let counts = allCounts(context.info)
        if let inheritance = table.inheritance(key, of: context.number) {
            return inheritance.leave(SessionLegacy(roster: roster.read(context), counts: counts, rules: nil))
        }
        if case .clean? = context.info.ending { return table.end(key, of: context.number) }
        for direction in Direction.allCases {
            let streamManagement = context.outlet.streamManagement
            injections?.removeUnsent(direction) { streamManagement?.keep(lost: $0, direction) == true }
        }
        let ledgers = context.outlet.streamManagement?.legacy
        let memory = context.rules?.memory(ledgers)
        let legacy = SessionLegacy(roster: roster.read(context), counts: counts, rules: memory)
        table.suspend(key, of: context.number, at: context.now.monotonic, leaving: ledgers, legacy: legacy)
    }

    // MARK: The session that it continues

    /// The server has resumed an earlier session: takes the state of that, without what it still owns; nil if it is
    /// unknown.
    ///
    /// - Parameter identifier: The address in the SASL2 success, if any.
    mutating func resume(
        _ resumed: Element?,
        identifier: String?,
        _ context: inout SessionContext
    ) -> ResumptionTable.Suspended? {
        guard let id = resumed?.attribute("previd") else { return nil }
        let account = Self.account(context.info.user, context.info)
        for case let owner? in [account ?? identifier.map { Address($0).comparableBare }, Self.domain(context.info)] {
            let table = context.run.resumptions
            let key = table.key(id: id, account: owner)
            guard let earlier = table.resume(key, by: context.number, at: context.now.monotonic) else { continue }
            self.key = key
            if context.outlet.hasDiverged { diverge(&context) }
            inheritance = earlier.inheritance
            if let legacy = earlier.legacy { earlierCounts = legacy.counts }
            return earlier
        }
        return nil
    }

    /// Takes the state of the session that this one continues, if it has been left since.
    mutating func takeInheritance(_ context: borrowing SessionContext) -> SessionLegacy? {
        guard let inheritance else { return nil }
        context.run.awaitTurn()
        guard let legacy = inheritance.take() else { return nil }
        earlierCounts = legacy.counts
        self.inheritance = nil
        return legacy
    }

    /// Returns the counts of the session that the client's last item requests to resume.
    ///
    /// - Parameter user: The client's user name.
    static func claim(user: String?, _ context: borrowing SessionContext) -> ResumptionTable.Claim {
        guard let id = StreamManagementTranslator.resumedID(context.directions.send.decoder) else { return .unknown }
        var unlisted: [[UInt8]] = []
        for case let owner? in [account(user, context.info), domain(context.info)] {
            let table = context.run.resumptions
            let key = table.key(id: id, account: owner)
            switch table.claim(key, by: context.number, at: context.now.monotonic) {
            case .unknown: continue
            case .unlisted(let marks): unlisted += marks
            case .ready(let ledgers): return .ready(ledgers)
            case .connected(let session): return .connected(session: session)
            case .lost: return .lost
            }
        }
        return unlisted.isEmpty ? .unknown : .unlisted(marks: unlisted)
    }

    /// Returns the bare account of `user` in its form for comparison; nil for a login without a name.
    private static func account(_ user: String?, _ info: SessionInfo) -> String? {
        guard let user, let domain = info.domain else { return nil }
        return Address(user.utf8.contains(0x40) ? user : "\(user)@\(domain)").comparableBare
    }

    /// The key of an account without a name in its login, as with EXTERNAL: its domain. The server has checked that the
    /// id belongs to the account.
    private static func domain(_ info: SessionInfo) -> String? {
        info.domain.map { Address($0).comparableBare }
    }
}

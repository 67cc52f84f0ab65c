internal import TapRecord
import TapRules
import XMPPCore

/// The key by which a session can be resumed (XEP-0198 §5), and the counts of the sessions that it resumes.
struct Resumption {
    /// The key by which the session can be resumed; nil if it cannot.
    private var key: ResumptionTable.Key?
    /// The counts of the earlier sessions that this one resumes; nil if there are none.
    private var earlierCounts: EarlierCounts?
    /// Whether the session's resource is not known, because xmpptap did not relay its binding.
    private(set) var lacksResource = false

    /// Whether the session can be resumed.
    var isResumable: Bool { key != nil }

    /// Returns the counts of the session and of the earlier sessions that it resumes.
    func allCounts(_ info: SessionInfo) -> EarlierCounts {
        guard let earlierCounts else { return EarlierCounts(info.sent, info.received) }
        return EarlierCounts(info.sent + earlierCounts.sent, info.received + earlierCounts.received)
    }

    // MARK: The session's own place

    /// Adds the session to the table if it is resumable, because the server has enabled stream management.
    mutating func enable(_ enabled: Element, _ client: ReconnectWatch.Key?, _ context: inout SessionContext) {
        // The driver of BOSH cannot end the session for another one, and changes no counts.
        guard !context.options.isBOSH else { return }
        guard enabled.matches("enabled", .streamManagement) || enabled.matches("enabled", .streamManagement2),
            let id = enabled.attribute("id"), !id.isEmpty, let jid = context.info.jid
        else { return }
        let key = context.run.resumptionKey(id: id, account: Self.owner(context) ?? Address(jid).comparableBare)
        context.requestShared(
            .enable(
                key,
                ResumptionTable.Suspended(jid: jid, session: context.number, client: client),
                seconds: enabled.attribute("max").flatMap { Int64($0) },
                instead: self.key
            )
        )
        self.key = key
        if context.outlet.hasDiverged { diverge(&context) }
    }

    /// Marks the session as diverged: after a restart of xmpptap, its counts are lost, and it cannot be resumed.
    private func diverge(_ context: inout SessionContext) { if let key { context.requestShared(.diverge(key)) } }

    /// After the counts have diverged, stores and forwards both directions until the session ends, because each
    /// acknowledgement must be decided on before it is forwarded. A partly forwarded acknowledgement is still correct:
    /// it counts earlier stanzas.
    func followDivergence(_ context: inout SessionContext) {
        guard context.outlet.detectDivergence() else { return }
        diverge(&context)
        for direction in Direction.allCases { context.storeAndForward(direction) }
        guard context.streamManagement?.namesOtherHost == true else { return }
        context.report(
            .note,
            .warn,
            code: "other-location",
            "stanzas were injected or dropped; the session can be resumed only through xmpptap, "
                + "not at the other host that the server has named",
            direction: .recv
        )
    }

    /// Warns if the server names another host for resumption (XEP-0198 §3, XEP-0397 §5), because the client would
    /// bypass xmpptap there. The record omits the host, which may be secret.
    func observeLocation(_ enabled: Element, _ context: inout SessionContext) {
        let isPlace = enabled.isNamed("enabled") && enabled.namespace == .streamManagement
        guard isPlace, context.edited == nil,
            ([enabled] + enabled.children).contains(where: { $0.attribute("location") != nil })
        else { return }
        context.outlet.streamManagement?.setOtherHost()
        guard !context.options.isObserved else { return }
        context.report(
            code: "other-location",
            "the server names another host for resumption; a client that resumes there will bypass xmpptap",
            direction: .recv
        )
    }

    /// Ends or suspends the session in the table. A session whose stream was closed properly cannot be resumed.
    ///
    /// - Parameters:
    ///   - roster: The session's contacts.
    ///   - requests: The injected requests whose answers must not be forwarded; nil if there are none.
    mutating func end(_ roster: Roster, _ requests: IQTracker?, isClosed: Bool, _ context: inout SessionContext) {
        guard let key else { return }
        self.key = nil
        let ledgers = context.outlet.streamManagement?.legacy
        let legacy = TransferredState(
            jid: context.info.jid,
            roster: roster,
            counts: allCounts(context.info),
            rules: context.rules?.memory(ledgers),
            requests: requests
        )
        context.requestTransfer(.end(key, isClosed: isClosed, ledgers, legacy))
    }

    // MARK: The session that it continues

    /// Returns the possible keys of the session with this resumption id; `user` is the client's user name.
    ///
    /// - Parameter identifier: The authorization identifier in the SASL2 success, if any.
    static func keys(
        _ id: String?,
        user: String?,
        identifier: String? = nil,
        _ context: borrowing SessionContext
    ) -> [ResumptionTable.Key] {
        guard let id else { return [] }
        let owner = account(user, context.info) ?? identifier.map { Address($0).comparableBare }
        return [owner, domain(context.info)].compactMap { owner in
            owner.map { context.run.resumptionKey(id: id, account: $0) }
        }
    }

    /// Requests the state of the session that the server has resumed; returns false if the id of that session is
    /// missing.
    ///
    /// - Parameter identifier: The authorization identifier in the SASL2 success, if any.
    func ask(
        _ resumed: Element?,
        _ identifier: String?,
        _ client: ReconnectWatch.Key?,
        _ context: inout SessionContext
    ) -> Bool {
        // Nothing can be injected into BOSH, such as the stanzas that the earlier session has left.
        guard !context.options.isBOSH else { return false }
        let id = resumed?.attribute("previd")
        let keys = Self.keys(id, user: context.info.user, identifier: identifier, context)
        guard let id, !keys.isEmpty else { return false }
        // The key by which the next connection will look for the session, before the server has named the account.
        let key = Self.owner(context).map { context.run.resumptionKey(id: id, account: $0) }
        let jid = context.info.jid ?? context.info.account
        let content = ResumptionTable.Suspended(jid: jid, session: context.number, client: client)
        context.requestShared(.resume(keys, new: key, content))
        return true
    }

    /// Takes over the state of the earlier session, which is nil if xmpptap does not know it; returns a message for the
    /// log.
    ///
    /// A session that began elsewhere, such as at another xmpptap, has the address of its login's account: a server resumes
    /// only sessions of the authenticated account (XEP-0198 §5).
    mutating func resume(
        _ earlier: ResumptionTable.Suspended?,
        by key: ResumptionTable.Key?,
        _ injector: inout Injector,
        _ context: inout SessionContext
    ) -> String {
        self.key = key
        context.info.jid = earlier?.jid ?? context.info.jid ?? context.info.account
        lacksResource = context.info.jid.map { Address($0).resource == nil } ?? false
        if context.outlet.hasDiverged { diverge(&context) }
        guard let earlier else { return "resumed a session that xmpptap has no record of" }
        if let legacy = earlier.legacy {
            earlierCounts = legacy.counts
            if let rules = context.rules, let memory = legacy.rules { rules.resume(memory) }
            injector.inherit(legacy.requests, &context)
        }
        return "resumed session \(earlier.session)"
    }

    /// Takes the resource from the address to which the server delivers an IQ.
    ///
    /// A message can have the address of another resource, because servers deliver messages for absent resources to
    /// those present, but IQs only to their own (RFC 6121 §8.5.3.2).
    mutating func observeResource(_ event: StreamEvent, _ context: inout SessionContext) {
        guard event.head.kind == .iq, let to = context.text(event.head.to, .recv), let jid = context.info.jid else {
            return
        }
        let address = Address(to)
        guard address.resource != nil, address.comparableBare == Address(jid).comparableBare else { return }
        context.info.jid = to
        lacksResource = false
    }

    /// Takes over the counts and the injected requests of the resumed session after it has ended, and its address if this
    /// one lacks the resource.
    mutating func inherit(_ state: TransferredState, _ injector: inout Injector, _ context: inout SessionContext) {
        earlierCounts = state.counts
        injector.inherit(state.requests, &context)
        guard lacksResource, let jid = state.jid, Address(jid).resource != nil else { return }
        context.info.jid = jid
        lacksResource = false
    }

    /// Returns the owner of the session in its key; nil if the login contains neither a name nor a domain.
    private static func owner(_ context: borrowing SessionContext) -> String? {
        account(context.info.user, context.info) ?? domain(context.info)
    }

    /// Returns the bare JID of `user`, normalized for comparison; nil for a login without a name.
    private static func account(_ user: String?, _ info: SessionInfo) -> String? {
        guard let user, let domain = info.domain else { return nil }
        return Address(user.utf8.contains(0x40) ? user : "\(user)@\(domain)").comparableBare
    }

    /// Returns the domain, as the owner in the key if the login contains no user name, as with EXTERNAL. The server has
    /// checked that the id belongs to the account.
    private static func domain(_ info: SessionInfo) -> String? {
        info.domain.map { Address($0).comparableBare }
    }
}

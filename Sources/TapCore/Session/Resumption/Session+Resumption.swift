import XMPPCore

// Sessions that can be resumed, and those that are (XEP-0198 §5).
extension Session {
    /// The server has enabled stream management: if the session can be resumed, the one that does is to be known.
    mutating func noteResumable(_ enabled: Element) {
        guard enabled.matches("enabled", .streamManagement) || enabled.matches("enabled", .streamManagement2),
            let id = enabled.attribute("id"), !id.isEmpty, let jid = info.jid
        else { return }
        endResumption(isOver: true)
        let owner = loginAccount ?? loginDomain ?? Address(jid).comparableBare
        let key = run.resumptions.key(id: id, account: owner)
        resumption = key
        run.resumptions.enable(
            key,
            ResumptionTable.Suspended(jid: jid, session: number, client: client),
            seconds: enabled.attribute("max").flatMap { Int64($0) }
        )
    }

    /// The server has resumed an earlier session: this one has its address.
    ///
    /// - Parameter identifier: The address that SASL2 has given, if any.
    mutating func resume(_ resumed: Element?, _ event: StreamEvent, identifier: String? = nil) {
        var earlier: ResumptionTable.Suspended?
        if let id = resumed?.attribute("previd") {
            let owners = [loginAccount ?? identifier.map { Address($0).comparableBare }, loginDomain]
            for owner in owners where earlier == nil {
                guard let owner else { continue }
                let key = run.resumptions.key(id: id, account: owner)
                earlier = run.resumptions.resume(key, by: number, at: now.monotonic)
                if earlier != nil { resumption = key }
            }
        }
        if let earlier {
            info.jid = earlier.jid
            client = earlier.client
        }
        let words =
            earlier.map { "resumed session \($0.session)" }
            ?? "resumed a session that xmpptap has no record of"
        becomeOpen(event, words, resumes: earlier?.session)
    }

    /// The session has ended. One whose stream was closed in order cannot be resumed.
    mutating func endResumption(isOver: Bool) {
        guard let key = resumption else { return }
        resumption = nil
        if isOver {
            run.resumptions.end(key, of: number)
        } else {
            run.resumptions.suspend(key, of: number, at: now.monotonic)
        }
    }

    /// The bare account that has logged in, as it is compared; nil where its login has told no name.
    private var loginAccount: String? {
        guard let user = info.user, let domain = info.domain else { return nil }
        return Address(user.utf8.contains(0x40) ? user : "\(user)@\(domain)").comparableBare
    }

    /// Stands for an account whose login has told no name, as EXTERNAL may: its domain. That the id is the account's own the
    /// server has checked.
    private var loginDomain: String? { info.domain.map { Address($0).comparableBare } }
}

internal import TapDiagnosis
internal import XMPPCore

/// Rosters (RFC 6121 §2).
extension ServerDirectory {
    /// The roster of the sender's account; from now on its connection gets pushes.
    func getRoster(_ sender: ServerSender) -> IQAnswer {
        let account = sender.jid.bare
        if let index = index(of: sender.connection, sender.jid) {
            accounts[account]?.resources[index].wantsPushes = true
        }
        let items = (accounts[account]?.roster.values.filter(\.isListed) ?? []).sorted { $0.jid < $1.jid }
        return .result {
            $0.element("query", .roster) { for item in items { item.write(to: &$0) } }
        }
    }

    /// Adds, changes or removes one contact (RFC 6121 §2.1.5, §2.3 to §2.5).
    func setRoster(_ payload: Element, _ sender: ServerSender) -> IQAnswer {
        let account = sender.jid.bare
        guard let item = payload.child("item", .roster), payload.children.count == 1,
            let text = item.attribute("jid")
        else { return .error(.badRequest) }
        guard let contact = Address(text).jid?.bare else { return .error(.jidMalformed) }
        guard contact != account else { return .error(.notAllowed) }
        if item.attribute("subscription") == "remove" {
            guard accounts[account]?.roster[contact]?.isListed == true else { return .error(.itemNotFound) }
            removeContact(contact, of: account)
            return .result()
        }
        let groups = item.children("group", .roster).map(\.text)
        guard !groups.contains("") else { return .error(.notAcceptable) }
        guard Set(groups).count == groups.count else { return .error(.badRequest) }
        let isNew = accounts[account]?.roster[contact] == nil
        guard !isNew || accounts[account]?.roster.count ?? 0 < settings.rosterLimit else {
            return .error(.resourceConstraint)
        }
        changeItem(contact, of: account) {
            $0.name = item.attribute("name")
            $0.groups = groups
            $0.isListed = true
        }
        return .result()
    }

    /// Takes a contact out of the roster and ends the subscriptions of both.
    func removeContact(_ contact: JID, of account: JID) {
        guard let item = accounts[account]?.roster[contact] else { return }
        if item.state.to || item.state.isPendingOut { unsubscribe(account, from: contact, nil) }
        if item.state.from || item.state.isPendingIn { refuse(account, to: contact, nil) }
        accounts[account]?.roster[contact] = nil
        guard item.isListed else { return }
        push(to: account) {
            $0.element("item", ["jid": contact.description, "subscription": "remove"])
        }
    }

    /// Changes or adds a contact, and pushes the change to the account's clients.
    func changeItem(_ contact: JID, of account: JID, _ change: (inout RosterItem) -> Void) {
        guard var item = accounts[account]?.roster[contact] ?? .some(RosterItem(jid: contact, isListed: false)),
            accounts[account] != nil
        else { return }
        change(&item)
        accounts[account]?.roster[contact] = item
        guard item.isListed else { return }
        push(to: account) { item.write(to: &$0) }
    }

    private func push(to account: JID, _ item: (inout XMLWriter) -> Void) {
        for resource in accounts[account]?.resources ?? [] where resource.wantsPushes {
            // Answers to pushes are ignored, so every push can have the same id.
            let attributes: KeyValuePairs<String, String?> = [
                "type": "set", "id": "push", "to": resource.jid.description,
            ]
            let bytes = XMLWriter.bytes {
                $0.element("iq", attributes) { $0.element("query", .roster, content: item) }
            }
            send(bytes, to: resource.connection)
        }
    }
}

internal import TapDiagnosis
internal import XMPPCore

/// Presence subscriptions between accounts of this server (RFC 6121 §3, appendix A).
extension ServerDirectory {
    /// Takes a presence that asks for, grants or ends a subscription.
    func handle(subscription presence: Element, to contact: JID, _ sender: ServerSender) {
        let account = sender.jid.bare
        guard contact != account else { return }
        switch presence.attribute("type") {
        case "subscribe": subscribe(account, to: contact, presence, sender)
        case "subscribed": grant(account, to: contact, presence)
        case "unsubscribe": unsubscribe(account, from: contact, presence)
        default: refuse(account, to: contact, presence)
        }
    }

    /// §3.1: the account asks to see the contact's presence.
    private func subscribe(_ account: JID, to contact: JID, _ presence: Element, _ sender: ServerSender) {
        guard accounts[account]?.roster[contact]?.state.to != true else { return }
        let count = max(accounts[account]?.roster.count ?? 0, accounts[contact]?.roster.count ?? 0)
        guard count < settings.rosterLimit || accounts[account]?.roster[contact] != nil else {
            return refuse(presence, .resourceConstraint, sender)
        }
        changeItem(contact, of: account) {
            $0.state.apply(sent: .subscribe)
            $0.isListed = true
        }
        guard let other = accounts[contact] else { return }
        if other.roster[account]?.state.from == true {
            // The contact has agreed before: the server answers in its name.
            return complete(account, sees: contact, nil)
        }
        changeItem(account, of: contact) { $0.state.apply(received: .subscribe) }
        deliver(signed(presence, "subscribe", account, contact), to: contact)
    }

    /// §3.1.5: the account lets the contact see its presence, which the contact has asked for.
    private func grant(_ account: JID, to contact: JID, _ presence: Element) {
        guard accounts[account]?.roster[contact]?.state.isPendingIn == true else { return }
        changeItem(contact, of: account) {
            $0.state.apply(sent: .subscribed)
            $0.isListed = true
        }
        guard accounts[contact]?.roster[account]?.state.isPendingOut == true else { return }
        complete(contact, sees: account, presence)
    }

    private func complete(_ account: JID, sees contact: JID, _ presence: Element?) {
        changeItem(contact, of: account) { $0.state.apply(received: .subscribed) }
        deliver(signed(presence, "subscribed", contact, account), to: account)
        exchangePresence(from: contact, to: account, isGone: false)
    }

    /// §3.3: the account no longer wants to see the contact's presence.
    func unsubscribe(_ account: JID, from contact: JID, _ presence: Element?) {
        guard let item = accounts[account]?.roster[contact], item.state.to || item.state.isPendingOut else { return }
        changeItem(contact, of: account) { $0.state.apply(sent: .unsubscribe) }
        guard let other = accounts[contact]?.roster[account], other.state.from || other.state.isPendingIn else {
            return
        }
        changeItem(account, of: contact) { $0.state.apply(received: .unsubscribe) }
        deliver(signed(presence, "unsubscribe", account, contact), to: contact)
        if item.state.to { exchangePresence(from: contact, to: account, isGone: true) }
        forgetRequest(account, of: contact)
    }

    /// §3.2: the account no longer lets the contact see its presence, or refuses to.
    func refuse(_ account: JID, to contact: JID, _ presence: Element?) {
        guard let item = accounts[account]?.roster[contact], item.state.from || item.state.isPendingIn else { return }
        changeItem(contact, of: account) { $0.state.apply(sent: .unsubscribed) }
        forgetRequest(contact, of: account)
        guard let other = accounts[contact]?.roster[account], other.state.to || other.state.isPendingOut else { return }
        if item.state.from { exchangePresence(from: account, to: contact, isGone: true) }
        changeItem(account, of: contact) { $0.state.apply(received: .unsubscribed) }
        deliver(signed(presence, "unsubscribed", account, contact), to: contact)
    }

    /// An item that stood for a request alone goes with it.
    private func forgetRequest(_ contact: JID, of account: JID) {
        guard accounts[account]?.roster[contact]?.isListed == false else { return }
        accounts[account]?.roster[contact] = nil
    }

    /// A subscription stanza carries bare addresses, and what its sender wrote into it.
    private func signed(_ presence: Element?, _ type: String, _ from: JID, _ to: JID) -> [UInt8] {
        presence.map { written($0, from: from, to: to) } ?? plain(type, from: from, to: to)
    }
}

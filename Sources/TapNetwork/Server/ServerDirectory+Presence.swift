internal import TapDiagnosis
internal import XMPPCore

/// Presence (RFC 6121 §4).
extension ServerDirectory {
    /// Handles a presence stanza of a client with a bound resource.
    func handle(presence: Element, to jid: JID?, _ sender: ServerSender) {
        guard jid.map(isOurs) ?? true else { return refuse(presence, .remoteServerNotFound, sender) }
        switch (presence.attribute("type"), jid) {
        case (nil, nil): goOnline(presence, sender)
        case ("unavailable", nil): goOffline(presence, sender)
        case (nil, let jid?), ("unavailable", let jid?): direct(presence, to: jid, sender)
        case ("error", let jid?):
            if let resource = resource(jid) { forward(presence, to: [resource], sender) }
        case ("probe", let jid?): answerProbe(of: jid.bare, sender)
        case ("subscribe", let jid?), ("subscribed", let jid?), ("unsubscribe", let jid?), ("unsubscribed", let jid?):
            handle(subscription: presence, to: jid.bare, sender)
        default: refuse(presence, .badRequest, sender)
        }
    }

    /// Broadcasts available presence (RFC 6121 §4.2, §4.4). If it is the initial presence, sends the contacts' presence
    /// to the client.
    private func goOnline(_ presence: Element, _ sender: ServerSender) {
        let account = sender.jid.bare
        guard let index = index(of: sender.connection, sender.jid) else { return }
        let isFirst = accounts[account]?.resources[index].isAvailable == false
        let priority = presence.childText("priority", .client).flatMap { Int($0) } ?? 0
        accounts[account]?.resources[index].presence = presence
        accounts[account]?.resources[index].priority = min(127, max(-128, priority))
        broadcast(of: account) { to in
            written(presence, from: sender.jid, to: to)
        }
        guard isFirst, let entry = accounts[account] else { return }
        for item in entry.roster.values.sorted(by: { $0.jid < $1.jid }) {
            if item.state.to { sendPresence(of: item.jid, to: sender) }
            if item.state.isPendingIn {
                send(plain("subscribe", from: item.jid, to: account), to: sender.connection)
            }
        }
        for other in entry.resources where other.connection != sender.connection {
            guard let presence = other.presence else { continue }
            send(written(presence, from: other.jid, to: sender.jid), to: sender.connection)
        }
    }

    /// Broadcasts unavailable presence (RFC 6121 §4.5), also to the resource itself.
    private func goOffline(_ presence: Element, _ sender: ServerSender) {
        let account = sender.jid.bare
        guard let index = index(of: sender.connection, sender.jid), let entry = accounts[account] else { return }
        announceAbsence(of: entry.resources[index], presence: presence)
        accounts[account]?.resources[index].presence = nil
        accounts[account]?.resources[index].priority = 0
        accounts[account]?.resources[index].directed = []
    }

    /// Sends unavailable presence of a resource to all who have seen it available; with the client's own stanza, or a
    /// generated one if the connection was lost.
    func announceAbsence(of resource: ServerAccount.Resource, presence: Element? = nil) {
        let account = resource.jid.bare
        let stanza = { (to: JID) in
            presence.map { written($0, from: resource.jid, to: to) }
                ?? plain("unavailable", from: resource.jid, to: to)
        }
        if resource.isAvailable { broadcast(of: account, stanza) }
        for jid in resource.directed.sorted() where !resource.isAvailable || !sees(jid.bare, account) {
            deliver(stanza(jid), to: jid)
        }
    }

    /// Maximum number of JIDs to which a resource's directed presence is remembered.
    static let maximumDirected = 1000

    /// Sends directed presence to one JID (RFC 6121 §4.6).
    ///
    /// Only a JID that received it is remembered, to send it unavailable presence later: clients can write any resource.
    private func direct(_ presence: Element, to jid: JID, _ sender: ServerSender) {
        deliver(written(presence, from: sender.jid, to: jid), to: jid)
        guard let index = index(of: sender.connection, sender.jid) else { return }
        if presence.attribute("type") == "unavailable" {
            accounts[sender.jid.bare]?.resources[index].directed.remove(jid)
        } else if jid.isFull ? resource(jid) != nil : accounts[jid] != nil,
            let count = accounts[sender.jid.bare]?.resources[index].directed.count, count < Self.maximumDirected
        {
            accounts[sender.jid.bare]?.resources[index].directed.insert(jid)
        }
    }

    /// Answers a presence probe of a subscriber (RFC 6121 §4.3).
    private func answerProbe(of account: JID, _ sender: ServerSender) {
        guard account == sender.jid.bare || sees(sender.jid.bare, account) else { return }
        sendPresence(of: account, to: sender)
    }

    // MARK: Sending

    /// Sends the presence of each available resource of an account to one connection.
    private func sendPresence(of account: JID, to sender: ServerSender) {
        for resource in accounts[account]?.resources ?? [] {
            guard let presence = resource.presence else { continue }
            send(written(presence, from: resource.jid, to: sender.jid), to: sender.connection)
        }
    }

    /// Sends the presence of each available resource of an account to each available resource of another.
    private func exchangePresence(from account: JID, to other: JID, isGone: Bool) {
        for resource in accounts[account]?.resources ?? [] {
            guard let presence = resource.presence else { continue }
            let bytes =
                isGone
                ? plain("unavailable", from: resource.jid, to: other) : written(presence, from: resource.jid, to: other)
            deliver(bytes, to: other)
        }
    }

    /// Sends a stanza to all who see the account's presence: subscribed contacts and its own resources.
    private func broadcast(of account: JID, _ stanza: (JID) -> [UInt8]) {
        guard let entry = accounts[account] else { return }
        for item in entry.roster.values.sorted(by: { $0.jid < $1.jid }) where item.state.from {
            guard accounts[item.jid] != nil else { continue }
            deliver(stanza(item.jid), to: item.jid)
        }
        deliver(stanza(account), to: account)
    }

    /// Sends a stanza to the resource of a full JID, or to all available resources of a bare JID.
    func deliver(_ stanza: [UInt8], to jid: JID) {
        for resource in accounts[jid.bare]?.resources ?? [] {
            guard jid.isFull ? resource.jid == jid : resource.isAvailable else { continue }
            send(stanza, to: resource.connection)
        }
    }

    /// Whether `viewer` is subscribed to the presence of `account`.
    private func sees(_ viewer: JID, _ account: JID) -> Bool {
        accounts[account]?.roster[viewer]?.state.from == true
    }
}

/// Returns the presence with these addresses; the rest is as its sender wrote it.
func written(_ presence: Element, from: JID, to: JID) -> [UInt8] {
    XMLWriter.bytes {
        $0.element(
            presence,
            inheriting: Namespace.client.uri.description,
            setting: ["from": from.description, "to": to.description]
        )
    }
}

/// Returns a presence that has only a type and addresses.
func plain(_ type: String, from: JID, to: JID) -> [UInt8] {
    XMLWriter.bytes {
        $0.element("presence", ["type": type, "from": from.description, "to": to.description])
    }
}

/// Presence subscriptions between accounts of this server (RFC 6121 §3, appendix A).
extension ServerDirectory {
    /// Handles a presence that requests, grants or ends a subscription.
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

    /// Requests a subscription to the contact's presence (RFC 6121 §3.1).
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
            // The contact has already granted the subscription: the server answers for it.
            return complete(account, sees: contact, nil)
        }
        changeItem(account, of: contact) { $0.state.apply(received: .subscribe) }
        deliver(signed(presence, "subscribe", account, contact), to: contact)
    }

    /// Grants the subscription that the contact has requested (RFC 6121 §3.1.5).
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

    /// Ends the account's subscription to the contact's presence (RFC 6121 §3.3).
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

    /// Cancels the contact's subscription to the account's presence, or denies its request (RFC 6121 §3.2).
    func refuse(_ account: JID, to contact: JID, _ presence: Element?) {
        guard let item = accounts[account]?.roster[contact], item.state.from || item.state.isPendingIn else { return }
        changeItem(contact, of: account) { $0.state.apply(sent: .unsubscribed) }
        forgetRequest(contact, of: account)
        guard let other = accounts[contact]?.roster[account], other.state.to || other.state.isPendingOut else { return }
        if item.state.from { exchangePresence(from: account, to: contact, isGone: true) }
        changeItem(account, of: contact) { $0.state.apply(received: .unsubscribed) }
        deliver(signed(presence, "unsubscribed", account, contact), to: contact)
    }

    /// Removes the roster item if it contained only the contact's request.
    private func forgetRequest(_ contact: JID, of account: JID) {
        guard accounts[account]?.roster[contact]?.isListed == false else { return }
        accounts[account]?.roster[contact] = nil
    }

    /// Returns a subscription stanza between bare JIDs, with the content of the sender's stanza, if there is one.
    private func signed(_ presence: Element?, _ type: String, _ from: JID, _ to: JID) -> [UInt8] {
        presence.map { written($0, from: from, to: to) } ?? plain(type, from: from, to: to)
    }
}

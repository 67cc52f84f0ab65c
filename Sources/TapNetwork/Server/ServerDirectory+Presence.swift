internal import TapDiagnosis
internal import XMPPCore

/// Presence (RFC 6121 §4).
extension ServerDirectory {
    /// Takes a presence of a bound connection.
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

    /// §4.2, §4.4: sent to all subscribers; initial presence is answered with the contacts' presence.
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
            if item.state.to { tellPresence(of: item.jid, to: sender) }
            if item.state.isPendingIn {
                send(plain("subscribe", from: item.jid, to: account), to: sender.connection)
            }
        }
        for other in entry.resources where other.connection != sender.connection {
            guard let presence = other.presence else { continue }
            send(written(presence, from: other.jid, to: sender.jid), to: sender.connection)
        }
    }

    /// §4.5: the resource says that it goes. Its own connection hears of it as well.
    private func goOffline(_ presence: Element, _ sender: ServerSender) {
        let account = sender.jid.bare
        guard let index = index(of: sender.connection, sender.jid), let entry = accounts[account] else { return }
        announceAbsence(of: entry.resources[index], presence: presence)
        accounts[account]?.resources[index].presence = nil
        accounts[account]?.resources[index].priority = 0
        accounts[account]?.resources[index].directed = []
    }

    /// Tells everybody who knows of the resource that it is gone: by its own word, or because its connection is.
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

    /// §4.6: presence for one address alone.
    private func direct(_ presence: Element, to jid: JID, _ sender: ServerSender) {
        deliver(written(presence, from: sender.jid, to: jid), to: jid)
        guard let index = index(of: sender.connection, sender.jid) else { return }
        if presence.attribute("type") == "unavailable" {
            accounts[sender.jid.bare]?.resources[index].directed.remove(jid)
        } else if accounts[jid.bare] != nil {
            accounts[sender.jid.bare]?.resources[index].directed.insert(jid)
        }
    }

    /// §4.3: answers a presence probe of a subscriber.
    private func answerProbe(of account: JID, _ sender: ServerSender) {
        guard account == sender.jid.bare || sees(sender.jid.bare, account) else { return }
        tellPresence(of: account, to: sender)
    }

    // MARK: Sending

    /// Sends the presence of every available resource of an account to one connection.
    private func tellPresence(of account: JID, to sender: ServerSender) {
        for resource in accounts[account]?.resources ?? [] {
            guard let presence = resource.presence else { continue }
            send(written(presence, from: resource.jid, to: sender.jid), to: sender.connection)
        }
    }

    /// Sends the presence of every available resource of an account to every available resource of another.
    func exchangePresence(from account: JID, to other: JID, isGone: Bool) {
        for resource in accounts[account]?.resources ?? [] {
            guard let presence = resource.presence else { continue }
            let bytes =
                isGone
                ? plain("unavailable", from: resource.jid, to: other) : written(presence, from: resource.jid, to: other)
            deliver(bytes, to: other)
        }
    }

    /// Sends to all who see the account's presence: subscribed contacts and its own resources.
    private func broadcast(of account: JID, _ stanza: (JID) -> [UInt8]) {
        guard let entry = accounts[account] else { return }
        for item in entry.roster.values.sorted(by: { $0.jid < $1.jid }) where item.state.from {
            guard accounts[item.jid] != nil else { continue }
            deliver(stanza(item.jid), to: item.jid)
        }
        deliver(stanza(account), to: account)
    }

    /// Sends to a full address' resource, or to all available ones of a bare address.
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

/// A presence as its sender wrote it, with these addresses.
func written(_ presence: Element, from: JID, to: JID) -> [UInt8] {
    XMLWriter.bytes {
        $0.element(
            presence,
            inheriting: Namespace.client.uri.description,
            setting: ["from": from.description, "to": to.description]
        )
    }
}

/// A presence with nothing but its type.
func plain(_ type: String, from: JID, to: JID) -> [UInt8] {
    XMLWriter.bytes {
        $0.element("presence", ["type": type, "from": from.description, "to": to.description])
    }
}

internal import XMPPCore

/// Who sent a stanza: a connection and the full address it is bound to.
struct ServerSender {
    let connection: ConnectionID
    let jid: JID
}

extension ServerDirectory {
    /// Handles a stanza of a bound connection and returns the resulting commands.
    ///
    /// The `from` was checked by the session; here the stanza gets the sender's full address.
    mutating func handle(_ stanza: Element, from sender: ServerSender, _ output: inout [ServerCommand]) {
        let recipient = stanza.attribute("to").map(Address.init)
        guard recipient?.fault == nil else { return refuse(stanza, .jidMalformed, sender, &output) }
        switch stanza.name {
        case "message": route(message: stanza, to: recipient?.jid ?? sender.jid.bare, sender, &output)
        case "presence": handle(presence: stanza, to: recipient?.jid, sender, &output)
        default: handle(iq: stanza, to: recipient?.jid, sender, &output)
        }
    }

    /// RFC 6121 §8.5: the delivery of a message depends on its type and on the connected resources.
    private func route(message: Element, to jid: JID, _ sender: ServerSender, _ output: inout [ServerCommand]) {
        guard isOurs(jid) else { return refuse(message, .remoteServerNotFound, sender, &output) }
        if jid.isFull, let resource = resource(jid) {
            return forward(message, to: [resource], sender, &output)
        }
        let account = accounts[jid.bare]
        switch message.attribute("type") ?? "normal" {
        case "error":
            break
        case "headline":
            guard jid.isBare, let account else { break }
            let available = account.resources.filter { $0.isAvailable && $0.priority >= 0 }
            forward(message, to: available, sender, &output)
        case "groupchat":
            refuse(message, .serviceUnavailable, sender, &output)
        default:
            // A chat message to a resource that has gone reaches the account like one to its bare address.
            let recipients = account?.recipients ?? []
            guard !recipients.isEmpty else { return refuse(message, .serviceUnavailable, sender, &output) }
            forward(message, to: recipients, sender, &output)
        }
    }

    /// Sends a stanza on, from the sender's full address.
    func forward(
        _ stanza: Element,
        to resources: [ServerAccount.Resource],
        _ sender: ServerSender,
        _ output: inout [ServerCommand]
    ) {
        guard !resources.isEmpty else { return }
        let bytes = XMLWriter.bytes {
            $0.element(
                stanza,
                inheriting: Namespace.client.uri.description,
                setting: ["from": sender.jid.description]
            )
        }
        for resource in resources { output.append(.write(resource.connection, bytes)) }
    }

    /// Answers a stanza with an error, unless it is one itself.
    func refuse(_ stanza: Element, _ error: StanzaError, _ sender: ServerSender, _ output: inout [ServerCommand]) {
        guard let answer = error.answer(to: stanza, from: sender.jid) else { return }
        output.append(.write(sender.connection, answer))
    }

    /// Whether the address lies in the domain that is served.
    func isOurs(_ jid: JID) -> Bool { jid.matches(domain, in: .domain) }
}

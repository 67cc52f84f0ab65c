internal import TapCore
internal import TapDiagnosis
internal import TapSecurity
internal import XMPPCore

/// State shared by the sessions of the built-in server: accounts, rosters and connected resources; it also routes
/// stanzas between them.
///
/// It performs no I/O: ``takeCommands()`` returns the output. It is used on one event loop, like its sessions.
final class ServerDirectory {
    let settings: ServerSettings
    let cryptography: any Cryptography
    /// The server's JID.
    let domain: JID

    private(set) var credentials: [JID: ServerCredentials] = [:]
    /// The accounts, by bare JID.
    var accounts: [JID: ServerAccount] = [:]
    /// The key from which salts for unknown accounts are derived.
    let decoyKey: [UInt8]
    /// Pending commands, in order.
    var commands: [ServerCommand] = []
    /// The responder that serves clients after the login instead; nil if there is none.
    let responder: (any ServerResponder)?

    init(settings: ServerSettings, cryptography: any Cryptography, responder: (any ServerResponder)? = nil) throws {
        self.settings = settings
        self.responder = responder
        self.cryptography = cryptography
        self.domain = try JID(domain: settings.domain)
        self.decoyKey = try cryptography.randomBytes(count: 32)
        let absent = try JID(local: "nurse", domain: settings.domain)
        let addresses = try settings.accounts.map { try JID(local: $0.name, domain: settings.domain) }
        for (account, jid) in zip(settings.accounts, addresses) {
            try setPassword(account.password, of: jid)
            var entry = ServerAccount(jid: jid)
            for other in addresses where other != jid {
                entry.roster[other] = RosterItem(jid: other, name: other.local, state: .both)
            }
            entry.roster[absent] = RosterItem(jid: absent, name: "Nurse", groups: ["Household"], state: .both)
            accounts[jid] = entry
        }
    }

    // MARK: Commands

    func send(_ bytes: [UInt8], to connection: ConnectionID) { commands.append(.write(connection, bytes)) }

    func command(_ command: ServerCommand) { commands.append(command) }

    func takeCommands() -> [ServerCommand] {
        defer { commands = [] }
        return commands
    }

    // MARK: Accounts

    /// Stores the keys of a new password; the account can log in from then on.
    func setPassword(_ password: String, of jid: JID) throws {
        var algorithms = Set(settings.mechanisms.compactMap { SCRAMMechanism(name: $0)?.algorithm })
        if algorithms.isEmpty { algorithms.insert(.sha256) }
        credentials[jid] = try ServerCredentials(
            password: password,
            algorithms: algorithms,
            cryptography: cryptography
        )
    }

    /// Removes an account, and closes its connections except `connection`.
    func removeAccount(_ jid: JID, except connection: ConnectionID) {
        for contact in accounts[jid]?.roster.keys.sorted() ?? [] { removeContact(contact, of: jid) }
        for resource in accounts[jid]?.resources ?? [] where resource.connection != connection {
            command(.terminate(resource.connection, .notAuthorized))
        }
        accounts[jid] = nil
        credentials[jid] = nil
    }

    /// Returns the bare JID of a user name; nil if it is not a valid local part.
    func address(of name: String) -> JID? {
        try? JID(local: name, domain: settings.domain)
    }

    // MARK: Resources

    /// Binds a connection to a resource, and returns its full JID.
    ///
    /// Another connection with the same resource is closed with `<conflict/>` (RFC 6120 §7.7.2.2).
    func bind(
        _ connection: ConnectionID,
        to account: JID,
        resource requested: String?
    ) throws(StanzaError) -> JID {
        let full: JID
        do {
            full = try account.with(resource: requested ?? randomName(bytes: 8, cryptography))
        } catch {
            throw error is JIDError ? .badRequest : .internalServerError
        }
        guard let entry = accounts[account] else { throw .itemNotFound }
        if let old = entry.resources.first(where: { $0.jid == full }) {
            unbind(old.connection, full)
            command(.terminate(old.connection, .conflict))
        } else if entry.resources.count >= settings.resourceLimit {
            throw .resourceConstraint
        }
        accounts[account]?.resources.append(.init(connection: connection, jid: full))
        return full
    }

    /// Removes a connection's resource; all who have seen its presence get unavailable presence.
    func unbind(_ connection: ConnectionID, _ jid: JID) {
        guard let index = index(of: connection, jid),
            let resource = accounts[jid.bare]?.resources.remove(at: index)
        else { return }
        announceAbsence(of: resource)
    }

    /// Returns the connected resource with a full JID; nil if there is none.
    func resource(_ jid: JID) -> ServerAccount.Resource? {
        accounts[jid.bare]?.resources.first { $0.jid == jid }
    }

    /// Returns the index of a connection's resource in its account.
    func index(of connection: ConnectionID, _ jid: JID) -> Int? {
        accounts[jid.bare]?.resources.firstIndex { $0.connection == connection }
    }
}

/// The sender of a stanza: a connection and its full JID.
struct ServerSender {
    let connection: ConnectionID
    let jid: JID
}

extension ServerDirectory {
    /// Handles a stanza of a client with a bound resource; the results are appended to ``commands``.
    ///
    /// The session has checked the stanza's `from`; forwarded stanzas get the sender's full JID.
    func handle(_ stanza: Element, from sender: ServerSender) {
        let recipient = stanza.attribute("to").map(Address.init)
        guard recipient?.fault == nil else { return refuse(stanza, .jidMalformed, sender) }
        switch stanza.name {
        case "message": route(message: stanza, to: recipient?.jid ?? sender.jid.bare, sender)
        case "presence": handle(presence: stanza, to: recipient?.jid, sender)
        default: handle(iq: stanza, to: recipient?.jid, sender)
        }
    }

    /// Delivers a message according to its type and the connected resources (RFC 6121 §8.5).
    private func route(message: Element, to jid: JID, _ sender: ServerSender) {
        guard isOurs(jid) else { return refuse(message, .remoteServerNotFound, sender) }
        if jid.isFull, let resource = resource(jid) {
            return forward(message, to: [resource], sender)
        }
        let account = accounts[jid.bare]
        switch message.attribute("type") ?? "normal" {
        case "error":
            break
        case "headline":
            guard jid.isBare, let account else { break }
            let available = account.resources.filter { $0.isAvailable && $0.priority >= 0 }
            forward(message, to: available, sender)
        case "groupchat":
            refuse(message, .serviceUnavailable, sender)
        default:
            // A chat message to a disconnected resource is delivered like one to the bare JID.
            let recipients = account?.recipients ?? []
            guard !recipients.isEmpty else { return refuse(message, .serviceUnavailable, sender) }
            forward(message, to: recipients, sender)
        }
    }

    /// Forwards a stanza, with the sender's full JID as `from`.
    func forward(_ stanza: Element, to resources: [ServerAccount.Resource], _ sender: ServerSender) {
        guard !resources.isEmpty else { return }
        let bytes = XMLWriter.bytes {
            $0.element(
                stanza,
                inheriting: Namespace.client.uri.description,
                setting: ["from": sender.jid.description]
            )
        }
        for resource in resources { send(bytes, to: resource.connection) }
    }

    /// Answers a stanza with an error, unless it is an error itself.
    func refuse(_ stanza: Element, _ error: StanzaError, _ sender: ServerSender) {
        guard let answer = error.answer(to: stanza, from: sender.jid) else { return }
        send(answer, to: sender.connection)
    }

    /// Returns whether a JID belongs to the domain of this server.
    func isOurs(_ jid: JID) -> Bool { jid.matches(domain, in: .domain) }
}

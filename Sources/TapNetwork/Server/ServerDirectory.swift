internal import TapCore
internal import TapDiagnosis
internal import TapSecurity
internal import XMPPCore

/// Everything the sessions of the built-in server share: accounts, rosters, connected resources, and the way a stanza
/// takes between them.
///
/// Pure and sans-IO: what is to be sent comes back as commands. It belongs to one event loop, as all its sessions do.
struct ServerDirectory: Sendable {
    let settings: ServerSettings
    let cryptography: any Cryptography
    /// The server's own address.
    let domain: JID

    private(set) var credentials: [JID: ServerCredentials] = [:]
    /// By bare address.
    var accounts: [JID: ServerAccount] = [:]
    /// Makes salts for accounts that do not exist.
    let decoyKey: [UInt8]

    init(settings: ServerSettings, cryptography: any Cryptography) throws {
        self.settings = settings
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

    // MARK: Accounts

    /// Keeps a new password; also makes a name known to the log-in.
    mutating func setPassword(_ password: String, of jid: JID) throws {
        var algorithms = Set(settings.mechanisms.compactMap { SCRAMMechanism(name: $0)?.algorithm })
        if algorithms.isEmpty { algorithms.insert(.sha256) }
        credentials[jid] = try ServerCredentials(
            password: password,
            algorithms: algorithms,
            cryptography: cryptography
        )
    }

    /// Forgets an account, and ends its connections but for the one that asks.
    mutating func removeAccount(_ jid: JID, except connection: ConnectionID, _ output: inout [ServerCommand]) {
        for contact in accounts[jid]?.roster.keys.sorted() ?? [] { removeContact(contact, of: jid, &output) }
        for resource in accounts[jid]?.resources ?? [] where resource.connection != connection {
            output.append(.terminate(resource.connection, .notAuthorized))
        }
        accounts[jid] = nil
        credentials[jid] = nil
    }

    /// The address of a user name; `nil` if it is not a valid local part.
    func address(of name: String) -> JID? {
        try? JID(local: name, domain: settings.domain)
    }

    // MARK: Resources

    /// Binds a connection to a resource and gives its full address.
    ///
    /// Another connection of the same resource is ended with `<conflict/>` (RFC 6120 §7.7.2.2).
    mutating func bind(
        _ connection: ConnectionID,
        to account: JID,
        resource requested: String?,
        _ output: inout [ServerCommand]
    ) throws(StanzaError) -> JID {
        let full: JID
        do {
            full = try account.with(resource: requested ?? randomName(bytes: 8, cryptography))
        } catch {
            throw error is JIDError ? .badRequest : .internalServerError
        }
        guard let entry = accounts[account] else { throw .itemNotFound }
        if let old = entry.resources.first(where: { $0.jid == full }) {
            unbind(old.connection, full, &output)
            output.append(.terminate(old.connection, .conflict))
        } else if entry.resources.count >= settings.resourceLimit {
            throw .resourceConstraint
        }
        accounts[account]?.resources.append(.init(connection: connection, jid: full))
        return full
    }

    /// Takes a connection's resource away; those who saw its presence learn that it is gone.
    mutating func unbind(_ connection: ConnectionID, _ jid: JID, _ output: inout [ServerCommand]) {
        guard let index = index(of: connection, jid),
            let resource = accounts[jid.bare]?.resources.remove(at: index)
        else { return }
        announceAbsence(of: resource, &output)
    }

    /// The connected resource of a full address.
    func resource(_ jid: JID) -> ServerAccount.Resource? {
        accounts[jid.bare]?.resources.first { $0.jid == jid }
    }

    /// Where a connection's resource stands in its account.
    func index(of connection: ConnectionID, _ jid: JID) -> Int? {
        accounts[jid.bare]?.resources.firstIndex { $0.connection == connection }
    }
}

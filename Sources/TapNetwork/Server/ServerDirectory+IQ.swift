internal import TapDiagnosis
internal import XMPPCore

/// The answer to a request; every request gets exactly one (RFC 6120 §8.2.3).
enum IQAnswer {
    /// Success; the closure writes the payload, if there is one.
    case result((inout XMLWriter) -> Void = { _ in })
    case error(StanzaError)
    /// The request was forwarded to a client, which has to answer it.
    case forwarded
}

extension ServerDirectory {
    /// Handles a request or an answer. Each request gets exactly one answer, from the server or from the client to
    /// which it is forwarded.
    func handle(iq: Element, to jid: JID?, _ sender: ServerSender) {
        let type = iq.attribute("type")
        guard iq.attribute("id") != nil, let type, ["get", "set", "result", "error"].contains(type) else {
            return refuse(iq, .badRequest, sender)
        }
        guard type == "get" || type == "set" else {
            // Drop answers without a recipient, and those to the server, which sends no requests.
            if let jid, let resource = resource(jid) { forward(iq, to: [resource], sender) }
            return
        }
        guard let payload = iq.firstChild, iq.children.count == 1 else {
            return refuse(iq, .badRequest, sender)
        }
        // Send stanzas that a request causes for others after the answer.
        let earlier = takeCommands()
        let answer = answer(iq, payload, isSet: type == "set", to: jid, sender)
        let effects = takeCommands()
        commands = earlier
        switch answer {
        case .result(let payload): send(result(of: iq, sender.jid, payload), to: sender.connection)
        case .error(let error): refuse(iq, error, sender)
        case .forwarded: break
        }
        commands += effects
    }

    /// Returns the result stanza for a request.
    func result(of iq: Element, _ recipient: JID?, _ payload: (inout XMLWriter) -> Void) -> [UInt8] {
        XMLWriter.bytes {
            $0.element(
                "iq",
                [
                    "type": "result", "id": iq.attribute("id"), "from": iq.attribute("to"),
                    "to": recipient?.description,
                ],
                content: payload
            )
        }
    }

    private func answer(
        _ iq: Element,
        _ payload: Element,
        isSet: Bool,
        to jid: JID?,
        _ sender: ServerSender
    ) -> IQAnswer {
        switch jid {
        case nil: break
        case .some(let jid) where !isOurs(jid): return .error(.remoteServerNotFound)
        case .some(let jid) where jid.isFull:
            guard let resource = resource(jid) else { return .error(.serviceUnavailable) }
            forward(iq, to: [resource], sender)
            return .forwarded
        case .some(let jid) where jid.isServer:
            return answerAsServer(payload, isSet: isSet, sender)
        case .some(let jid) where jid != sender.jid.bare:
            // Other users must not see data of an account, or even whether it exists.
            return .error(.serviceUnavailable)
        case .some: break
        }
        return answerAsAccount(payload, isSet: isSet, isAddressed: jid != nil, sender)
    }

    /// Answers a request of a client to its own account (RFC 6120 §10.3.3).
    private func answerAsAccount(
        _ payload: Element,
        isSet: Bool,
        isAddressed: Bool,
        _ sender: ServerSender
    ) -> IQAnswer {
        switch (payload.name, payload.namespace) {
        case ("query", .roster):
            return isSet ? setRoster(payload, sender) : getRoster(sender)
        case ("query", .discoInfo) where isAddressed && !isSet:
            return discoInfo(payload, category: "account", type: "registered")
        default:
            return answerAsServer(payload, isSet: isSet, sender)
        }
    }

    private func answerAsServer(_ payload: Element, isSet: Bool, _ sender: ServerSender) -> IQAnswer {
        switch (payload.name, payload.namespace) {
        case ("ping", .ping) where !isSet:
            return .result()
        case ("session", .session) where isSet:
            // Session requests have no effect since RFC 6121, but old clients wait for the answer.
            return .result()
        case ("query", .discoInfo) where !isSet:
            return discoInfo(payload, category: "server", type: "im")
        case ("query", .discoItems) where !isSet:
            guard payload.attribute("node") == nil else { return .error(.itemNotFound) }
            return .result { $0.element("query", .discoItems) }
        case ("query", .version) where !isSet:
            let settings = self.settings
            return .result {
                $0.element("query", .version) {
                    $0.element("name", text: settings.softwareName)
                    $0.element("version", text: settings.softwareVersion)
                }
            }
        case ("query", .register):
            return register(payload, isSet: isSet, sender)
        default:
            return .error(.serviceUnavailable)
        }
    }

    private func discoInfo(_ payload: Element, category: String, type: String) -> IQAnswer {
        guard payload.attribute("node") == nil else { return .error(.itemNotFound) }
        var features: [Namespace] = [.discoInfo, .discoItems, .ping, .roster, .version]
        if settings.allowsRegistration { features.append(.register) }
        let name = settings.softwareName
        return .result {
            $0.element("query", .discoInfo) {
                $0.element("identity", ["category": category, "type": type, "name": name])
                for feature in features { $0.element("feature", ["var": feature.uri.description]) }
            }
        }
    }
}

/// In-band registration (XEP-0077): creates accounts before the login; changes or removes the client's own account
/// after it.
extension ServerDirectory {
    /// Answers a registration request on a connection that has not logged in.
    func registerStranger(_ payload: Element, isSet: Bool) -> IQAnswer {
        guard settings.allowsRegistration else { return .error(.notAllowed) }
        guard isSet else {
            return .result {
                $0.element("query", .register) {
                    $0.element("instructions", text: "Choose a user name and a password.")
                    $0.element("username")
                    $0.element("password")
                }
            }
        }
        guard let (name, password) = fields(payload), let jid = address(of: name) else { return .error(.notAcceptable) }
        guard accounts[jid] == nil else { return .error(.conflict) }
        guard accounts.count < settings.accountLimit else { return .error(.resourceConstraint) }
        do {
            try setPassword(password, of: jid)
        } catch {
            return .error(.internalServerError)
        }
        accounts[jid] = ServerAccount(jid: jid)
        return .result()
    }

    /// Answers a registration request of a client about its own account.
    func register(_ payload: Element, isSet: Bool, _ sender: ServerSender) -> IQAnswer {
        guard settings.allowsRegistration else { return .error(.notAllowed) }
        let account = sender.jid.bare
        guard isSet else {
            return .result {
                $0.element("query", .register) {
                    $0.element("registered")
                    $0.element("username", text: account.local)
                    $0.element("password")
                }
            }
        }
        if payload.child("remove", .register) != nil {
            // The answer is sent first; then the client's own stream is closed as well (XEP-0077 §3.2).
            removeAccount(account, except: sender.connection)
            command(.terminate(sender.connection, .notAuthorized))
            return .result()
        }
        guard let (name, password) = fields(payload) else { return .error(.badRequest) }
        guard address(of: name) == account else { return .error(.notAllowed) }
        do {
            try setPassword(password, of: account)
        } catch {
            return .error(.internalServerError)
        }
        return .result()
    }

    private func fields(_ payload: Element) -> (name: String, password: String)? {
        guard let name = payload.childText("username", .register), !name.isEmpty,
            let password = payload.childText("password", .register), !password.isEmpty
        else { return nil }
        return (name, password)
    }
}

/// Rosters (RFC 6121 §2).
extension ServerDirectory {
    /// Returns the roster of the sender's account; from now on, its connection gets roster pushes.
    private func getRoster(_ sender: ServerSender) -> IQAnswer {
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
    private func setRoster(_ payload: Element, _ sender: ServerSender) -> IQAnswer {
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

    /// Removes a contact from the roster, and ends the subscriptions in both directions.
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
            // Answers to roster pushes are ignored, so all pushes can have the same id.
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

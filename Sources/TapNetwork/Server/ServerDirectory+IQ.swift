internal import XMPPCore

/// The one answer a request gets (RFC 6120 §8.2.3).
enum IQAnswer {
    /// Success; the closure writes the payload, if there is one.
    case result((inout XMLWriter) -> Void = { _ in })
    /// Refusal.
    case error(StanzaError)
    /// The request was passed on to a client, which owes the answer.
    case forwarded
}

extension ServerDirectory {
    /// Takes a request or an answer. A request gets exactly one answer, here or from the client it is passed on to.
    func handle(iq: Element, to jid: JID?, _ sender: ServerSender) {
        let type = iq.attribute("type")
        guard iq.attribute("id") != nil, let type, ["get", "set", "result", "error"].contains(type) else {
            return refuse(iq, .badRequest, sender)
        }
        guard type == "get" || type == "set" else {
            // Drop answers without recipient, or to the server, which expects none.
            if let jid, let resource = resource(jid) { forward(iq, to: [resource], sender) }
            return
        }
        guard let payload = iq.firstChild, iq.children.count == 1 else {
            return refuse(iq, .badRequest, sender)
        }
        // What a request causes elsewhere is sent after its answer.
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

    /// The result stanza of a request.
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
            // Nothing of an account is shown to others; they cannot even see whether it exists.
            return .error(.serviceUnavailable)
        case .some: break
        }
        return answerAsAccount(payload, isSet: isSet, isAddressed: jid != nil, sender)
    }

    /// What an account's own client may ask of it (RFC 6120 §10.3.3).
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
            // Means nothing since RFC 6121, and old clients wait for the answer.
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
